import io
import tarfile

import pytest

from husk.client.tars import one_file, only_file, tree
from husk.errors import InvalidParameter


def test_a_file_comes_back():
    assert only_file(one_file("/in/data", b"text"), "/in/data") == b"text"
    assert only_file(one_file("/in/data", "täxt", mode=0o600), "/in/data") == "täxt".encode()


def test_only_the_file_is_in_the_archive():
    """Directories on the way keep what they are: the engine makes those that are missing."""
    with tarfile.open(fileobj=io.BytesIO(one_file("/a/b/c", b"x", mode=0o755, owner=(3, 4)))) as archive:
        assert [(entry.name, entry.mode, entry.uid, entry.gid) for entry in archive] == [("a/b/c", 0o755, 3, 4)]


@pytest.mark.parametrize("path", ["relative", "/", "/a/../b", ""])
def test_what_is_no_place_for_a_file(path):
    with pytest.raises(InvalidParameter, match="absolute path"):
        one_file(path, b"")


def test_a_tree_under_another_name(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with tarfile.open(fileobj=io.BytesIO(tree(tmp_path, "there"))) as archive:
        assert archive.getnames() == ["there", "there/file"]


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(InvalidParameter, match="not a regular file"):
        only_file(tree(tmp_path, "there"), "/there")
