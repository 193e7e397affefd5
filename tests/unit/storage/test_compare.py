"""Two trees are the same, or the first difference is named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from husk.storage.compare import first_difference


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "d/e").mkdir(parents=True)
    (one / "d/file").write_bytes(b"x" * 3_000_000)
    (one / "link").symlink_to("d/file")
    (one / "d/e" / os.fsdecode(b"\xff")).write_text("")
    shutil.copytree(one, other, symlinks=True)
    os.link(one / "d/file", one / "d/same")
    os.link(other / "d/file", other / "d/same")
    return one, other


def touch(path: Path) -> None:
    os.utime(path, ns=(0, 0), follow_symlinks=False)


def swap(root: Path) -> None:
    """A second file in place of a second name."""
    (root / "d/same").unlink()
    shutil.copy2(root / "d/file", root / "d/same")


def flip(path: Path) -> None:
    status = path.stat()
    path.write_bytes(b"x" * 2_999_999 + b"y")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def relink(root: Path) -> None:
    status = (root / "link").lstat()
    (root / "link").unlink()
    (root / "link").symlink_to("d/e")
    os.utime(root / "link", ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


CHANGES: dict[str, Callable[[Path], object]] = {
    "": lambda root: touch(root / "d"),
    "/d/file is missing": lambda root: (root / "d/file").unlink(),
    "/d/e/more does not belong there": lambda root: (root / "d/e/more").mkdir(),
    "/d/e/\\xff is missing": lambda root: (root / "d/e" / os.fsdecode(b"\xff")).unlink(),
    "/d has another mode": lambda root: (root / "d").chmod(0o700),
    "/d/file has another time": lambda root: touch(root / "d/file"),
    "/d/file has another content": lambda root: flip(root / "d/file"),
    "/d/file has another set of names": swap,
    "/link has another target": relink,
}


@pytest.mark.parametrize("difference", CHANGES)
def test_the_first_difference_is_named(trees: tuple[Path, Path], difference: str):
    CHANGES[difference](trees[1])
    assert first_difference(*trees) == difference


def test_a_tree_deeper_than_a_path_is_long(tmp_path: Path):
    for name in ("one", "other"):
        fd = os.open(tmp_path, os.O_RDONLY)
        for part in [name, *["d" * 200] * 40]:
            os.mkdir(part, dir_fd=fd)
            inner = os.open(part, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = inner
        if name == "other":
            os.mkdir("more", dir_fd=fd)
        os.close(fd)
    assert first_difference(tmp_path / "one", tmp_path / "one") == ""
    assert first_difference(tmp_path / "one", tmp_path / "other").endswith("/more does not belong there")
    shutil.rmtree(tmp_path / "one", ignore_errors=True)
