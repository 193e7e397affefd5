"""The files of a tree, with their digests."""

import hashlib
import os
from pathlib import Path

from husk.builder.store.workers.listing import listed
from husk.kernel.trees import remove_tree


def test_all_that_are_no_directories_in_order(tmp_path: Path) -> None:
    (tmp_path / "d/empty").mkdir(parents=True)
    (tmp_path / "d/file").write_bytes(b"text")
    (tmp_path / "a").symlink_to("d/file")
    os.mkfifo(tmp_path / "z")
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        digest = "sha256:" + hashlib.sha256(b"text").hexdigest()
        assert list(listed(root, digests=True)) == [("a", ""), ("d/file", digest), ("z", "")]
        assert list(listed(root, digests=False)) == [("a", ""), ("d/file", ""), ("z", "")]
    finally:
        os.close(root)


def test_a_tree_that_is_deeper_than_python_recurses(tmp_path: Path) -> None:
    (tmp_path / "above").touch()
    root = os.open(tmp_path, os.O_RDONLY)
    here = os.dup(root)
    for depth in range(3000):
        if depth in (1500, 2999):
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert list(listed(root, digests=False)) == [("above", ""), ("d/" * 1500 + "file", "")], "the rest has no path"
    finally:
        os.close(root)
        remove_tree(tmp_path / "d")
