from pathlib import Path

import pytest

from husk.kernel import cgroups
from husk.kernel.cgroups import Hierarchy, mode_of, parse_mounts

V1 = """\
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,release_agent=/x,name=systemd 0 0
cgroup /run/copy cgroup rw,memory 0 0
"""
HYBRID = V1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\nproc /proc proc rw 0 0\n"


def test_trees_and_their_controllers_are_read_from_the_mount_table() -> None:
    assert parse_mounts(V1) == [
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), 1, frozenset({"cpu", "cpuacct"})),
        Hierarchy(Path("/sys/fs/cgroup/memory"), 1, frozenset({"memory"})),
        Hierarchy(Path("/sys/fs/cgroup/systemd"), 1, frozenset({"name=systemd"})),
    ]


@pytest.mark.parametrize(("table", "mode"), [(V1, "v1"), (HYBRID, "hybrid"), (V2, "v2")])
def test_the_layout_is_told_by_where_the_v2_tree_is(table: str, mode: str) -> None:
    assert mode_of(parse_mounts(table)) == mode


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plain directories in place of a v1 layout."""
    for controller in ("memory", "pids"):
        (tmp_path / controller / "husk" / "1" / "below").mkdir(parents=True)
        (tmp_path / controller / "cgroup.procs").touch()
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    return tmp_path


def test_a_cgroup_is_removed_from_every_tree_with_what_is_below(tree: Path) -> None:
    cgroups.remove("/husk/1")
    cgroups.remove("/husk/1")
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_dir()) == [
        "memory",
        "memory/husk",
        "pids",
        "pids/husk",
    ]


@pytest.mark.parametrize("path", ["", "/", "/husk/../..", "../x"])
def test_only_paths_below_the_root_are_touched(tree: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not the path of a cgroup"):
        cgroups.remove(path)


def test_processes_are_counted_once_over_all_trees(tree: Path) -> None:
    (tree / "memory" / "husk" / "1" / "cgroup.procs").write_text("10\n11\n")
    (tree / "pids" / "husk" / "1" / "below" / "cgroup.procs").write_text("11\n12\n")
    assert cgroups.processes("/husk/1") == {10, 11, 12}
    assert cgroups.processes("/husk/2") == set()


def test_a_directory_beside_the_trees_holds_no_cgroups(tree: Path) -> None:
    """crun makes plain files there when a controller is mounted in another mount namespace only."""
    (tree / "hugetlb" / "husk" / "1").mkdir(parents=True)
    (tree / "hugetlb" / "husk" / "1" / "cgroup.procs").write_text("10\n")
    assert cgroups.processes("/husk/1") == set()
    cgroups.remove("/husk/1")
    assert not (tree / "pids" / "husk" / "1").exists()


def test_a_tree_that_is_mounted_elsewhere_only_is_told_when_a_directory_is_at_its_place(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [Hierarchy(tree / "pids", 1, frozenset({"pids"}))])
    membership = "4:hugetlb:/\n3:name=systemd:/\n2:memory,cpu:/\n1:pids:/\n0::/\n"
    monkeypatch.setattr(cgroups, "_OWN_GROUPS", tree / "own")
    (tree / "own").write_text(membership)
    assert cgroups.unmounted() == ("memory",)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("memory/husk/1/memory.oom_control", "oom_kill_disable 0\n"), ("husk/1/memory.events", "oom 1\n")],
)
def test_an_oom_kill_is_counted_by_the_kernel(tree: Path, name: str, prefix: str) -> None:
    file = tree / name
    file.parent.mkdir(parents=True, exist_ok=True)
    assert not cgroups.oom_killed("/husk/1")
    file.write_text(prefix + "oom_kill 0\n")
    assert not cgroups.oom_killed("/husk/1")
    file.write_text(prefix + "oom_kill 2\n")
    assert cgroups.oom_killed("/husk/1")


def test_new_groups_have_the_processors_of_the_one_above_them(tree: Path) -> None:
    cgroups.inherit_processors("/husk")
    group = tree / "cpuset" / "husk"
    group.mkdir(parents=True)
    cgroups.inherit_processors("/husk")
    flag = group / "cgroup.clone_children"
    flag.write_text("0\n")
    cgroups.inherit_processors("/husk")
    assert flag.read_text().endswith("1"), "a plain file gets the word after what was read"
    flag.write_text("1\n")
    cgroups.inherit_processors("/husk")
    assert flag.read_text() == "1\n"
