"""A /dev/shm that a container shares with others: a tmpfs on the host, at exec-root/shm/<id>, while the container runs.

A mount that was made inside the container could not be given to another one. `release` is what unmounts it.
"""

import contextlib
import os
from pathlib import Path

from husk.errors import SystemFault
from husk.kernel.mount import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, unmount


def make(directory: Path, size: int) -> None:
    """Mount it; nothing happens when it is mounted."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A file system of its own is known by its number; the table of all mounts is long beside many containers.
    if os.stat(directory).st_dev == os.stat(directory.parent).st_dev:
        try:
            mount("shm", str(directory), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, f"mode=1777,size={size}")
        except OSError as error:
            reason = f"cannot mount the shared memory of container {directory.name}: {error.strerror}"
            raise SystemFault(reason) from error


def release(directory: Path) -> None:
    """Safe to call twice, and where there never was one. Those who joined keep what they have."""
    if directory.exists():
        unmount(str(directory), detach=True)
        with contextlib.suppress(OSError):
            directory.rmdir()
