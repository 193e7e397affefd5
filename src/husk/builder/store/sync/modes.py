"""Modes of files: Go's bits, as clients send them, in the system's."""

import os
import stat as modes
from functools import lru_cache

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import Stat, SyncError

_WHITEOUT = (0, 0)


@lru_cache(maxsize=512)
def permissions(mode: int) -> int:
    """A mode of Go's in the system's bits, without the kind."""
    bits = mode & 0o777
    if mode & packets.MODE_SETUID:
        bits |= modes.S_ISUID
    if mode & packets.MODE_SETGID:
        bits |= modes.S_ISGID
    if mode & packets.MODE_STICKY:
        bits |= modes.S_ISVTX
    return bits


def special_kind(stat: Stat) -> int:
    """The kind of a pipe or a device, in the system's bits."""
    kind = stat.mode & packets.MODE_KIND
    if kind == packets.MODE_PIPE:
        return modes.S_IFIFO
    if kind == packets.MODE_DEVICE | packets.MODE_CHARACTER:
        if (stat.major, stat.minor) == _WHITEOUT:
            raise SyncError(f"{os.fsdecode(stat.path)!r} is an overlay's whiteout")
        return modes.S_IFCHR
    if kind == packets.MODE_DEVICE:
        return modes.S_IFBLK
    raise SyncError(f"{os.fsdecode(stat.path)!r} is of no known kind (mode {stat.mode:#o})")


def device(stat: Stat) -> int:
    """The number of a device; 0 for a pipe."""
    if stat.mode & packets.MODE_PIPE:
        return 0
    if not (0 <= stat.major < 1 << 12 and 0 <= stat.minor < 1 << 20):
        raise SyncError(f"{os.fsdecode(stat.path)!r} has no device's number")
    return os.makedev(stat.major, stat.minor)


def system_mode(stat: Stat) -> int:
    """Return the mode that the system shows for a file that was made as the client told."""
    kind = stat.mode & packets.MODE_KIND
    if not kind:
        return modes.S_IFREG | permissions(stat.mode)
    if kind & packets.MODE_DIRECTORY:
        return modes.S_IFDIR | permissions(stat.mode)
    if kind == packets.MODE_SYMLINK:
        return modes.S_IFLNK | 0o777
    return special_kind(stat) | permissions(stat.mode)
