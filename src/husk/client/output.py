"""A container's output, as the API carries it: raw with a TTY, in frames without one. Bytes in, pieces out.

A frame is a byte for the stream (1 stdout, 2 stderr), three zero bytes, the length in four bytes, then the data.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from struct import Struct
from typing import NamedTuple

from husk.errors import InvalidParameter

_HEADER = Struct(">BxxxL")
STDOUT, STDERR = "stdout", "stderr"
_OUTPUT = {2: STDERR}
MULTIPLEXED = "application/vnd.docker.multiplexed-stream"


class Piece(NamedTuple):
    """Bytes as they were written, and where to: `stdout` or `stderr`; with a TTY all is `stdout`.

    async for stream, data in box.logs(follow=True):
        print(stream, data)
        break
    """

    stream: str  #: `stdout` or `stderr`
    data: bytes  #: The bytes


class Captured:
    """Output as it comes, up to so many bytes of each stream."""

    def __init__(self, most: int | None) -> None:
        if most is not None and most < 0:
            raise InvalidParameter(f"max_output is a number of bytes, or None for all: {most}")
        self._most = most
        self._pieces: dict[str, list[bytes]] = {STDOUT: [], STDERR: []}
        self._sizes = {STDOUT: 0, STDERR: 0}
        self.truncated = False

    def add(self, stream: str, data: bytes) -> None:
        if self._most is not None and self._sizes[stream] + len(data) > self._most:
            data = data[: self._most - self._sizes[stream]]
            self.truncated = True
        self._sizes[stream] += len(data)
        self._pieces[stream].append(data)

    @property
    def stdout(self) -> bytes:
        return b"".join(self._pieces[STDOUT])

    @property
    def stderr(self) -> bytes:
        return b"".join(self._pieces[STDERR])


class Frames:
    """Takes the bytes of a connection as they come, gives the pieces that are whole."""

    def __init__(self, names: Mapping[int, str] = _OUTPUT) -> None:
        """`names` are those of the streams; what has none counts as `stdout`."""
        self._rest = bytearray()
        self._names = names

    def feed(self, data: bytes) -> Iterator[Piece]:
        rest = self._rest
        rest += data
        start = 0
        while len(rest) - start >= _HEADER.size:
            stream, length = _HEADER.unpack_from(rest, start)
            end = start + _HEADER.size + length
            if len(rest) < end:
                break
            yield Piece(self._names.get(stream, STDOUT), bytes(rest[start + _HEADER.size : end]))
            start = end
        del rest[:start]


async def pieces(data: AsyncIterable[bytes], multiplexed: bool) -> AsyncIterator[Piece]:
    """Yield the output piece by piece, out of frames if it is `multiplexed`."""
    frames = Frames()
    async for each in data:
        if multiplexed:
            for piece in frames.feed(each):
                yield piece
        elif each:
            yield Piece(STDOUT, each)


async def lines(written: AsyncIterable[Piece]) -> AsyncIterator[str]:
    """Whole lines of both streams in the order in which they were ended, without their ends."""
    async for _, line in lines_of(written):
        yield line


async def lines_of(written: AsyncIterable[Piece]) -> AsyncIterator[tuple[str, str]]:
    """As `lines`, each with its stream."""
    begun = {STDOUT: b"", STDERR: b""}
    async for stream, data in written:
        *whole, begun[stream] = (begun[stream] + data).split(b"\n")
        for line in whole:
            yield stream, line.decode(errors="replace").removesuffix("\r")
    for stream, left in begun.items():
        if left:
            yield stream, left.decode(errors="replace")
