"""Directories between two workers of ours, one as the client's, through the daemon's side of both."""

import asyncio
import contextlib
import os
import socket
import stat

import pytest

from husk.builder.store.content_digest import Digester
from husk.builder.store.file_actions import Selection
from husk.builder.store.sync import packets
from husk.builder.store.sync.exchange import exchange
from husk.builder.store.sync.packets import MODE_CHARACTER, MODE_DEVICE, MODE_PIPE, MODE_SOCKET, Stat
from husk.builder.store.sync_table import read_looks
from husk.builder.store.workers.jobs import ReceiveJob, SendJob
from husk.builder.store.workers.rooted_tree import RootedTree
from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.answers import Received
from husk.storage.workers.nursery import Nursery


class End:
    """One end of a channel in memory."""

    def __init__(self, incoming, outgoing):
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self):
        return await self._incoming.get()

    async def send(self, data):
        await self._outgoing.put(data)

    async def end(self):
        await self._outgoing.put(b"")


def channel():
    one: asyncio.Queue[bytes] = asyncio.Queue(8)
    other: asyncio.Queue[bytes] = asyncio.Queue(8)
    return End(one, other), End(other, one)


@pytest.fixture
async def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def trees(tmp_path):
    for name in ("client", "here"):
        (tmp_path / name).mkdir()
    return tmp_path


class Syncs:
    """Syncs the directory `client` into the directory `here`, again and again."""

    def __init__(self, nursery, place):
        self.nursery = nursery
        self.client, self.here = place / "client", place / "here"
        self.table, self._new = place / "table", place / "table.new"

    def job(self):
        self._new.unlink(missing_ok=True)
        old = str(self.table) if self.table.exists() else ""
        return ReceiveJob(str(self.here), old, str(self._new))

    async def __call__(self, **options):
        theirs, ours = channel()
        send = SendJob(**{"root": str(self.client), "prefix": ""} | options)
        _, outcome = await asyncio.gather(
            exchange(self.nursery, send, theirs), exchange(self.nursery, self.job(), ours)
        )
        self._new.rename(self.table)
        assert isinstance(outcome, Received)
        assert outcome.size == sum(os.lstat(path).st_size for path in plain_files(self.here))
        return outcome.files, outcome.written

    async def hear(self, *said):
        """Let a client say this and then end."""
        theirs, ours = channel()
        for data in said:
            await theirs.send(data)
        await theirs.end()
        return await exchange(self.nursery, self.job(), ours)


@pytest.fixture
def sync(nursery, trees):
    return Syncs(nursery, trees)


def plain_files(top):
    """One name of each."""
    found = {}
    for path in top.rglob("*"):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            found[status.st_ino] = path
    return found.values()


def shape(top):
    """All that is to be the same, by path."""
    found = {}
    for above, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(above, name)
            status = os.lstat(path)
            detail: tuple[object, ...] = (
                stat.filemode(status.st_mode),
                status.st_uid,
                status.st_gid,
                status.st_mtime_ns,
            )
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    detail += (file.read(), status.st_nlink, tuple(os.listxattr(path)))
            elif stat.S_ISLNK(status.st_mode):
                detail += (os.readlink(path),)
            elif not stat.S_ISDIR(status.st_mode):
                detail += (status.st_rdev,)
            found[os.path.relpath(path, top)] = detail
    return found


def fill(top):
    (top / "a" / "deep").mkdir(parents=True)
    (top / "a" / "small").write_bytes(b"small")
    (top / "a" / "empty").write_bytes(b"")
    (top / "a.txt").write_bytes(b"beside a directory of nearly the same name")
    (top / "large").write_bytes(os.urandom(3 << 20))
    (top / "a" / "deep" / "program").write_bytes(b"#!/bin/sh\n")
    (top / "a" / "deep" / "program").chmod(0o4755)
    os.chown(top / "a" / "deep" / "program", 1000, 1001)
    (top / "a" / "deep" / "program").chmod(0o4755)
    (top / "out").symlink_to("/etc/passwd")
    (top / "dangling").symlink_to("../../nowhere")
    os.link(top / "large", top / "other name")
    os.mkfifo(top / "pipe", 0o640)
    (top / os.fsdecode(b"not \xff utf-8")).write_bytes(b"name")
    os.setxattr(top / "a" / "small", "user.note", b"kept")
    (top / "sticky").mkdir()
    (top / "sticky").chmod(0o3777)
    (top / "sticky" / "inside").write_bytes(b"group of its own")
    os.utime(top / "a" / "deep", ns=(5, 5))
    os.utime(top / "a", ns=(123456789, 123456789))


async def test_all_kinds_of_files_arrive_as_they_are(sync):
    fill(sync.client)
    files, size = await sync()
    assert shape(sync.here) == shape(sync.client)
    assert files == len(shape(sync.client))
    assert size > 3 << 20


async def test_an_unchanged_directory_sends_no_file_again(sync):
    fill(sync.client)
    await sync()
    before = {path: os.lstat(sync.here / path).st_ino for path in shape(sync.here)}
    assert (await sync())[1] == 0
    assert {path: os.lstat(sync.here / path).st_ino for path in shape(sync.here)} == before
    assert shape(sync.here) == shape(sync.client)


