"""The tree that is sent, told in order."""

import os
import stat

import pytest

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import MODE_DIRECTORY, MODE_SYMLINK
from husk.builder.store.sync.sender import TreeReader, to_go_mode


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_directory_comes_before_what_is_in_it_and_names_by_their_bytes(here):
    (here / "a").mkdir()
    (here / "a" / "z").write_bytes(b"1")
    (here / "a.b").write_bytes(b"2")
    (here / "B").write_bytes(b"3")
    assert [entry.path for entry in TreeReader().walk()] == [b"B", b"a", b"a/z", b"a.b"]


def test_what_is_told_of_files(here):
    (here / "file").write_bytes(b"12345")
    (here / "file").chmod(0o640)
    os.utime(here / "file", ns=(7, 7))
    (here / "link").symlink_to("file")
    os.link(here / "file", here / "other")
    file, link, other = TreeReader().walk()
    assert (file.mode, file.size, file.mtime, file.link) == (0o640, 5, 7, b"")
    assert (link.mode & packets.MODE_KIND, link.link) == (MODE_SYMLINK, b"file")
    assert (other.mode, other.size, other.link) == (0o640, 0, b"file")


def test_a_prefix_is_a_directory_around_all(here):
    (here / "file").write_bytes(b"data")
    tree = TreeReader("linux_amd64", 9)
    top, file = tree.walk()
    assert (top.path, top.mode, top.mtime) == (b"linux_amd64", MODE_DIRECTORY | 0o755, 9)
    assert (file.path, file.mtime) == (b"linux_amd64/file", 9)
    assert b"".join(tree.open(file)) == b"data"


def test_what_cannot_be_opened_is_empty(here):
    (here / "file").write_bytes(b"data")
    tree = TreeReader()
    (file,) = tree.walk()
    (here / "file").unlink()
    assert list(tree.open(file)) == []


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (stat.S_IFREG | 0o4755, packets.MODE_SETUID | 0o755),
        (stat.S_IFDIR | 0o3777, MODE_DIRECTORY | packets.MODE_SETGID | packets.MODE_STICKY | 0o777),
        (stat.S_IFCHR | 0o600, packets.MODE_DEVICE | packets.MODE_CHARACTER | 0o600),
        (stat.S_IFSOCK | 0o600, 0o600),
    ],
)
def test_modes(mode, told):
    assert to_go_mode(mode) == told
