"""Reading of the body of an HTTP request in a worker: from the client's own socket, past the daemon.

The daemon has read the request's head, and some of what follows. That, and the socket, it hands to the worker: a large
body is then copied once on its way into a file, and parsed by nobody but the worker. Through the daemon `docker cp` of
200 MB into a container takes 1.5 to 2.6 times as long (`bench.copies`, docs/performance.md).
"""

import mmap
import os
import select
from typing import NamedTuple

from husk.storage.tar.entry import TarError
from husk.text.patterns import pattern

# What may be read at once, and is then cut at the ends of chunks.
_AT_ONCE = 1 << 18
_LONGEST_LINE = 8192
# What writev(2) takes.
_MOST_PIECES = 1024
# The end of a chunk and the head of the next one, as all clients send them; whatever else is allowed is read by lines.
_NEXT_CHUNK = pattern(rb"\r\n([0-9a-fA-F]{1,15})\r\n")
_HEX = frozenset(b"0123456789abcdefABCDEF")


class BodyUpload(NamedTuple):
    """A body that its receiver reads from `socket`; `begun` is what was already read. No length: it is in chunks."""

    socket: int
    begun: bytes
    length: int | None


class BodyReader:
    """The bytes of one body. The socket may be one that does not block."""

    def __init__(self, upload: BodyUpload) -> None:
        self._fd = upload.socket
        self._ahead = memoryview(upload.begun)
        self._chunked = upload.length is None
        self._left = upload.length or 0
        self._ended = upload.length == 0
        self._begun = False
        self._bulk = memoryview(mmap.mmap(-1, _AT_ONCE))

    def readinto(self, buffer: memoryview, /) -> int:
        """The next bytes; none at the end of the body."""
        if not self._chunked and not self._ahead:
            count = self._read(buffer[: self._left]) if self._left else 0
            self._left -= count
            return count
        filled = 0
        for piece in self._next_pieces(len(buffer)):
            end = filled + len(piece)
            buffer[filled:end] = piece
            filled = end
        return filled

    def hand_over(self, fd: int, count: int, /) -> int:
        """Write some, at most `count`, of the bytes that come next into a file; none at the end of the body."""
        pieces = self._next_pieces(count)
        moved = sum(map(len, pieces))
        _write(fd, pieces)
        return moved

    def _next_pieces(self, most: int) -> list[memoryview]:
        """Return the next bytes, in pieces that are valid until more is asked for; none at the end of the body.

        All chunks that are here, at once: this is where a large upload spends its time.
        """
        while self._left == 0:
            if self._ended or not self._chunked:
                return []
            self._next_chunk()
        if not self._ahead:
            self._ahead = self._bulk[: self._read(self._bulk)]
        view, start, end, left = self._ahead, 0, len(self._ahead), self._left
        pieces: list[memoryview] = []
        while len(pieces) < _MOST_PIECES:
            size = min(left, end - start, most)
            if size:
                pieces.append(view[start : start + size])
                start += size
                left -= size
                most -= size
            if left or not most or not self._chunked or (head := _NEXT_CHUNK.match(view, start)) is None:
                break
            left = int(head[1], 16)
            if left == 0:
                break  # read again, as the last one, when more is asked for
            start = head.end()
        self._ahead, self._left = view[start:], left
        return pieces

    def _next_chunk(self) -> None:
        if self._begun and self._line():
            raise TarError("invalid request body: no line ends at the end of a chunk")
        self._begun = True
        size = self._line().partition(b";")[0].strip()
        if not size or len(size) > 16 or not _HEX.issuperset(size):
            raise TarError("invalid request body: a chunk has no size")
        self._left = int(size, 16)
        if self._left == 0:
            self._ended = True
            while self._line():
                pass  # what a client may say behind a body in chunks

    def _line(self) -> bytes:
        while (end := (known := bytes(self._ahead[:_LONGEST_LINE])).find(b"\r\n")) < 0:
            if len(known) == _LONGEST_LINE:
                raise TarError("invalid request body: a line is too long")
            self._bulk[: len(known)] = known
            more = self._read(self._bulk[len(known) :])
            self._ahead = self._bulk[: len(known) + more]
        self._ahead = self._ahead[end + 2 :]
        return known[:end]

    def _read(self, buffer: memoryview) -> int:
        while True:
            try:
                count = os.readv(self._fd, [buffer])
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._fd, select.POLLIN)
                poll.poll()
                continue
            if count == 0:
                raise TarError("unexpected EOF")
            return count


def _write(fd: int, pieces: list[memoryview]) -> None:
    while pieces:
        written = os.writev(fd, pieces)
        while pieces and written >= len(pieces[0]):
            written -= len(pieces.pop(0))
        if pieces:
            pieces[0] = pieces[0][written:]
