"""Going down and up in a tree that is deep, wide, or changed by somebody else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.kernel.ladder import Ladder
from husk.kernel.trees import remove_tree


def standing_in(ladder: Ladder) -> set[str]:
    return set(os.listdir(ladder.fd))


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
    with Ladder(top) as ladder:
        for number in range(5000):
            os.mkdir("d", dir_fd=ladder.fd)
            os.mkdir(f"mark-{number}", dir_fd=ladder.fd)
            ladder.down("d")
        assert open_descriptors() < before + 25
        for number in reversed(range(5000)):
            assert ladder.up()
            assert standing_in(ladder) == {"d", f"mark-{number}"}
        assert ladder.names == []
    assert open_descriptors() == before


def test_a_link_is_not_stepped_into(top: int, tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with Ladder(top) as ladder:
        with pytest.raises(OSError):
            ladder.down("link")
        assert ladder.names == []
        assert standing_in(ladder) == {"real", "link"}


def down_to_the_bottom(ladder: Ladder, levels: int) -> None:
    for _ in range(levels):
        os.mkdir("d", dir_fd=ladder.fd)
        ladder.down("d")


def test_a_directory_that_was_moved_does_not_lead_elsewhere(top: int, tmp_path: Path):
    """Its `..` is another place now: the way back goes through the names from the top."""
    with Ladder(top) as ladder:
        down_to_the_bottom(ladder, 40)
        way = tmp_path.joinpath(*["d"] * 20)
        (tmp_path / "elsewhere").mkdir()
        (way / "d").rename(tmp_path / "elsewhere" / "d")
        for _ in range(19):
            assert ladder.up()
        # What was the 21st level lies elsewhere, but the 20th is where it was.
        assert ladder.up()
        assert len(ladder.names) == 20
        assert os.fstat(ladder.fd).st_ino == way.stat().st_ino


def test_a_way_back_that_is_gone_is_told_and_the_top_stays(top: int, tmp_path: Path):
    with Ladder(top) as ladder:
        down_to_the_bottom(ladder, 40)
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "d").rename(tmp_path / "elsewhere" / "other")
        (tmp_path / "d").mkdir()
        for _ in range(39):
            ladder.up()
        assert ladder.names == ["d"]
        assert ladder.up()
        assert standing_in(ladder) == {"d", "elsewhere"}


def test_nothing_stays_open_when_the_way_back_is_lost(top: int, tmp_path: Path):
    before = open_descriptors()
    with Ladder(top) as ladder:
        down_to_the_bottom(ladder, 100)
        (tmp_path / "d").rename(tmp_path / "moved")
        while ladder.names:
            ladder.up()
    assert open_descriptors() == before
