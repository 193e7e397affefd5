"""Digests of files as BuildKit computes them: those of the records that it made for the same files."""

import hashlib
import os

import pytest

from husk.builder.store.file_actions import Selection
from husk.builder.store.portable_digest import PortableDigester
from husk.builder.store.workers.file_job import NotThere
from husk.builder.store.workers.rooted_tree import RootedTree

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: owners count")


@pytest.fixture
def tree(tmp_path):
    """The context of the build whose digests are below."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir").chmod(0o755)
    for name, content in {"a.txt": "hello\n", "dir/b.txt": "b\n"}.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o644)
    (tmp_path / "dir/link").symlink_to("a.txt")
    return tmp_path


def record(*digests):
    """The name of a record of files: a digest of digests, as output -1."""
    joined = "sha256:" + hashlib.sha256("\0".join(digests).encode()).hexdigest()
    return hashlib.sha256(f"{joined}@-1".encode()).hexdigest()[:16]


def digest(tree, path, *, older=False, synced=True, **more):
    return PortableDigester(RootedTree(str(tree)), synced, older).digest(Selection(path=path, **more))


def test_a_file(tree):
    assert record(digest(tree, "/a.txt", follow_links=True)) == "c24a47b576469b52"


def test_a_directory(tree):
    assert record(digest(tree, "/dir", follow_links=True)) == "3e34ec9b3cd5db9e"


def test_what_wildcards_choose_is_a_list_since_0_26_with_paths(tree):
    assert record(digest(tree, "/*.txt", wildcards=True, follow_links=True, older=True)) == "2a5862c6b220b636"
    assert record(digest(tree, "/*.txt", wildcards=True, follow_links=True)) == "01436a46cff605df"


def test_times_do_not_count_and_modes_do(tree):
    before = digest(tree, "/")
    os.utime(tree / "a.txt", (1, 1))
    assert digest(tree, "/") == before
    (tree / "a.txt").chmod(0o600)
    assert digest(tree, "/") != before


def test_the_root_of_a_sync_has_no_header(tree):
    assert digest(tree, "/", synced=True) != digest(tree, "/", synced=False)


def test_links_are_followed_if_that_is_wanted(tree):
    (tree / "to").symlink_to("dir")
    assert digest(tree, "/to", follow_links=True) == digest(tree, "/dir")
    assert digest(tree, "/to") != digest(tree, "/dir")
    assert digest(tree, "/to/b.txt") == digest(tree, "/dir/b.txt")


def test_patterns_choose_files_with_what_is_above_them(tree):
    chosen = digest(tree, "/", include=["dir/b.txt"])
    (tree / "a.txt").write_text("changed")
    assert digest(tree, "/", include=["dir/b.txt"]) == chosen
    (tree / "dir").chmod(0o700)
    assert digest(tree, "/", include=["dir/b.txt"]) != chosen
    assert digest(tree, "/", exclude=["dir"]) == digest(tree, "/", include=["a.txt"])
    assert digest(tree, "/", include=["nothing"]) == "sha256:" + hashlib.sha256().hexdigest()


def test_special_files_and_attributes_count(tree):
    os.mkfifo(tree / "dir/pipe")
    one = digest(tree, "/dir")
    os.mknod(tree / "dir/null", 0o20666, os.makedev(1, 3))
    two = digest(tree, "/dir")
    os.setxattr(tree / "dir/b.txt", "user.note", b"x")
    assert len({one, two, digest(tree, "/dir")}) == 3


@pytest.mark.parametrize("more", [{}, {"include": ["x"], "required": ["/x"]}])
def test_what_is_not_there(tree, more):
    with pytest.raises(NotThere):
        digest(tree, "/missing", **more)
