"""Two trees with the same headers have the same digest, and others have another one."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.builder.store.workers.tar_heads import Heads, heads_of_tree
from husk.storage.tar.members import TarWriter


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    (files / "d").mkdir(parents=True)
    (files / "d/small").write_text("text")
    (files / "d/large").write_bytes(os.urandom(300_000))
    (files / "link").symlink_to("d")
    os.mkfifo(files / "pipe")
    (files / ("long " * 40)).write_text("a name that needs more than a plain header")
    return files


def heads(files: Path, path: str = "app") -> str:
    before = os.getcwd()
    source = os.open(files, os.O_RDONLY)
    try:
        return heads_of_tree(path, source, lambda status: status)
    finally:
        os.close(source)
        os.chdir(before)


def test_the_same(files: Path):
    assert heads(files) == heads(files) != ""
    assert heads(files) != heads(files, "other") != heads(files, "")


def test_contents_do_not_count(files: Path):
    before, status = heads(files), (files / "d/small").stat()
    (files / "d/small").write_text("TEXT")
    os.utime(files / "d/small", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert heads(files) == before


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: (files / "new").touch(),
        lambda files: (files / "d/small").unlink(),
        lambda files: (files / "d/small").rename(files / "d/smaller"),
        lambda files: (files / "d/small").chmod(0o600),
        lambda files: os.utime(files / "d", (1, 1)),
        lambda files: append(files / "d/large"),
    ],
)
def test_another_tree(files: Path, change: Callable[[Path], object]):
    before = heads(files)
    change(files)
    assert heads(files) not in (before, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: os.link(files / "d/large", files / "z"),
        lambda files: os.setxattr(files / "d/large", "user.x", b"1"),
        lambda files: os.setxattr(files / "d", "user.x", b"1"),
    ],
)
def test_what_is_not_simple(files: Path, change: Callable[[Path], object]):
    change(files)
    assert heads(files) == ""


def test_headers_are_passed_on(files: Path):
    out = io.BytesIO()
    passing, alone = Heads(out), Heads()
    for one in (passing, alone):
        TarWriter(one).add_directory("app", files.stat())
    assert passing.digest() == alone.digest()
    assert len(out.getvalue()) == 512
