"""The resources that a container uses, by its control group and a process of it. Loaded with the first question."""

from husk.kernel import accounting, brief_usage
from husk.kernel.accounting import CPU, BlockOperation, Interface, MemoryUsage, ResourceUsage
from husk.kernel.brief_usage import BriefUsage

__all__ = [
    "CPU",
    "BlockOperation",
    "BriefUsage",
    "Interface",
    "MemoryUsage",
    "ResourceUsage",
    "brief",
    "interfaces",
    "usage",
]


def usage(path: str) -> ResourceUsage:
    return accounting.read_usage(path)


def brief(path: str, pid: int) -> BriefUsage | None:
    """A few numbers of many; `pid` is a process with the container's own network, 0 if it has none."""
    return brief_usage.read(path, pid)


def interfaces(pid: int) -> dict[str, Interface]:
    """The interfaces that a process sees, with what went through them."""
    return accounting.read_interfaces(pid)
