"""Paths lead where they would if the tree were all there is."""

import os
from pathlib import Path

import pytest

from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree, remove_all


@pytest.fixture
def tree(tmp_path: Path) -> RootedTree:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/file").touch()
    (tmp_path / "absolute").symlink_to("/a")
    (tmp_path / "upwards").symlink_to("../../../a/b")
    (tmp_path / "a/nowhere").symlink_to("/x/../y")
    (tmp_path / "circle").symlink_to("circle")
    return RootedTree(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/", ""),
        ("/a/./b/", "a/b"),
        ("/../../a", "a"),
        ("/absolute/b", "a/b"),
        ("/upwards", "a/b"),
        ("/upwards/..", "a"),
        ("/a/nowhere/z", "y/z"),
        ("/missing/deep/../x", "missing/x"),
    ],
)
def test_where_paths_lead(tree: RootedTree, path: str, resolved: str):
    assert tree.resolve(path) == resolved


def test_the_last_link_is_followed_only_if_wanted(tree: RootedTree):
    assert tree.resolve("/absolute/nowhere", follow_last=False) == "a/nowhere"
    assert tree.resolve("/absolute/", follow_last=False) == "absolute"


def test_links_that_lead_to_each_other_and_files_on_the_way(tree: RootedTree):
    with pytest.raises(ActionFailed, match="too many links"):
        tree.resolve("/circle")
    with pytest.raises(NotADirectoryError):
        tree.resolve("/a/file/below")


def test_directories_are_made_with_all_that_lacks_above(tree: RootedTree, tmp_path: Path):
    assert tree.make_directories("a/b/c/d", 0o750, None, 2_000_000_000) == ["a/b/c", "a/b/c/d"]
    assert tree.make_directories("a/b/c/d", 0o700, None, None) == []
    assert (tmp_path / "a/b/c/d").stat().st_mtime == 2
    with pytest.raises(ActionFailed, match="mkdir /a/file: not a directory"):
        tree.make_directories("a/file/x", 0o755, None, None)


def test_whatever_has_a_name_is_removed(tree: RootedTree, tmp_path: Path):
    for name in ("a", "absolute", "never"):
        remove_all(tree.fd, name)
    assert sorted(os.listdir(tmp_path)) == ["circle", "upwards"]
