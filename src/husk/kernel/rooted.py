"""How to read a file of a container's tree without being led out of it? By openat2, with the tree as the root.

A symbolic link inside an image may point anywhere; the kernel resolves it as if the tree were `/`.
"""

import ctypes
import os
from pathlib import Path

_SYS_OPENAT2 = 437
_RESOLVE_IN_ROOT = 0x10
_RESOLVE_NO_MAGICLINKS = 0x02
_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_in_root(root: Path, path: str, flags: int, mode: int = 0) -> int:
    """A file descriptor of `path` below `root`; raises OSError as `os.open` does."""
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = _OpenHow(flags | os.O_CLOEXEC, mode, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
        fd = _libc.syscall(_SYS_OPENAT2, root_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if fd < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)
        return int(fd)
    finally:
        os.close(root_fd)


def read_text(root: Path, path: str, limit: int = 1 << 20) -> str:
    """The beginning of a text file of the tree; empty if there is none."""
    try:
        fd = open_in_root(root, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        return file.read(limit).decode(errors="replace")
