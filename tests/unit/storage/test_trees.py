"""Removing and measuring trees, the deep ones as well."""

import os
import threading
from pathlib import Path

from husk.storage.trees import remove_tree, tree_size


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
