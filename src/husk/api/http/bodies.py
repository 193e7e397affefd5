"""The body of a request: where it ends, and what is in it. Without I/O: bytes in, pieces out.

A body has a length or comes in chunks. A chunk's size is in hexadecimal digits and nothing else; what may stand behind
it (extensions) and behind the last chunk (trailers) is read over, and there is an end to how much.
"""

from typing import Protocol

from husk.api.http.errors import BadRequest
from husk.text.patterns import pattern

_SIZE_LINE = pattern(rb"([0-9a-fA-F]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_NEXT_CHUNK = pattern(rb"\r\n([0-9a-fA-F]{1,15})\r\n")
_TRAILER_LINE = pattern(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
_LONGEST_LINE = 4096
# How much more than its own bytes and two times its chunks' heads a body may take, as with Go.
_MOST_EXCESS = 16 << 10
_FREE_PER_CHUNK = 16
# How many chunks are read in one go.
_MOST_AT_ONCE = 2048


class Framing(Protocol):
    """The way in which a body is delimited."""

    @property
    def ended(self) -> bool:
        """True once the last byte of the body was fed."""
        ...

    def feed(self, data: bytes, pieces: list[bytes]) -> bytes:
        """Append what is in `data` of the body to `pieces`; returns what is behind the body, or what is still to be fed
        where it has not ended."""
        ...


class LengthFraming:
    """A body of so many bytes."""

    __slots__ = ("left",)

    def __init__(self, length: int) -> None:
        self.left = length

    @property
    def ended(self) -> bool:
        return not self.left

    def feed(self, data: bytes, pieces: list[bytes]) -> bytes:
        size = len(data)
        if size <= self.left:
            self.left -= size
            if size:
                pieces.append(data)
            return b""
        if self.left:
            pieces.append(data[: self.left])
        rest, self.left = data[self.left :], 0
        return rest


class ChunkFraming:
    """A body in chunks."""

    __slots__ = ("_excess", "_in_trailers", "_left", "_line", "_started", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._left = 0
        # The beginning of a line whose end has not come.
        self._line = b""
        self._started = False
        self._in_trailers = False
        self._excess = 0

    def feed(self, data: bytes, pieces: list[bytes]) -> bytes:
        if self._line:
            data, self._line = self._line + data, b""
        at, end = 0, len(data)
        most = len(pieces) + _MOST_AT_ONCE
        while at < end and not self.ended:
            if len(pieces) >= most:
                break  # many small ones are much work: others have their turn
            if self._left:
                taken = data[at : at + self._left] if at or end > self._left else data
                pieces.append(taken)
                at += len(taken)
                self._left -= len(taken)
                if not self._left and (head := _NEXT_CHUNK.match(data, at)) is not None and (size := int(head[1], 16)):
                    # As all clients send them; whatever else is allowed is read by lines.
                    self._left = size
                    at = head.end()
                continue
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                self._keep(data[at:])
                return b""
            if line_end - at > _LONGEST_LINE:
                raise BadRequest("malformed body: a line is too long")
            self._read_line(data[at:line_end])
            at = line_end + 2
        return data[at:]

    def _keep(self, line: bytes) -> None:
        if len(line) > _LONGEST_LINE:
            raise BadRequest("malformed body: a line is too long")
        if not self._in_trailers and self._started and line != b"\r":
            raise BadRequest("malformed body: no line ends at the end of a chunk")
        if b"\n" in line or b"\r" in line[:-1]:
            raise BadRequest("malformed body: a stray line end")
        self._line = line

    def _read_line(self, line: bytes) -> None:
        if self._in_trailers:
            if not line:
                self.ended = True
            elif _TRAILER_LINE.fullmatch(line) is None:
                raise BadRequest("malformed body: malformed trailer")
            self._count(len(line))
        elif self._started:
            # The end of the chunk before.
            if line:
                raise BadRequest("malformed body: no line ends at the end of a chunk")
            self._started = False
        elif (head := _SIZE_LINE.fullmatch(line)) is None:
            raise BadRequest("malformed body: a chunk has no size")
        else:
            self._count(len(line) - len(head[1]))
            self._left = int(head[1], 16)
            self._started = self._left > 0
            self._in_trailers = self._left == 0

    def _count(self, size: int) -> None:
        self._excess = max(self._excess - _FREE_PER_CHUNK, 0) + size
        if self._excess > _MOST_EXCESS:
            raise BadRequest("malformed body: too much beside it")
