"""One file of a tree, found through its links."""

import os
from pathlib import Path

from husk.storage.workers.messages import FileContent, Invalid, Missing
from husk.storage.workers.rooted_tree import RootedTree
from husk.storage.workers.tree_read import read


def test_what_is_read_and_what_is_not(tmp_path: Path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("/d/file")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "fifo")
    tree = RootedTree(str(tmp_path))
    assert read(tree, "/link", 4) == FileContent(b"text")
    assert read(tree, "/link", 3) == FileContent(b"tex")
    assert isinstance(read(tree, "/missing", 9), Missing)
    assert isinstance(read(tree, "/d/file/x", 9), Missing)
    for path in ("/fifo", "/d", "/circle"):
        assert isinstance(read(tree, path, 9), Invalid)
