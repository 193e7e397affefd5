"""Syncs that the daemon does itself: which they are, and that they end as those of a worker do."""

import os

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import MODE_DIRECTORY, MODE_SYMLINK, Stat, SyncError
from husk.builder.store.sync.small import SmallTree, is_small, receive_small
from husk.builder.store.sync_table import read_looks, read_table
from husk.builder.store.workers.jobs import ReceiveJob
from husk.errors import InvalidParameter
from husk.storage.workers.answers import Received

END = packets.end_of_stats()
FILE = Stat(b"Dockerfile", 0o640, uid=os.geteuid(), gid=os.getegid(), size=5, mtime=7_000_000_000)


class Client:
    """Says piece after piece, whatever it hears."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)
        self.heard = b""
        self.ended = False

    async def receive(self):
        return self.pieces.pop(0) if self.pieces else b""

    async def send(self, data):
        self.heard += data

    async def end(self):
        self.ended = True


@pytest.fixture
def job(tmp_path):
    (tmp_path / "root").mkdir()
    return ReceiveJob(str(tmp_path / "root"), "", str(tmp_path / "new"))


def told(*stats):
    return b"".join(map(packets.stat, stats))


def sent(content, number=0):
    return packets.data_head(number, len(content)) + content + packets.data_head(number, 0)


async def receive(job, client):
    totals: list[int] = []
    done = await receive_small(job, client, totals.append)
    assert totals == sorted(totals)
    return done


@pytest.mark.parametrize(
    "stat",
    [
        Stat(b"d", MODE_DIRECTORY | 0o755),
        Stat(b"l", MODE_SYMLINK | 0o777, link=b"/etc/passwd"),
        Stat(b"l", 0o644, link=b"a"),
        Stat(b"d/f", 0o644),
        Stat(b"x", 0o644, xattrs=((b"user.a", b"b"),)),
        Stat(b"large", 0o644, size=1 << 20),
        Stat(b"less than nothing", 0o644, size=-1),
    ],
)
def test_what_is_more_than_a_small_plain_file_is_not_small(stat):
    assert is_small(told(stat), None) is False


def test_it_is_small_when_all_of_it_is_told():
    assert is_small(b"", None) is None
    assert is_small(told(FILE), None) is None
    assert is_small((told(FILE) + END)[:-1], None) is None
    assert is_small(told(FILE) + END, None) is True
    assert is_small(END, None) is True


def test_many_files_are_not_small():
    assert is_small(told(*(Stat(b"%03d" % number, 0o644) for number in range(100))) + END, None) is False


def test_what_is_no_sync_at_all_is_not_small():
    assert is_small(packets.fin(), None) is False
    assert is_small(b"\1" + bytes(9), None) is False
    assert is_small(packets.frame(b"\x0a\xff"), None) is False
    assert is_small(b"\0\0\x02\0\0" + bytes(1 << 17 - 1), None) is False, "a message that has no end"


def test_a_known_directory_is_small_if_nothing_has_changed():
    known = [told(stat)[packets.HEAD_SIZE :] for stat in (Stat(b"d", MODE_DIRECTORY | 0o755), Stat(b"d/f", 0o644))]
    all_of_it = b"".join(map(packets.frame, known))
    assert is_small(all_of_it, known) is None
    assert is_small(all_of_it + END, known) is True
    assert is_small(packets.frame(known[0]) + END, known) is False
    assert is_small(all_of_it + told(FILE), known) is False
    assert is_small(told(FILE), known) is False


async def test_files_are_as_the_client_told(job):
    client = Client(told(FILE)[:9], told(FILE)[9:] + END, sent(b"hello")[:9], sent(b"hello")[9:], packets.fin())
    assert await receive(job, client) == Received(1, 5, 5)
    assert client.heard == packets.request(0) + packets.fin()
    assert client.ended
    path = os.path.join(job.root, "Dockerfile")
    status = os.stat(path)
    assert (status.st_mode & 0o7777, status.st_mtime_ns) == (0o640, FILE.mtime)
    with open(path, "rb") as file, open(job.new, "rb") as new:
        assert file.read() == b"hello"
        assert list(read_looks(new)) == [b"Dockerfile"]


async def test_an_empty_file_and_no_file_are_small(job):
    client = Client(told(Stat(b".dockerignore", 0o644)) + END, packets.fin())
    assert await receive(job, client) == Received(1, 0, 0)
    assert os.listdir(job.root) == [".dockerignore"]


async def test_of_what_is_not_small_nothing_is_done(job):
    pieces = told(FILE), told(Stat(b"large", 0o644, size=1 << 30)), b"the rest"
    client = Client(*pieces)
    assert await receive(job, client) == b"".join(pieces[:2])
    assert client.heard == b""
    assert os.listdir(job.root) == []
    assert not os.path.exists(job.new)


async def test_an_end_in_the_middle_is_for_the_worker_to_tell(job):
    assert await receive(job, Client(told(FILE))) == told(FILE)


async def test_an_unchanged_directory_keeps_its_table(job, tmp_path):
    await receive(job, Client(told(FILE) + END, sent(b"hello"), packets.fin()))
    again = ReceiveJob(job.root, job.new, str(tmp_path / "newer"))
    client = Client(told(FILE) + END, packets.fin())
    assert await receive(again, client) == Received(1, 5, 0)
    assert client.heard == packets.fin()
    assert not os.path.exists(again.old)
    with open(again.new, "rb") as file:
        table = read_table(file)
    assert table is not None
    assert table.paths == [b"Dockerfile"]


async def test_a_changed_directory_and_a_table_that_cannot_be_read_are_for_a_worker(job, tmp_path):
    await receive(job, Client(told(FILE) + END, sent(b"hello"), packets.fin()))
    again = ReceiveJob(job.root, job.new, str(tmp_path / "newer"))
    changed = told(FILE._replace(mtime=8)) + END
    assert await receive(again, Client(changed)) == changed
    assert os.path.exists(again.old)
    assert await receive(ReceiveJob(job.root, "/nowhere/at/all", "new"), Client(changed)) == b""


async def test_a_directory_that_had_no_files_has_changed_when_it_has_some(job, tmp_path):
    """Its table says so, and goes on to be true."""
    await receive(job, Client(END, packets.fin()))
    again = ReceiveJob(job.root, job.new, str(tmp_path / "newer"))
    assert await receive(again, Client(told(FILE) + END)) == told(FILE) + END
    assert os.listdir(job.root) == []
    unchanged = Client(END, packets.fin())
    assert await receive(again, unchanged) == Received(0, 0, 0)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (packets.data_head(3, 0), "invalid file request 3"),
        (packets.fin(), "the sender ended before it was asked to"),
        (packets.error("no"), "error from sender: no"),
        (told(Stat(b"zz", 0o644)), "a file was told of behind the end"),
        (b"", "unexpected EOF"),
        (packets.data_head(0, 5 << 20) + bytes(5 << 20), "'Dockerfile' grows while it is sent"),
    ],
)
async def test_a_client_that_is_wrong_is_told(job, said, why):
    client = Client(told(FILE) + END, said)
    with pytest.raises(InvalidParameter, match=why):
        await receive(job, client)
    assert client.heard.endswith(packets.error(why))
    assert os.listdir(job.root) == []


async def test_paths_that_cannot_be_are_refused(job):
    for path in (b"..", b"."):
        with pytest.raises(InvalidParameter, match="invalid path"):
            await receive(job, Client(told(Stat(path, 0o644)) + END))


def test_a_small_tree_has_files_alone():
    tree = SmallTree()
    assert tree.is_directory(b"")
    assert not tree.is_directory(b"a")
    for refused in (
        lambda: tree.directory(FILE, True),
        lambda: tree.special(FILE),
        lambda: tree.remove([b"a"]),
    ):
        with pytest.raises(SyncError):
            refused()
