"""Writing of what is in memory only to the disk: syncfs(2), sync_file_range(2), fsync(2)."""

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

_SYNC_FILE_RANGE_WRITE = 2


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


def sync_file(path: Path) -> None:
    """Return when a file's content would outlive a power cut; its name is the directory's, see `sync_directory`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def begin_writing(descriptor: int, offset: int, count: int) -> None:
    """Tell the kernel to begin to write a part of a file to the disk, so that whoever syncs the file later waits less.

    Nothing is promised by it, and where a file system cannot do it nothing happens.
    """
    _libc.sync_file_range(
        descriptor, ctypes.c_int64(offset), ctypes.c_int64(count), ctypes.c_uint(_SYNC_FILE_RANGE_WRITE)
    )
