"""Going down and up in a tree that is deep, wide, or changed by somebody else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel.tree_cursor import TreeCursor
from husk.kernel.trees import remove_tree


def standing_in(cursor: TreeCursor) -> set[str]:
    return set(os.listdir(cursor.fd))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def top(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)
    # pytest's own way to remove it recurses.
    remove_tree(tmp_path)


def test_many_levels_cost_few_descriptors_and_the_way_back_is_the_same(top: int):
    before = open_descriptors()
    with TreeCursor(top) as cursor:
        for number in range(5000):
            os.mkdir("d", dir_fd=cursor.fd)
            os.mkdir(f"mark-{number}", dir_fd=cursor.fd)
            cursor.down("d")
        assert open_descriptors() < before + 25
        for number in reversed(range(5000)):
            assert cursor.up()
            assert standing_in(cursor) == {"d", f"mark-{number}"}
        assert cursor.names == []
    assert open_descriptors() == before


def test_a_link_is_not_stepped_into(top: int, tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with TreeCursor(top) as cursor:
        with pytest.raises(OSError):
            cursor.down("link")
        assert cursor.names == []
        assert standing_in(cursor) == {"real", "link"}


def down_to_the_bottom(cursor: TreeCursor, levels: int) -> None:
    for _ in range(levels):
        os.mkdir("d", dir_fd=cursor.fd)
        cursor.down("d")


def test_a_directory_that_was_moved_does_not_lead_elsewhere(top: int, tmp_path: Path):
    """Its `..` is another place now: the way back goes through the names from the top."""
    with TreeCursor(top) as cursor:
        down_to_the_bottom(cursor, 40)
        way = tmp_path.joinpath(*["d"] * 20)
        (tmp_path / "elsewhere").mkdir()
        (way / "d").rename(tmp_path / "elsewhere" / "d")
        for _ in range(19):
            assert cursor.up()
        # What was the 21st level lies elsewhere, but the 20th is where it was.
        assert cursor.up()
        assert len(cursor.names) == 20
        assert os.fstat(cursor.fd).st_ino == way.stat().st_ino


def test_a_way_back_that_is_gone_is_told_and_the_top_stays(top: int, tmp_path: Path):
    with TreeCursor(top) as cursor:
        down_to_the_bottom(cursor, 40)
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "d").rename(tmp_path / "elsewhere" / "other")
        (tmp_path / "d").mkdir()
        for _ in range(39):
            cursor.up()
        assert cursor.names == ["d"]
        assert cursor.up()
        assert standing_in(cursor) == {"d", "elsewhere"}


def test_nothing_stays_open_when_the_way_back_is_lost(top: int, tmp_path: Path):
    before = open_descriptors()
    with TreeCursor(top) as cursor:
        down_to_the_bottom(cursor, 100)
        (tmp_path / "d").rename(tmp_path / "moved")
        while cursor.names:
            cursor.up()
    assert open_descriptors() == before
