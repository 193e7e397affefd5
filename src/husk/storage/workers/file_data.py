"""How does the data of one file get into another, with as little work as the kernel lets us have?"""

import errno
import os

_CHUNK = 1 << 30
_BLOCK = 512
_SMALL = 16 << 10


def copy_data(source: int, target: int, status: os.stat_result) -> None:
    """Share the blocks where the file system can, else let the kernel copy them; holes stay holes."""
    size = status.st_size
    if size <= _SMALL and len(data := os.read(source, _SMALL + 1)) == size:
        # Faster than to have the kernel do it.
        if data:
            os.write(target, data)
        return
    if status.st_blocks * _BLOCK >= size:
        _copy_range(source, target, 0, size)
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
        _copy_range(source, target, start, end)
        at = end


def _copy_range(source: int, target: int, start: int, end: int) -> None:
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
