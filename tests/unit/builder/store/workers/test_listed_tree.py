"""Files that a table tells of are copied, and packed, as those that are looked at."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from husk.builder.store.sync_table import NO_PLACE, Brief, Listed
from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.listed_tree import CopyMeasures, ListedTree, WantedCopy, is_much, list_tree
from husk.kernel.trees import walk
from husk.storage.tar.members import TarWriter

ROOT = os.getuid() == 0


FEW = CopyMeasures(many=1, small_mean=1 << 30, piece=4)


@pytest.fixture(autouse=True)
def unmasked() -> Iterator[None]:
    mask = os.umask(0)
    yield
    os.umask(mask)


@pytest.fixture(params=["one process", "two processes"])
def copied(request: pytest.FixtureRequest) -> "partial[Copied]":
    return partial(Copied, processors=1 if request.param == "one process" else 2)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # which is another one afterwards
    top = tmp_path / "source"
    (top / "d/e").mkdir(parents=True)
    for number in range(30):
        (top / f"d/{number}").write_bytes(os.urandom(number * 100))
    (top / "d/large").write_bytes(os.urandom((2 << 20) + 7))
    (top / "d/link").symlink_to("file")
    (top / "d/far").symlink_to("x" * 200)
    (top / ("long " * 40)).write_text("a name that needs more than a plain header")
    (top / "d/\u00e4").write_text("a name that is not ASCII")
    (top / os.fsdecode(b"d/\xff")).write_text("a name that is not UTF-8")
    (top / "z").write_text("the last")
    (top / "z").chmod(0o4711)
    os.utime(top / "d/7", ns=(0, 1_700_000_000_999_999_999))
    os.utime(top / "d/8", ns=(0, -5))
    if ROOT:
        os.chown(top / "d/9", 7, 1 << 24)
        os.chown(top / "d/e", 3, 4)
    (top / "d/e").chmod(0o2750)
    os.utime(top / "d/e", (1, 1))
    os.utime(top / "d", (2, 2))
    return top


def listed(top: Path, places: dict[bytes, int] | None = None) -> Listed:
    """Return the entries that the table of a sync would tell."""
    paths, briefs = [], []
    fd = os.open(top, os.O_RDONLY)
    for found in walk(fd):
        status = found.status
        paths.append(os.fsencode(found.path))
        briefs.append(Brief(status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns))
    os.close(fd)
    return Listed(paths, briefs, [(places or {}).get(path, NO_PLACE) for path in paths])


class Copied:
    def __init__(
        self,
        source: Path,
        top: str,
        found: Listed,
        look: CopyLook | None = None,
        former: bytes = b"",
        processors: int = 2,
    ) -> None:
        self.target = Path(os.path.normpath(source / f"../target{len(list(source.parent.glob('target*')))}"))
        self.target.mkdir()
        here = os.open(source, os.O_RDONLY)
        seen = look.seen if look else None
        wanted = WantedCopy(top, seen, lambda link: os.readlink(link, dir_fd=here), former)
        tree = list_tree(found, wanted, FEW._replace(processors=processors))
        assert tree is not None
        self.tree: ListedTree = tree
        there, tar = os.open(self.target, os.O_RDONLY), os.memfd_create("tar")
        os.pwrite(tar, b"before", 0)
        tree.copy(here, there, tar, 6)
        assert os.fstat(tar).st_size == 6 + tree.size
        self.tar = os.pread(tar, tree.size, 6)
        for fd in (here, there, tar):
            os.close(fd)

    def looks(self) -> list[object]:
        return looks(self.target)


def looks(top: Path) -> list[object]:
    found = listed(top)
    content = [
        os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        for path in (top / os.fsdecode(name) for name in found.paths)
    ]
    # How large a directory is, is the file system's own matter.
    briefs = [brief._replace(size=0) if stat.S_ISDIR(brief.mode) else brief for brief in found.briefs]
    return list(zip(found.paths, briefs, content, strict=True))


class Gathered(bytearray):
    def write(self, data: bytes) -> None:
        self.extend(data)

    def flush(self) -> None:
        pass


def packed(top: Path, prefix: str) -> bytes:
    """The tar of files that are looked at."""
    out = Gathered()
    members = TarWriter(out)
    fd = os.open(top, os.O_RDONLY)
    for found in walk(fd, os.fchdir):
        members.add(prefix + found.path, os.fsencode(found.name), found.status)
    os.close(fd)
    return bytes(out)


@pytest.mark.parametrize("top", ["", "context", "a/\u00e4"])
def test_copies_and_their_tar(source: Path, top: str, copied: "partial[Copied]"):
    made = copied(source, top, listed(source))
    assert made.looks() == looks(source)
    assert made.tar == packed(source, f"{top}/" if top else "")
    assert made.tree.bytes == sum(path.lstat().st_size for path in source.rglob("*") if path.is_file())


@pytest.mark.skipif(not ROOT, reason="owners are given by root")
def test_another_look(source: Path, copied: "partial[Copied]"):
    made = copied(source, "x", listed(source), CopyLook(owner=(5, 6), mode=0o750, time=10**9))
    for _, brief, _ in made.looks():  # type: ignore[misc]
        assert (brief.uid, brief.gid, brief.mtime) == (5, 6, 10**9)  # type: ignore[has-type]
        assert stat.S_ISLNK(brief.mode) or stat.S_IMODE(brief.mode) == 0o750  # type: ignore[has-type]
    assert made.tar == packed(made.target, "x/")


def test_what_is_in_the_former_tar_is_not_opened(source: Path, copied: "partial[Copied]"):
    first = copied(source, "x", listed(source))
    former = b"lead" + first.tar
    places = dict(zip(listed(source).paths, first.tree.places(4), strict=True))
    for name in ("3", "29"):
        (source / f"d/{name}").write_text("another")
        del places[f"d/{name}".encode()]
    (source / "d/12").unlink()
    (source / "d/new").write_text("new")
    del places[b"d"]  # its time is another one
    expected, found = looks(source), listed(source, places)
    tar = packed(source, "x/")
    (source / "d/20").write_bytes(b"never read")
    again = copied(source, "x", found, former=former)
    assert again.looks() == expected
    assert again.tar == tar


def _shorter(former: bytes) -> bytes:
    return former[:-512]


def _moved(former: bytes) -> bytes:
    return b"x" * 512 + former


@pytest.mark.parametrize("change", [_shorter, _moved])
def test_a_former_tar_that_is_another_one_is_left_alone(
    source: Path, change: Callable[[bytes], bytes], copied: "partial[Copied]"
):
    first = copied(source, "x", listed(source))
    places = dict(zip(listed(source).paths, first.tree.places(0), strict=True))
    again = copied(source, "x", listed(source, places), former=change(first.tar))
    assert again.looks() == looks(source)
    assert again.tar == first.tar


def test_without_a_tar(source: Path, tmp_path: Path):
    tree = list_tree(
        listed(source), WantedCopy("", None, lambda link: os.readlink(source / os.fsdecode(link)).encode()), FEW
    )
    assert tree is not None
    target = tmp_path / "without"
    target.mkdir()
    here, there = os.open(source, os.O_RDONLY), os.open(target, os.O_RDONLY)
    tree.copy(here, there, -1, 0)
    os.close(here)
    os.close(there)
    assert looks(target) == looks(source)


def test_how_much_there_is_in_a_directory(source: Path):
    there, fd = len(listed(source).paths), os.open(source, os.O_RDONLY)
    assert is_much(fd, there)
    assert not is_much(fd, there + 1)
    os.close(fd)


def one(mode: int, size: int = 1, path: bytes = b"a") -> Listed:
    return Listed([path], [Brief(mode, 0, 0, size, 0)], [NO_PLACE])


@pytest.mark.parametrize(
    "found",
    [
        one(stat.S_IFIFO | 0o644),
        one(stat.S_IFREG | 0o644, size=-1),
        one(stat.S_IFREG | 0o644, size=(1 << 30) + 1),
        one(stat.S_IFREG | 0o644, path=b"a" * 5000),
        Listed([], [], []),
    ],
    ids=["pipe", "negative", "large", "long", "nothing"],
)
def test_what_is_left_to_others(found: Listed):
    assert list_tree(found, WantedCopy("", None, lambda link: b""), FEW) is None


@pytest.mark.parametrize("name", ["d/0", "d/large", "d/9"])
def test_a_file_that_is_not_what_was_told(source: Path, name: str, copied: "partial[Copied]"):
    found = listed(source)
    (source / name).write_bytes(b"123")
    with pytest.raises(OSError, match="is not what was received") as raised:
        copied(source, "", found)
    assert raised.value.errno == errno.EIO


def test_a_second_process_that_cannot_go_on_is_heard(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    me, real, failed = os.getpid(), os.symlink, tmp_path / "failed"
    for number in range(30):  # each piece has a link
        (source / f"d/{number}").unlink()
        (source / f"d/{number}").symlink_to("x")

    def full(*arguments: object, **options: object) -> None:
        if os.getpid() != me:
            failed.touch()
            raise OSError(errno.ENOSPC, "No space left on device", b"d/link")
        deadline = time.monotonic() + 60
        while not failed.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "symlink", full)
    with pytest.raises(OSError, match="No space left"):
        Copied(source, "", listed(source))
