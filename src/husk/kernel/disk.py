"""What is in memory only, and how does it come to the disk? syncfs(2), which Python does not offer."""

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def sync_file_system(path: Path) -> None:
    """Return when all that was written to the file system of `path` would outlive a power cut. It may take long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(descriptor) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Return when the entries of a directory would outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
