"""A container's control group on this host, by its path below each tree of control groups."""

from husk.errors import SystemFault
from husk.kernel import accounting, brief_usage, cgroup_parents, cgroups
from husk.kernel.accounting import CPU, BlockOperation, Interface, Memory, Usage
from husk.kernel.brief_usage import BriefUsage
from husk.kernel.cgroups import lift_cpu_quota, lift_pids_limit, oom_killed, oom_kills, processes

__all__ = [
    "CPU", "BlockOperation", "BriefUsage", "Interface", "Memory", "Usage", "brief", "clear", "interfaces",
    "lift_cpu_quota", "lift_pids_limit", "make_parents", "oom_killed", "oom_kills", "processes", "remove", "usage",
]  # fmt: skip


def make_parents(path: str, *, named: bool, realtime: int | None, period: int | None) -> None:
    """Before a start: what is above a group that a client `named` the parent of, and room for its real-time threads."""
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


def usage(path: str) -> Usage:
    return accounting.read_usage(path)


def brief(path: str, pid: int) -> BriefUsage | None:
    """A few numbers of many; `pid` is a process with the container's own network, 0 if it has none."""
    return brief_usage.read(path, pid)


def interfaces(pid: int) -> dict[str, Interface]:
    """The interfaces that a process sees, with what went through them."""
    return accounting.read_interfaces(pid)
