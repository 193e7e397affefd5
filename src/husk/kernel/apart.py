"""Namespaces of this very process: what it starts has mounts, process ids, a network or a host's name of its own.

For a process that does nothing else: all of its threads must be where it is.
"""

import ctypes
import os

from husk.kernel.mount import mount

MOUNTS, PIDS, NAME = 0x00020000, 0x20000000, 0x04000000
"""With `PIDS` it is the next child that has the first process id; when that one ends, all others there do."""
_NETWORK = 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(kinds: int) -> None:
    """Move this thread into new namespaces of these kinds, which it shares with nobody."""
    if _libc.unshare(kinds) != 0:
        _fail("make namespaces")


def enter_network(descriptor: int) -> None:
    """Be in the network namespace of a descriptor."""
    if _libc.setns(descriptor, _NETWORK) != 0:
        _fail("enter a network namespace")


def keep_mounts_apart() -> None:
    """In a new mount namespace: what is mounted here is seen nowhere else, and /proc shows the processes from here."""
    mount("none", "/", "none", _MS_REC | _MS_PRIVATE)
    mount("proc", "/proc", "proc")


def _fail(what: str) -> None:
    code = ctypes.get_errno()
    raise OSError(code, f"{what}: {os.strerror(code)}")
