"""Room on the disk that is kept for what must be possible when it is full: to delete, and to note what has ended.

A file whose blocks are allocated but hold nothing. Given up, they are free for the next write; it is made again when
the disk has room for many of its kind.
"""

import contextlib
import errno
import os
from pathlib import Path

SIZE = 1 << 20
# It is made when there is room for this many of its kind: a reserve must not take the last room from everybody else.
_TIMES = 4
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    def __init__(self, path: Path, size: int = SIZE) -> None:
        self._path = path
        self._size = size

    def give_up(self) -> bool:
        """Make its room free; False if there is none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def keep(self) -> bool:
        """Make it, where it is missing and the disk has room for it. False when the disk is as good as full."""
        try:
            # One that is shorter holds no room: whoever made it was killed before it was allocated.
            if self._path.lstat().st_size >= self._size:
                return True
        except OSError:
            pass  # it is made, or the reason why not is told, below
        try:
            if free(self._path.parent) < self._size * _TIMES:
                return False
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            return error.errno not in _FULL
        try:
            os.posix_fallocate(descriptor, 0, self._size)
        except OSError as error:
            # Where no room can be kept, one has to do without.
            with contextlib.suppress(OSError):
                self._path.unlink()
            return error.errno not in _FULL
        finally:
            os.close(descriptor)
        return True


def free(directory: Path) -> int:
    """The bytes that may be written there, without what the file system keeps for root and for itself."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
