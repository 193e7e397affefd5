"""Reading of an archive in a worker: out of one buffer after the other, each entry's data straight into its file."""

import os
from collections.abc import Callable, Iterator

from husk.storage.tar.entry import TarEntry, padding, truncated
from husk.storage.tar.parser import Parser

# What is worth moving without a copy; a smaller file is in the buffers anyway.
LARGE = 1 << 17


class TarStream:
    """The archive's bytes, out of one buffer after the other; `next_buffer` returns an empty one at the end, once.

    `hand_over`, where the source can do that, moves what follows the buffers into a file without a look at it: at most
    so many bytes into this descriptor, returning how many it has moved.
    """

    def __init__(
        self, next_buffer: Callable[[], memoryview], hand_over: Callable[[int, int], int] | None = None
    ) -> None:
        self._next = next_buffer
        self._hand_over = hand_over
        self._view = memoryview(b"")
        self._at = 0
        self._end = 0
        self._ended = False

    def take(self, count: int) -> bytes:
        """The next `count` bytes; fewer only at the end."""
        at = self._at
        if at + count <= self._end:
            self._at = at + count
            return bytes(self._view[at : at + count])
        return b"".join(bytes(piece) for piece in self.pieces(count, exact=False))

    def pieces(self, count: int, exact: bool = True) -> Iterator[memoryview]:
        """The next `count` bytes, in pieces that are valid until the following one is asked for."""
        while count > 0:
            at = self._at
            available = self._end - at
            if available <= 0:
                if not self._refill():
                    if exact:
                        truncated()
                    return
                continue
            if available > count:
                available = count
            self._at = at + available
            count -= available
            yield self._view[at : at + available]

    def write_to(self, fd: int, count: int) -> None:
        """Write the next `count` bytes to a file."""
        at = self._at
        available = self._end - at
        if count <= available:
            self._at = at + count
            _write(fd, self._view[at : at + count])
            return
        if self._hand_over is not None and count - available >= LARGE:
            for piece in self.pieces(available):
                _write(fd, piece)
            count -= available
            while count and (moved := self._hand_over(fd, count)):
                count -= moved
        for piece in self.pieces(count):
            _write(fd, piece)

    def skip(self, count: int, exact: bool = True) -> None:
        """Leave out the next `count` bytes; where that need not be `exact`, the archive may end before."""
        available = self._end - self._at
        if count <= available:
            self._at += count
            return
        for _ in self.pieces(count, exact):
            pass

    def drain(self) -> None:
        """Read to the end: what follows the archive's end mark still belongs to the digest."""
        while self._refill():
            pass

    def _refill(self) -> bool:
        if self._ended:
            return False
        self._view = self._next()
        self._at = 0
        self._end = len(self._view)
        self._ended = self._end == 0
        return not self._ended


def _write(fd: int, data: memoryview) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def entries(stream: TarStream) -> Iterator[TarEntry]:
    """The archive's entries; the consumer takes exactly `entry.size` bytes from `stream` before asking for the next."""
    parser = Parser()
    feed, take, skip = parser.feed, stream.take, stream.skip
    while not parser.ended:
        entry = feed(take(parser.wants))
        if entry is not None:
            behind = padding(entry.size)
            yield entry
            if behind:
                skip(behind, False)
