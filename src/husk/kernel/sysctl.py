"""Reads and writes settings below /proc/sys. Network settings are those of the thread's namespace."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = Path("/proc/sys")

# The same numbers on all architectures.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC = 1
_CREATE = 6
_NO_SUID_DEVICES_PROGRAMS = 2 | 4 | 8

_libc = ctypes.CDLL(None, use_errno=True)


def read(name: str) -> str:
    """The value of a setting, named by its path (`net/ipv4/ip_forward`): interface names may contain dots."""
    return (_ROOT / name).read_text().strip()


def write(name: str, value: str, root: int | None = None) -> None:
    """`root` is what `fresh` gave."""
    # Without the layers of a file object: a start of a container writes several.
    path = f"{_ROOT}/{name}" if root is None else f"sys/{name}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=root)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def try_write(name: str, value: str, root: int | None = None) -> None:
    """Write a setting that the kernel may lack, or that the host may not let us change."""
    with suppress(OSError):
        write(name, value, root)


@contextmanager
def fresh() -> Iterator[int | None]:
    """A file system of the kernel's settings that nobody else sees, for the settings of one network namespace; None
    where it cannot be had.

    In /proc the kernel remembers the same few names once for each namespace that was ever asked for them, and whoever
    asks next passes all of those: beside 1,000 namespaces half a millisecond for each setting, of the host's too. A
    file system of one's own costs 0.04 ms, and takes what it remembers with it.
    """
    try:
        descriptor = _mounted()
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mounted() -> int:
    context = _call(_FSOPEN, b"proc", _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOEXEC, _NO_SUID_DEVICES_PROGRAMS)
    finally:
        os.close(context)


def _call(number: int, *arguments: bytes | int | None) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
