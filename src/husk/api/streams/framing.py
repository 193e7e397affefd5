"""Framing of a container's bytes on their way to a client. Takes bytes, returns bytes; knows no connection.

With a TTY they travel as they are. Without, stdout and stderr share one connection in frames: a byte for the stream,
three zero bytes, the length in four bytes (big endian), then the data. As dockerd has it, each line of a log is a
frame, or each piece of a line that is too long for one.
"""

from collections.abc import Iterable
from itertools import repeat
from operator import add
from struct import Struct

from husk.engine.logs.records import KINDS, Columns

RAW_STREAM = "application/vnd.docker.raw-stream"
MULTIPLEXED_STREAM = "application/vnd.docker.multiplexed-stream"

_HEADER = Struct(">BxxxL").pack
# Headers of so many lengths are kept ready: most lines of a log have one of a few.
_READY = 1024


def frame(stream: int, data: bytes) -> bytes:
    return _HEADER(stream, len(data)) + data


class _Headers(dict[int, bytes]):
    """The bytes between two lines of a log, by the length of the second: a newline, and the header of a frame.

    The newline ends the line before; so a line need not be copied only to get its newline back.
    """

    def __init__(self, stream: int, more: int) -> None:
        super().__init__()
        self._stream = stream
        self._more = more  # how many bytes a frame has beside those of the line

    def __missing__(self, length: int) -> bytes:
        header = b"\n" + _HEADER(self._stream, length + self._more)
        if len(self) < _READY:
            self[length] = header
        return header


class LogEncoder:
    """Records of a log as a client asked for them: framed or raw, with or without the time before each line."""

    def __init__(self, *, multiplexed: bool, timestamps: bool, attributes: bytes = b"") -> None:
        self._multiplexed = multiplexed
        self.needs_times = timestamps
        self._attributes = attributes  # what parts the time from the line where the client asks for details
        self._headers = {kind: _Headers(stream, not partial) for kind, (stream, partial) in KINDS.items()}
        self._continued = {1: False, 2: False}

    def encode(self, lines: Columns) -> bytes:
        """Of millions of lines: what is done for each is done by functions of C, loops are for pieces of lines only."""
        if not lines.data:
            return b""
        partial = lines.partial()
        columns = [lines.data]
        if self.needs_times or self._attributes:
            columns.insert(0, self._prefixes(lines, partial))
        heads = self._heads(lines, columns) if self._multiplexed else [b"\n"] * len(lines.data)
        heads.append(b"\n")
        # Each begins with the end of the line before it, of which there is none before the first and after a piece.
        for place in (-1, *partial):
            heads[place + 1] = heads[place + 1][1:]
        end = heads.pop()
        return _in_turn(heads, *columns) + end

    def _heads(self, lines: Columns, columns: list[list[bytes]]) -> list[bytes]:
        """Return the bytes that stand before the data of each frame, which has something of each column."""
        headers = self._headers
        lengths: Iterable[int] = map(len, columns[0])
        for column in columns[1:]:
            lengths = map(add, lengths, map(len, column))
        if lines.kind is not None:
            return list(map(headers[lines.kind].__getitem__, lengths))
        return [headers[kind][length] for kind, length in zip(lines.kinds, lengths, strict=True)]

    def _prefixes(self, lines: Columns, partial: list[int]) -> list[bytes]:
        """Return the time and attributes that stand before the data of each record, or nothing within a long line."""
        if self.needs_times:
            between = b" " + self._attributes
            prefixes = list(map(add, lines.times or (), repeat(between)))
        else:
            prefixes = [self._attributes] * len(lines.data)
        continued = self._continued
        if not (partial or any(continued.values())):
            return prefixes
        # The rest of a long line is not a line of its own: a second time in its middle would be noise.
        for place, kind in enumerate(lines.kinds):
            stream, goes_on = KINDS[kind]
            if continued[stream]:
                prefixes[place] = b""
            continued[stream] = goes_on
        return prefixes


def _in_turn(*columns: list[bytes]) -> bytes:
    """The first of each column, the second of each, and so on. Each byte is copied once."""
    pieces = [b""] * (len(columns) * len(columns[0]))
    for place, column in enumerate(columns):
        pieces[place :: len(columns)] = column
    return b"".join(pieces)
