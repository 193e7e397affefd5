"""Reads and writes settings below /proc/sys. Network settings are those of the thread's namespace."""

import os
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/proc/sys")


def read(name: str) -> str:
    """The value of a setting, named by its path (`net/ipv4/ip_forward`): interface names may contain dots."""
    return (_ROOT / name).read_text().strip()


def write(name: str, value: str) -> None:
    # Without the layers of a file object: a start of a container writes several.
    descriptor = os.open(f"{_ROOT}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def try_write(name: str, value: str) -> None:
    """Write a setting that the kernel may lack, or that the host may not let us change."""
    with suppress(OSError):
        write(name, value)
