"""Files are packed while they come, to the very bytes that packing them afterwards gives."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from husk.builder.store.sync import packets, receive
from husk.builder.store.sync.pack_ahead import PackAhead, pack, top_of
from husk.builder.store.sync.packets import MODE_CHARACTER, MODE_DEVICE, MODE_DIRECTORY, MODE_PIPE, MODE_SYMLINK, Stat
from husk.builder.store.workers.diff_blob import write_blob
from husk.builder.store.workers.jobs import ReceiveJob
from husk.builder.store.workers.layer_tar import heads_of_tree
from husk.storage.tar.members import TarWriter
from husk.storage.workers.answers import Failed, Invalid, Packed, Received
from husk.storage.workers.parts import MARK, AheadPlan, Blob
from tests.unit.builder.store.sync.test_receive import Said

ME: dict[str, Any] = {"uid": os.getuid(), "gid": os.getgid()}
LARGE = os.urandom((2 << 20) + 7)
LEAST = 1 << 20
STATS = [
    Stat(b"d", MODE_DIRECTORY | 0o750, mtime=5 * 10**9, **ME),
    Stat(b"d/empty", 0o644, mtime=6 * 10**9, **ME),
    Stat(b"d/large", 0o600, size=len(LARGE), mtime=1_700_000_000_999_999_999, **ME),
    Stat(b"d/small", 0o755, size=5, mtime=8 * 10**9, **ME),
    Stat(b"long " * 40, 0o644, size=3, mtime=9 * 10**9, **ME),
    Stat(b"pipe", MODE_PIPE | 0o644, mtime=9 * 10**9, **ME),
    Stat(b"to", MODE_SYMLINK | 0o777, link=b"d/small", mtime=9 * 10**9, **ME),
    Stat("\u00e4".encode(), 0o644, size=2, mtime=9 * 10**9, **ME),
]
CONTENTS = {b"d/empty": b"", b"d/large": LARGE, b"d/small": b"small", b"long " * 40: b"abc", "\u00e4".encode(): b"ae"}


def make(stat: Stat) -> None:
    """A file that looks as it was told."""
    if stat.mode & MODE_DIRECTORY:
        os.mkdir(stat.path)
    elif stat.mode & MODE_SYMLINK:
        os.symlink(stat.link, stat.path)
    elif stat.mode & MODE_PIPE:
        os.mkfifo(stat.path)
    else:
        Path(os.fsdecode(stat.path)).write_bytes(CONTENTS[stat.path])
    if not stat.mode & MODE_SYMLINK:
        os.chmod(stat.path, stat.mode & 0o777)


def date_all(stats: list[Stat]) -> None:
    for stat in stats:
        os.utime(stat.path, ns=(stat.mtime, stat.mtime), follow_symlinks=False)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A layer's directory with an empty one for the files, which is the current one."""
    top = tmp_path / "layer/app"
    top.mkdir(parents=True)
    monkeypatch.chdir(top)
    return tmp_path


def lead_of(layer: Path) -> bytes:
    """Return the beginning of the layer's tar."""
    out = io.BytesIO()
    TarWriter(out).add_directory("app", (layer / "app").stat())
    return out.getvalue()


def packed(tree: Path, stats: list[Stat], wait: Callable[[], object]) -> Packed:
    os.utime(tree / "layer/app", (4, 4))
    (tree / "blob").write_bytes(MARK + lead_of(tree / "layer"))
    with io.FileIO(tree / "blob", "r+") as file:
        return pack(file, iter(stats), wait)


def afterwards(tree: Path, stats: list[Stat]) -> Packed:
    """Return the result of packing the files."""
    date_all(stats)
    os.utime(tree / "layer/app", (4, 4))
    return packing_of(tree)


def packing_of(tree: Path) -> Packed:
    before = os.getcwd()
    source = os.open(tree / "layer/app", os.O_RDONLY)
    try:
        heads = heads_of_tree("app", source, lambda status: status)
    finally:
        os.close(source)
        os.chdir(before)
    with io.FileIO(tree / "after", "w+") as file:
        return Packed(Blob(*write_blob(tree / "layer", file, None)), heads)


def never() -> None:
    raise AssertionError("all is here")


def test_files_that_are_here(tree: Path):
    for stat in STATS:
        make(stat)
    assert packed(tree, STATS, never) == afterwards(tree, STATS)
    assert (tree / "blob").read_bytes() == (tree / "after").read_bytes()


def test_files_that_come_bit_by_bit(tree: Path):
    # What is no plain file is made when it is told of.
    stats = [stat for stat in STATS if not stat.mode & (MODE_SYMLINK | MODE_PIPE)]

    def coming() -> Iterator[None]:
        for stat in stats:
            content = CONTENTS.get(stat.path, b"")
            if len(content) < 100:
                make(stat)
                yield
                continue
            with open(stat.path, "wb", buffering=0) as file:
                os.chmod(stat.path, stat.mode)
                for at in range(0, len(content), 300_000):
                    file.write(content[at : at + 300_000])
                    yield

    steps = coming()
    found = packed(tree, stats, lambda: next(steps))
    list(steps)
    assert found == afterwards(tree, stats)


