"""Checks of mounts on /proc, whose contents count as the kernel's word for programs and security modules.

A client may put a file over a few that only inform, and the host's own /proc on it; runc takes no more, crun takes
anything. A path is judged twice. By its name, when the container is made. And by where the mount came to be, before the
first program runs: links of an image or of a volume may have led it here.
"""

from collections.abc import Callable, Collection, Iterable

from husk.errors import InvalidParameter
from husk.kernel import mount
from husk.kernel.mount import Mounted, mounted

PROC = "/proc"
# Files that tell how the machine does; LXCFS and the like put their own here.
INFORMING = frozenset({
    "/proc/cpuinfo", "/proc/diskstats", "/proc/loadavg", "/proc/meminfo", "/proc/slabinfo", "/proc/stat", "/proc/swaps",
    "/proc/uptime", "/proc/net/dev", "/proc/sys/kernel/ns_last_pid", "/proc/sys/crypto/fips_enabled",
})  # fmt: skip
SAFE = frozenset({"nosuid", "nodev", "noexec"})


def check_name(kind: str, destination: str) -> None:
    """Refuse a mount of a client by the name of its place."""
    if destination == PROC and kind != "bind":
        raise InvalidParameter(f'"{destination}" cannot be mounted because it is not of type proc')
    if _is_inside(destination) and destination not in INFORMING:
        raise InvalidParameter(f'"{destination}" cannot be mounted because it is inside /proc')


def secure(pid: int, masked: Collection[str], readonly: Collection[str]) -> None:
    """Before a container runs: refuse what is mounted on its /proc, and make safe what the runtime put there."""
    table = mounted(pid, PROC)
    check_mounts(table, masked, readonly, mounted)
    if points := unsafe(table, readonly):
        mount.remount_in(pid, points, mount.MS_RDONLY | mount.MS_NOSUID | mount.MS_NODEV | mount.MS_NOEXEC)


def check_mounts(
    table: Iterable[Mounted],
    masked: Collection[str],
    readonly: Collection[str],
    host: Callable[[], Iterable[Mounted]],
) -> None:
    """Raises if something is mounted on /proc that neither the runtime nor the host's own /proc has there.

    `host` tells the mounts of the host, which may be many; it is asked only when there is something to excuse.
    """
    own = [*masked, *readonly]
    for entry in table:
        if entry.point == PROC and (entry.kind != "proc" or entry.root != "/"):
            raise InvalidParameter(f'"{entry.point}" cannot be mounted because it is not of type proc')
        if not _is_inside(entry.point) or entry.point in INFORMING:
            continue
        if entry.point not in own:
            # What is mounted below the host's /proc comes along with it: binfmt_misc, for one.
            if any(
                _is_inside(each.point) and (each.device, each.root) == (entry.device, entry.root) for each in host()
            ):
                continue
            raise InvalidParameter(f'"{entry.point}" cannot be mounted because it is inside /proc')
        # The runtime's is one; a second one at the same place is the client's.
        own.remove(entry.point)


def unsafe(table: Iterable[Mounted], readonly: Collection[str]) -> list[str]:
    """Pure: the read-only places of /proc on which the runtime (crun) has not kept the flags of /proc itself."""
    return [
        entry.point
        for entry in table
        if entry.kind == "proc" and entry.point in readonly and _is_inside(entry.point) and not entry.options >= SAFE
    ]


def _is_inside(path: str) -> bool:
    return path.startswith(PROC + "/")
