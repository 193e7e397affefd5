"""Removing and measuring trees, the deep ones as well."""

import os
import resource
import threading
from pathlib import Path

import pytest

from husk.kernel.trees import discard_tree, remove_tree, tree_size, walk


def deepen(top: Path, levels: int) -> None:
    """Nest directories with a file in each, deeper than any path reaches."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.mkdir("directory-with-a-name", dir_fd=fd)
        below = os.open("directory-with-a-name", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    bottom = os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    os.write(bottom, b"12345")
    os.close(bottom)
    os.close(fd)


def test_a_tree_deeper_than_a_path_can_be_long_is_measured_and_removed(tmp_path: Path):
    top = tmp_path / "top"
    top.mkdir()
    deepen(top, 3000)
    assert tree_size(top) == 5
    remove_tree(top)
    assert not top.exists()


def test_links_are_removed_and_not_followed(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "link").symlink_to(outside)
    (top / "sub" / "link").symlink_to(outside / "kept")
    assert tree_size(top) == 0
    remove_tree(top)
    assert not top.exists()
    assert (outside / "kept").read_text() == "kept"


def test_names_like_our_own_do_not_collide(tmp_path: Path):
    top = tmp_path / "top"
    for name in (".husk-0", ".husk-1/.husk-0/.husk-0", "x/.husk-2/y", ".husk-2/z"):
        (top / name).mkdir(parents=True)
    (top / ".husk-3").write_text("a file")
    remove_tree(top)
    assert not top.exists()


def test_removing_what_is_not_there_is_nothing(tmp_path: Path):
    remove_tree(tmp_path / "nothing")
    assert tree_size(tmp_path / "nothing") == 0


def test_a_stopped_removal_is_taken_up_again(tmp_path: Path):
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    stop = threading.Event()
    stop.set()
    remove_tree(top, stop)
    assert top.exists()
    remove_tree(top)
    assert not top.exists()


def test_a_file_with_two_names_counts_once(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"x" * 100)
    os.link(tmp_path / "one", tmp_path / "two")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "three").write_bytes(b"x" * 10)
    assert tree_size(tmp_path) == 110


def test_a_wide_tree_far_below_costs_few_descriptors(tmp_path: Path):
    """As many directories as a process may have descriptors, where their paths are too long to be used."""
    top = tmp_path / "top"
    top.mkdir()
    deepen(top, 200)
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(200):
        below = os.open("directory-with-a-name", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    for number in range(300):
        os.mkdir(f"wide-{number}", dir_fd=fd)
    os.close(fd)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, limits[1]))
    try:
        assert tree_size(top) == 5
        remove_tree(top)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not top.exists()


def test_a_walk_is_in_the_order_of_names_and_tells_where_it_is(tmp_path: Path):
    for name in ("b/y", "b/x/deep", "a", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b" / "x.file").write_text("")
    (tmp_path / "link").symlink_to("b")
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    entered: list[int] = []
    try:
        paths = [found.path for found in walk(fd, lambda directory: entered.append(os.fstat(directory).st_ino))]
    finally:
        os.close(fd)
    assert paths == ["a", "b", "b/x", "b/x/deep", "b/x.file", "b/y", "c", "link"]
    b, top = (tmp_path / "b").stat().st_ino, tmp_path.stat().st_ino
    assert entered[:6] == [top, (tmp_path / "a").stat().st_ino, top, b, (tmp_path / "b/x").stat().st_ino, entered[5]]


def test_what_vanishes_during_a_walk_is_left_out(tmp_path: Path):
    for name in ("a/1", "b/2", "c/3"):
        (tmp_path / name).mkdir(parents=True)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    paths = []
    try:
        for found in walk(fd):
            paths.append(found.path)
            if found.name == "a":
                (tmp_path / "b/2").rmdir()
                (tmp_path / "b").rmdir()
            if found.name == "c":
                (tmp_path / "c").rename(tmp_path / "moved")
    finally:
        os.close(fd)
    assert paths == ["a", "a/1", "c"]


def test_what_cannot_be_removed_is_told_and_not_raised(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").write_text("")
    assert discard_tree(tmp_path / "file") and not (tmp_path / "file").exists()
    assert discard_tree(tmp_path / "nothing there")
    (tmp_path / "link").symlink_to(tmp_path)
    assert discard_tree(tmp_path / "link") and tmp_path.is_dir()
    assert not discard_tree("/proc/self/task")
    assert "cannot delete /proc/self/task" in caplog.text
