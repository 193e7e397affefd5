"""One file of a tree, found through its links."""

import os
from pathlib import Path

from husk.builder.store.workers.rooted_tree import RootedTree
from husk.builder.store.workers.tree_read import look, read
from husk.storage.workers.answers import FileContent, FoundFile, Invalid, Looked, Missing


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


def test_what_is_seen(tmp_path: Path, monkeypatch):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/file").write_bytes(b"text")
    (tmp_path / "d/file").chmod(0o640)
    (tmp_path / "d/link").symlink_to("file")
    os.utime(tmp_path / "d/file", ns=(5, 7))
    (tmp_path / "way").symlink_to("/d")
    tree = RootedTree(str(tmp_path))
    file = FoundFile(name="file", mode=0o100640, uid=os.getuid(), gid=os.getgid(), size=4, mtime_ns=7)
    assert look(tree, "/way/file", inside=False) == Looked([file])
    followed = look(tree, "/d/link", inside=False)
    assert isinstance(followed, Looked)
    assert followed.entries[0].size == 4
    seen = look(tree, "/way", inside=True)
    assert isinstance(seen, Looked)
    assert [(one.name, one.link) for one in seen.entries] == [("file", ""), ("link", "file")]
    root = look(tree, "/", inside=False)
    assert isinstance(root, Looked)
    assert root.entries[0].name == "/"
    assert isinstance(look(tree, "/missing", inside=True), Missing)
    assert isinstance(look(tree, "/d/file/x", inside=False), Missing)
    assert isinstance(look(tree, "/d/file", inside=True), Invalid)
    assert isinstance(look(tree, "/d", inside=True, most=1), Invalid)
