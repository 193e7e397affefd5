"""The status of a file as clients see it: in Go's numbers, which differ from the kernel's."""

import stat

from husk.api.types.containers import PathStat
from husk.engine.containers.copy import FileStatus
from husk.engine.model.clock import rfc3339

_DIRECTORY, _SYMLINK, _DEVICE, _PIPE, _SOCKET, _SETUID, _SETGID, _CHARACTER, _STICKY = (
    1 << bit for bit in (31, 27, 26, 25, 24, 23, 22, 21, 20)
)
_KINDS = {
    stat.S_IFDIR: _DIRECTORY,
    stat.S_IFLNK: _SYMLINK,
    stat.S_IFBLK: _DEVICE,
    stat.S_IFCHR: _DEVICE | _CHARACTER,
    stat.S_IFIFO: _PIPE,
    stat.S_IFSOCK: _SOCKET,
}
_BITS = ((stat.S_ISUID, _SETUID), (stat.S_ISGID, _SETGID), (stat.S_ISVTX, _STICKY))


def path_stat(status: FileStatus) -> PathStat:
    return PathStat(
        name=status.name,
        size=status.size,
        mode=go_mode(status.mode),
        mtime=_time(status.mtime_ns),
        link_target=status.link,
    )


def go_mode(mode: int) -> int:
    """os.FileMode of a file with the kernel's `mode`."""
    special = sum(go for kernel, go in _BITS if mode & kernel)
    return mode & 0o777 | _KINDS.get(stat.S_IFMT(mode), 0) | special


def _time(ns: int) -> str:
    """Go leaves out the zeros at the end of a fraction."""
    whole, _, fraction = rfc3339(ns).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"