@pytest.mark.parametrize(
    "stat",
    [
        Stat(b"d/large", 0o644, xattrs=((b"user.x", b"1"),)),
        Stat(b"same", 0o644, link=b"d/small"),
        Stat(b"null", MODE_DEVICE | MODE_CHARACTER | 0o666, major=1, minor=3),
    ],
)
def test_what_is_not_simple_is_left_to_others(tree: Path, stat: Stat):
    assert packed(tree, [stat], never) == Packed()


def test_where_files_go(tree: Path):
    lead = lead_of(tree / "layer")
    assert (top_of(b""), top_of(lead)) == ("", "app/")
    out = io.BytesIO()
    TarWriter(out).add_empty("app/.wh..wh..opq")
    assert top_of(lead + out.getvalue()) is None


# --- the worker that receives


@pytest.fixture
def job(tree: Path) -> ReceiveJob:
    os.utime(tree / "layer/app", (4, 4))
    (tree / "blob").write_bytes(MARK + lead_of(tree / "layer"))
    plan = AheadPlan(str(tree / "blob"), 4 * 10**9)
    return ReceiveJob(str(tree / "layer/app"), "", str(tree / "new"), plan)


def told(data: bytes, size: int | None = None) -> Said:
    stat = Stat(b"large", 0o644, size=len(data) if size is None else size, mtime=7 * 10**9, **ME)
    pieces = [data[at : at + 200_000] for at in range(0, len(data), 200_000)]
    messages = (packets.data_head(0, len(piece)) + piece for piece in (*pieces, b""))
    return Said(packets.stat(stat) + packets.end_of_stats(), *messages, packets.fin())


def received(job: ReceiveJob, client: Said) -> tuple[Received | Invalid | Failed, Packed | None]:
    """Both answers of the worker."""
    with PackAhead(job.ahead, LEAST) as ahead:
        answer = receive.receive(job, client, ahead, os.chdir)
        packing = isinstance(answer, Received) and answer.packing
        return answer, ahead.finish() if packing else None


def children() -> set[str]:
    """Return the processes that this one has started."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, _, rest = status.read_text().rpartition(")")
            if rest.split()[1] == str(os.getpid()):
                found.add(number.split()[0])
    return found


ALL = Received(1, len(LARGE), len(LARGE))


def test_a_sync_packs_beside(job: ReceiveJob, tree: Path):
    assert received(job, told(LARGE)) == (replace(ALL, packing=True), packing_of(tree))
    assert (tree / "layer/app").stat().st_mtime == 4
    assert (tree / "blob").read_bytes() == (tree / "after").read_bytes()


@pytest.mark.parametrize("size", [len(LARGE) - 1, len(LARGE) + 1])
def test_a_file_that_changes_in_the_sending(job: ReceiveJob, size: int):
    assert received(job, told(LARGE, size)) == (ALL, None)


def test_what_the_tar_begins_with_is_not_known(job: ReceiveJob, tree: Path):
    (tree / "blob").write_bytes(b"")
    assert received(job, told(LARGE)) == (ALL, None)
    assert (tree / "blob").read_bytes() == b""


def test_a_tar_that_nobody_wants_any_more(job: ReceiveJob, tree: Path):
    (tree / "blob").unlink()
    assert received(job, told(LARGE)) == (ALL, None)


def test_little_is_not_packed(job: ReceiveJob, tree: Path):
    assert received(job, told(b"x" * 1000)) == (Received(1, 1000, 1000), None)
    assert (tree / "blob").read_bytes()[:1] == MARK


def test_a_full_disk_is_left_alone(job: ReceiveJob, monkeypatch: pytest.MonkeyPatch):
    class Full:
        f_bavail, f_frsize = 1, 4096

    monkeypatch.setattr(os, "fstatvfs", lambda fd: Full())
    assert received(job, told(LARGE)) == (ALL, None)


def test_a_client_that_goes_leaves_no_process(job: ReceiveJob):
    client = told(LARGE)
    del client.pieces[4:]
    before = children()
    with PackAhead(job.ahead, LEAST) as ahead:
        assert receive.receive(job, client, ahead, os.chdir) == Invalid("unexpected EOF")
        assert len(children() - before) == 1
    assert children() == before


def test_a_host_without_room_for_a_process_packs_later(job: ReceiveJob, monkeypatch: pytest.MonkeyPatch):
    def fork() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", fork)
    assert received(job, told(LARGE)) == (ALL, None)
