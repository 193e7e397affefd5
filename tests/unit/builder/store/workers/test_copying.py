"""Copies of trees: what goes where. Owners, devices and what overlayfs adds are tested with real workers."""

import os
from pathlib import Path

import pytest

from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.copying import TreeCopier
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree
from husk.text.globs import Patterns


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "d/e").mkdir(parents=True)
    (source / "d/file").write_text("text")
    os.link(source / "d/file", source / "d/e/same")
    (source / "d/link").symlink_to("file")
    target.mkdir()
    return source, target


def copied(trees: tuple[Path, Path], source: str = "", target: str = "", **options: object) -> list[str]:
    here, there = trees
    owner = os.getuid(), os.getgid()
    copier = TreeCopier(RootedTree(str(here)), RootedTree(str(there)), CopyLook(owner), **options)  # type: ignore[arg-type]
    copier.copy(source, target)
    return sorted(str(path.relative_to(there)) for path in there.rglob("*"))


def test_a_tree_with_its_links(trees: tuple[Path, Path]):
    assert copied(trees) == ["d", "d/e", "d/e/same", "d/file", "d/link"]
    target = trees[1]
    assert (target / "d/e/same").stat().st_ino == (target / "d/file").stat().st_ino
    assert os.readlink(target / "d/link") == "file"


def test_a_single_file_under_another_name(trees: tuple[Path, Path]):
    assert copied(trees, "d/file", "new") == ["new"]


def test_what_patterns_choose(trees: tuple[Path, Path]):
    assert copied(trees, include=Patterns(["d/*/same"])) == ["d", "d/e", "d/e/same"]


def test_what_patterns_leave_out(trees: tuple[Path, Path]):
    assert copied(trees, exclude=Patterns(["d/e", "**/link"])) == ["d", "d/file"]


def test_something_of_another_kind_is_in_the_way(trees: tuple[Path, Path]):
    (trees[1] / "d").write_text("a file")
    with pytest.raises(ActionFailed, match="cannot copy to non-directory: /d"):
        copied(trees)
    assert "d/e/same" in copied(trees, replace=True)


def test_the_size_of_what_was_made_is_known_unless_something_was_in_the_way(trees: tuple[Path, Path]):
    here, there = trees
    for expected in (4, None):
        copier = TreeCopier(RootedTree(str(here)), RootedTree(str(there)), CopyLook((os.getuid(), os.getgid())))
        copier.copy("", "")
        assert copier.size == expected