async def test_changes_arrive_and_directories_keep_their_times(sync):
    fill(sync.client)
    await sync()
    (sync.client / "a" / "small").write_bytes(b"other")
    (sync.client / "a" / "empty").unlink()
    (sync.client / "a" / "empty").mkdir()
    (sync.client / "a" / "empty" / "more").write_bytes(b"in a directory")
    (sync.client / "a" / "deep" / "program").unlink()
    (sync.client / "a" / "deep").rmdir()
    (sync.client / "a" / "deep").symlink_to("/")
    (sync.client / "pipe").unlink()
    (sync.client / "other name").unlink()
    (sync.client / "other name").write_bytes(b"its own")
    os.utime(sync.client / "a", ns=(123456789, 123456789))
    await sync()
    assert shape(sync.here) == shape(sync.client)


async def test_the_table_knows_what_files_look_like(sync):
    fill(sync.client)
    await sync()
    (sync.client / "a.txt").write_bytes(b"changed")
    await sync()
    with sync.table.open("rb") as file:
        looks = read_looks(file)
    assert looks
    tree = RootedTree(str(sync.here))
    for chosen in (Selection(), Selection(path="a"), Selection(path="a.txt"), Selection(exclude=["a/small"])):
        assert Digester(tree, looks).digest(chosen) == Digester(tree).digest(chosen)


async def test_a_directory_is_sent_into_another_with_one_time_for_all(sync):
    (sync.client / "file").write_bytes(b"x")
    await sync(prefix="linux_amd64", mtime=10**9)
    assert (sync.here / "linux_amd64" / "file").read_bytes() == b"x"
    assert os.stat(sync.here / "linux_amd64" / "file").st_mtime_ns == 10**9


async def test_a_socket_becomes_an_empty_file_as_with_buildkit(sync):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(sync.client / "sock"))
        await sync()
    assert (sync.here / "sock").read_bytes() == b""


async def test_devices_are_made(sync):
    os.mknod(sync.client / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(sync.client / "disk", 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    await sync()
    assert shape(sync.here) == shape(sync.client)


# --- hostile clients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stat_said", "reason"),
    [
        (Stat(b"x", MODE_DEVICE | MODE_CHARACTER | 0o600), "whiteout"),
        (Stat(b"x", MODE_DEVICE | 0o600, major=-1), "no device's number"),
        (Stat(b"x", MODE_SOCKET | 0o600), "of no known kind"),
        (Stat(b"x", MODE_PIPE | MODE_SOCKET | 0o600), "of no known kind"),
        (Stat(b"../x", 0o600), "invalid path"),
    ],
)
async def test_what_cannot_be_made_is_the_clients_fault(sync, stat_said, reason):
    with pytest.raises(InvalidParameter, match=reason):
        await sync.hear(packets.stat(stat_said), packets.end_of_stats())


async def test_a_name_that_no_file_system_takes(sync):
    with pytest.raises(SystemFault, match="file name too long"):
        await sync.hear(packets.stat(Stat(b"x" * 300, 0o600)))


async def test_overlay_attributes_are_left_out(sync):
    said = Stat(b"x", packets.MODE_DIRECTORY | 0o755, xattrs=((b"trusted.overlay.opaque", b"y"), (b"user.a", b"b")))
    with pytest.raises(InvalidParameter):
        await sync.hear(packets.stat(said), packets.stat(Stat(b"a")))
    assert os.listxattr(sync.here / "x") == ["user.a"]


async def test_a_link_cannot_lead_out(sync, trees):
    (trees / "secret").write_bytes(b"secret")
    with pytest.raises(InvalidParameter, match="invalid link"):
        await sync.hear(packets.stat(Stat(b"x", 0o600, link=b"../secret")), packets.end_of_stats())


async def test_a_client_that_leaves(sync):
    with pytest.raises(InvalidParameter, match="unexpected EOF"):
        await sync.hear(packets.stat(Stat(b"x", 0o600, size=5)))


async def test_a_client_whose_stream_breaks_is_told_in_its_own_words(sync):
    class Broken(End):
        async def receive(self):
            raise InvalidParameter("no access allowed to dir")

    with pytest.raises(InvalidParameter, match="no access allowed"):
        await exchange(sync.nursery, sync.job(), Broken(asyncio.Queue(), asyncio.Queue()))


async def test_a_failed_sync_leaves_no_table(sync):
    fill(sync.client)
    await sync()
    with pytest.raises(InvalidParameter):
        await sync.hear(packets.stat(Stat(b"x", 0o600, size=5)))
    assert not sync.table.exists()


async def test_more_data_than_pipes_hold_goes_both_ways_at_once(sync):
    """Thousands of requests are outstanding while data comes: nobody waits for the other for ever."""
    for number in range(3000):
        (sync.client / f"{number:05}-{'x' * 150}").write_bytes(b"%d" % number * 20)
    async with asyncio.timeout(60):
        files, _ = await sync()
    assert files == 3000
    assert shape(sync.here) == shape(sync.client)
