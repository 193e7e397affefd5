"""Lines of a container's log in batches: what has come is told together, so that a long log is few messages."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator

from husk.client.output import STDERR, STDOUT, Piece
from husk.tasks import Tasks

# Seconds that lines wait for others to go with, and how many go at once.
_TOGETHER = 0.05
_MOST_AT_ONCE = 2000
# What may wait for a browser that reads slowly.
_MOST_WAITING = 20_000
# A longer line is cut into pieces.
_LONGEST = 1 << 16

# (time, stream, text)
Line = tuple[str, str, str]


class LineMaker:
    """Takes pieces as they come, gives lines that are whole. They begin with their time."""

    def __init__(self, search: str = "") -> None:
        self._search = search.lower()
        self._begun = {STDOUT: b"", STDERR: b""}

    def feed(self, piece: Piece) -> Iterator[Line]:
        *whole, rest = (self._begun[piece.stream] + piece.data).split(b"\n")
        if len(rest) > _LONGEST:
            whole.append(rest)
            rest = b""
        self._begun[piece.stream] = rest
        for line in whole:
            if (found := self._line(piece.stream, line)) is not None:
                yield found

    def rest(self) -> Iterator[Line]:
        """What was not ended."""
        for stream, line in self._begun.items():
            if line and (found := self._line(stream, line)) is not None:
                yield found

    def _line(self, stream: str, line: bytes) -> Line | None:
        time, _, text = line.decode(errors="replace").removesuffix("\r").partition(" ")
        return (time, stream, text) if not self._search or self._search in text.lower() else None


async def batches(pieces: AsyncIterator[Piece], search: str, tasks: Tasks) -> AsyncIterator[list[Line]]:
    """Lines as they come, many at once where many come."""
    waiting: deque[Line] = deque()
    arrived, room = asyncio.Event(), asyncio.Event()
    room.set()

    async def read() -> None:
        maker = LineMaker(search)
        async for piece in pieces:
            for line in maker.feed(piece):
                waiting.append(line)
            if waiting:
                arrived.set()
            if len(waiting) > _MOST_WAITING:
                room.clear()
                await room.wait()
        waiting.extend(maker.rest())

    reading = tasks.spawn(read(), "lines of a log", awaited=True)
    reading.add_done_callback(lambda _: arrived.set())
    try:
        while not (reading.done() and not waiting):
            await arrived.wait()
            if not reading.done() and len(waiting) < _MOST_AT_ONCE:
                await asyncio.sleep(_TOGETHER)
            batch = [waiting.popleft() for _ in range(min(len(waiting), _MOST_AT_ONCE))]
            if not waiting and not reading.done():
                arrived.clear()
            room.set()
            if batch:
                yield batch
        await reading
    finally:
        reading.cancel()
        await asyncio.wait([reading])
