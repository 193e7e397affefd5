"""Groups above a container's: made, marked, removed when they are ours and empty. On a tree of plain directories."""

import os
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.kernel import cgroup_parents, cgroups


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    roots = [tmp_path / name for name in ("cpu", "memory")]
    for root in roots:
        root.mkdir()
    marks: set[str] = set()
    monkeypatch.setattr(cgroups, "roots", lambda: roots)
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(os, "setxattr", lambda path, name, value: marks.add(str(path)))

    def getxattr(path: Path, name: str) -> bytes:
        if str(path) not in marks:
            raise OSError(61, "No data available")
        return b"1"

    monkeypatch.setattr(os, "getxattr", getxattr)
    return roots


def test_what_we_made_goes_and_what_others_made_stays(trees: list[Path]) -> None:
    for root in trees:
        (root / "theirs").mkdir()
    cgroup_parents.make("/theirs/ours/deeper/container")
    cgroup_parents.make("/theirs/ours/deeper/container")
    assert all((root / "theirs/ours/deeper").is_dir() for root in trees)
    assert not any((root / "theirs/ours/deeper/container").exists() for root in trees)
    cgroup_parents.remove("/theirs/ours/deeper/container")
    assert all(os.listdir(root / "theirs") == [] for root in trees)


def test_a_group_with_another_container_stays(trees: list[Path]) -> None:
    cgroup_parents.make("/ours/one")
    (trees[0] / "ours/two").mkdir()
    cgroup_parents.remove("/ours/one")
    assert (trees[0] / "ours").is_dir() and not (trees[1] / "ours").exists()


def test_a_tree_that_refuses_is_named(trees: list[Path]) -> None:
    (trees[1] / "file").write_text("")
    with pytest.raises(SystemFault, match="cannot make the cgroup"):
        cgroup_parents.make("/file/ours/container")


def test_every_group_on_the_way_grants_real_time_beside_what_it_grants_already(trees: list[Path]) -> None:
    other = trees[0] / "parent/other"
    other.mkdir(parents=True)
    (other / "cpu.rt_runtime_us").write_text("2000")
    cgroup_parents.grant_realtime("/parent/middle/container", 1000, 10_000)
    assert (trees[0] / "parent/cpu.rt_runtime_us").read_text() == "3000"
    assert (trees[0] / "parent/middle/cpu.rt_runtime_us").read_text() == "1000"
    assert (trees[0] / "parent/middle/cpu.rt_period_us").read_text() == "10000"
