"""A tree is copied as it is, however deep, and never out of its destination."""

import os
from pathlib import Path

import pytest

from husk.kernel.trees import remove_tree
from husk.storage.volumes.copies import copy_tree


def copy(source: Path, destination: Path) -> None:
    ends = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (source, destination)]
    try:
        copy_tree(*ends)
    finally:
        for end in ends:
            os.close(end)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    directory.mkdir()
    return directory


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    directory = tmp_path / "destination"
    directory.mkdir()
    return directory


def test_files_links_modes_and_times(source: Path, destination: Path) -> None:
    (source / "sub").mkdir(mode=0o750)
    (source / "f").write_bytes(b"x" * 100_000)
    os.utime(source / "f", ns=(1_000_000_007, 2_000_000_009))
    (source / "f").chmod(0o4755)
    os.link(source / "f", source / "sub/hard")
    (source / "sub/soft").symlink_to("/etc/passwd")
    os.mkfifo(source / "sub/pipe", 0o622)
    (source / "sub/pipe").chmod(0o622)
    source.chmod(0o2711)
    copy(source, destination)
    assert (destination / "f").read_bytes() == b"x" * 100_000
    status = (destination / "f").stat()
    assert (status.st_mode & 0o7777, status.st_mtime_ns, status.st_nlink) == (0o4755, 2_000_000_009, 2)
    assert (destination / "sub/hard").stat().st_ino == status.st_ino
    assert os.readlink(destination / "sub/soft") == "/etc/passwd"
    assert (destination / "sub/pipe").is_fifo() and (destination / "sub/pipe").stat().st_mode & 0o7777 == 0o622
    assert (destination / "sub").stat().st_mode & 0o7777 == 0o750
    assert destination.stat().st_mode & 0o7777 == 0o2711


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owners_and_attributes(source: Path, destination: Path) -> None:
    (source / "f").touch()
    os.chown(source / "f", 12, 13)
    os.setxattr(source / "f", "user.a", b"b")
    (source / "l").symlink_to("nowhere")
    os.chown(source / "l", 14, 15, follow_symlinks=False)
    os.chown(source, 7, 8)
    copy(source, destination)
    owners = [
        (s.st_uid, s.st_gid) for s in (destination.stat(), (destination / "f").stat(), (destination / "l").lstat())
    ]
    assert owners == [(7, 8), (12, 13), (14, 15)]
    assert os.getxattr(destination / "f", "user.a") == b"b"


def test_a_link_in_the_destination_is_not_followed(source: Path, destination: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (source / "d").mkdir()
    (source / "d/f").touch()
    (destination / "d").symlink_to(outside)
    with pytest.raises(OSError):
        copy(source, destination)
    assert os.listdir(outside) == []


def test_what_exists_stays(source: Path, destination: Path, tmp_path: Path) -> None:
    (source / "f").write_text("new")
    (source / "g").write_text("new")
    (destination / "f").write_text("old")
    (tmp_path / "target").write_text("untouched")
    (destination / "g").symlink_to(tmp_path / "target")
    copy(source, destination)
    assert (destination / "f").read_text() == "old" and (tmp_path / "target").read_text() == "untouched"


def test_deeper_than_any_path(source: Path, destination: Path) -> None:
    name, depth = "d" * 200, 60
    before = len(os.listdir("/proc/self/fd"))
    here = os.open(source, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    try:
        copy(source, destination)
        here = os.open(destination, os.O_RDONLY)
        for _ in range(depth):
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        assert os.listdir(here) == ["f"]
        os.close(here)
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        remove_tree(source)
        remove_tree(destination)
