"""A container's control group on this host, by its path below each tree of control groups."""

from pathlib import PurePosixPath

from husk.errors import SystemFault
from husk.kernel import cgroup_parents, cgroups
from husk.kernel.cgroups import lift_cpu_quota, lift_pids_limit, oom_killed, oom_kills, processes

__all__ = [
    "clear", "lift_cpu_quota", "lift_pids_limit", "make_parents", "oom_killed", "oom_kills", "processes", "remove",
]  # fmt: skip


def make_parents(path: str, *, named: bool, realtime: int | None, period: int | None) -> None:
    """Before a start: what is above a group that a client `named` the parent of, and room for its real-time threads.
    What our own groups have in common they get from the one above them."""
    if not named:
        cgroups.inherit_processors(str(PurePosixPath(path).parent))
    if not (named or realtime):
        return

    if named:
        cgroup_parents.make(path)
    if realtime:
        cgroup_parents.grant_realtime(path, realtime, period or 0)


def clear(path: str, *, named: bool) -> None:
    """A runtime that was cut off leaves its cgroup; a container in the host's pid namespace leaves processes."""
    try:
        cgroups.remove(path)
    except SystemFault:
        cgroups.kill_all(path)
        cgroups.remove(path)
    if named:
        cgroup_parents.remove(path)


def remove(path: str) -> None:
    cgroups.remove(path)
