"""Copies of trees: what goes where. Owners, devices and what overlayfs adds are tested with real workers."""

import os
from pathlib import Path

import pytest

from husk.globs import Patterns
from husk.storage.workers.copying import Copier, Look, copy_data
from husk.storage.workers.rooted_tree import ActionFailed, RootedTree


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
    copier = Copier(RootedTree(str(here)), RootedTree(str(there)), Look(owner), **options)  # type: ignore[arg-type]
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


def test_holes_stay_holes(tmp_path: Path):
    with open(tmp_path / "one", "wb") as file:
        file.write(b"begin")
        file.truncate(30_000_000)
    with open(tmp_path / "one", "rb") as source, open(tmp_path / "two", "wb") as target:
        copy_data(source.fileno(), target.fileno(), os.fstat(source.fileno()))
    status = (tmp_path / "two").stat()
    assert status.st_size == 30_000_000 and status.st_blocks * 512 < 1_000_000
    assert (tmp_path / "two").read_bytes()[:6] == b"begin\0"


def test_data_that_the_kernel_does_not_copy_between_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*arguments: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "one").write_bytes(b"x" * 3_000_000)
    with open(tmp_path / "one", "rb") as source, open(tmp_path / "two", "wb") as target:
        copy_data(source.fileno(), target.fileno(), os.fstat(source.fileno()))
    assert (tmp_path / "two").read_bytes() == b"x" * 3_000_000
