"""A place in a directory tree: one open directory and the way back up, however deep it lies.

Whoever fills a tree can nest directories deeper than a path can be long, deeper than Python recurses, and in more
levels than a process may have descriptors; and may move them while somebody walks through. So a step down opens a name
in the directory that is open, links are not followed, only the last few levels stay open, and a step up goes through
`..` only where that leads to the very directory we came from.
"""

import os
from collections import deque
from typing import Self

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Levels that stay open: most trees are not deeper, and many walks at once still have few descriptors.
_KEPT = 16
# A path relative to an open directory must stay below PATH_MAX with any name (at most 255 bytes) added to it.
_LONGEST_RELATIVE = 3000


class TreeCursor:
    """Stands in the directory `fd`, at first in the one that it was made with; `names` is the way to it from there."""

    def __init__(self, top: int) -> None:
        """`top` is an open directory, which stays its owner's."""
        self.names: list[str] = []
        self._identities: list[tuple[int, int]] = []
        self._top = os.open(".", DIRECTORY, dir_fd=top)
        self._open: deque[int] = deque()

    @property
    def fd(self) -> int:
        """Valid until the next step."""
        return self._open[-1] if self.names else self._top

    def down(self, name: str) -> None:
        """Step into a directory of this one. OSError if it is gone, or no directory: then nothing has changed."""
        fd = os.open(name, DIRECTORY, dir_fd=self.fd)
        self.names.append(name)
        self._identities.append(_identity(fd))
        self._open.append(fd)
        if len(self._open) > _KEPT:
            os.close(self._open.popleft())

    def up(self) -> bool:
        """Step up; False if the way back is lost, because somebody moved it away: then all there is to do is to step
        up further. The top is never lost."""
        below = self._open.pop() if self._open else None
        self.names.pop()
        self._identities.pop()
        try:
            if self._open or not self.names:
                return True
            fd = self._above(below) if below is not None else None
            if fd is None:
                fd = self._from_the_top()
            if fd is None:
                return False
            self._open.append(fd)
            return True
        finally:
            if below is not None:
                os.close(below)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
        if self._top >= 0:
            os.close(self._top)
            self._top = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _above(self, below: int) -> int | None:
        try:
            return self._checked(os.open("..", DIRECTORY, dir_fd=below))
        except OSError:
            return None

    def _from_the_top(self) -> int | None:
        """By all the names on the way, in pieces that are short enough for a path."""
        fd = os.dup(self._top)
        piece = "."
        for number, name in enumerate(self.names, 1):
            piece += f"/{name}"
            if number < len(self.names) and len(os.fsencode(piece)) <= _LONGEST_RELATIVE:
                continue
            try:
                # A link on the way is followed here, and then is not where we came from.
                below = os.open(piece, DIRECTORY, dir_fd=fd)
            except OSError:
                return None
            finally:
                os.close(fd)
            fd, piece = below, "."
        return self._checked(fd)

    def _checked(self, fd: int) -> int | None:
        if _identity(fd) == self._identities[-1]:
            return fd
        os.close(fd)
        return None


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
