"""A tree is made the same as another one, and what is the same already is not touched."""

import os
import shutil
from pathlib import Path

import pytest

from husk.builder.store.workers.difference import Difference
from husk.builder.store.workers.rooted_tree import RootedTree
from husk.storage.compare import first_difference


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    root = tmp_path / "lower"
    (root / "d/e").mkdir(parents=True)
    for name in ("same", "d/changed", "d/gone", "d/e/deep", "kind"):
        (root / name).write_text("old")
    (root / "link").symlink_to("same")
    return root


def made_the_same(lower: Path, upper: Path) -> Path:
    target = lower.with_name("target")
    shutil.copytree(lower, target, symlinks=True)
    before = (target / "same").stat().st_ino
    Difference(*(RootedTree(str(tree)) for tree in (lower, upper, target))).write()
    assert first_difference(upper, target) == ""
    assert (target / "same").stat().st_ino == before
    return target


def test_whatever_differs(lower: Path):
    upper = lower.with_name("upper")
    shutil.copytree(lower, upper, symlinks=True)
    (upper / "d/gone").unlink()
    (upper / "d/changed").write_text("new")
    (upper / "d/e").chmod(0o700)
    (upper / "kind").unlink()
    (upper / "kind").mkdir()
    (upper / "kind/inside").write_text("1")
    (upper / "link").unlink()
    (upper / "link").symlink_to("d")
    (upper / "new/dir").mkdir(parents=True)
    (upper / "new/dir/one").write_text("1")
    os.link(upper / "new/dir/one", upper / "new/two")
    made_the_same(lower, upper)


def test_the_same_size_and_second_with_another_content(lower: Path):
    upper = lower.with_name("upper")
    shutil.copytree(lower, upper, symlinks=True)
    (upper / "d/changed").write_text("OLD")
    for root in (lower, upper):
        os.utime(root / "d/changed", (5, 5))
    made_the_same(lower, upper)
