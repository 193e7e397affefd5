"""Copying of one file's data and attributes into another, with as little work as the kernel lets us have."""

import contextlib
import errno
import os

from husk.storage.tar.whiteouts import is_overlay_xattr

_CHUNK = 1 << 30
_BLOCK = 512
SMALL = 16 << 10


def copy_data(source: int, target: int, status: os.stat_result) -> None:
    """Share the blocks where the file system can, else let the kernel copy them; holes stay holes."""
    size = status.st_size
    if size <= SMALL and len(data := os.read(source, SMALL + 1)) == size:
        # Faster than to have the kernel do it.
        if data:
            os.write(target, data)
        return
    if not is_sparse(status):
        copy_range(source, target, 0, size)
        return
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            start = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole is left
            raise
        end = os.lseek(source, start, os.SEEK_HOLE)
        copy_range(source, target, start, end)
        at = end


def is_sparse(status: os.stat_result) -> bool:
    """Tell if this file has holes."""
    return status.st_blocks * _BLOCK < status.st_size


def copy_range(source: int, target: int, start: int, end: int) -> None:
    """Share these bytes, or have the kernel copy them."""
    at = start
    while at < end:
        try:
            count = os.copy_file_range(source, target, min(end - at, _CHUNK), at, at)
        except OSError:
            if at > start:
                raise
            _send_range(source, target, start, end)
            return
        if not count:
            return
        at += count


def _send_range(source: int, target: int, start: int, end: int) -> None:
    os.lseek(target, start, os.SEEK_SET)
    while start < end and (count := os.sendfile(target, source, start, min(end - start, _CHUNK))):
        start += count


def xattrs_of(fd: int) -> dict[str, bytes]:
    try:
        if not (keys := os.listxattr(fd)):
            return {}
        return {key: os.getxattr(fd, key) for key in keys if not is_overlay_xattr(key)}
    except OSError:
        return {}


def set_xattrs(fd: int, xattrs: dict[str, bytes]) -> None:
    for key, value in xattrs.items():
        # The file system may not have them; the files are worth more than their attributes.
        with contextlib.suppress(OSError):
            os.setxattr(fd, key, value)


def copy_xattrs_of_name(here: int, name: str, there: int, new_name: str) -> None:
    """Of what cannot be opened: the current directory, which is nobody else's, says where it is."""
    with contextlib.suppress(OSError):
        os.fchdir(here)
        for key in os.listxattr(name, follow_symlinks=False):
            os.fchdir(here)
            value = os.getxattr(name, key, follow_symlinks=False)
            os.fchdir(there)
            os.setxattr(new_name, key, value, follow_symlinks=False)
