"""Lines of a container's log in batches: what has come is told together, so that a long log is few messages."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator

from husk.aio.tasks import Tasks
from husk.client.output import STDERR, STDOUT, Piece

# Seconds that lines wait for others to go with, and how many go at once: lines, and letters of all of them.
_TOGETHER = 0.05
_MOST_AT_ONCE = 2000
_LARGEST_BATCH = 1 << 16
# What may wait for a browser that reads slowly, before the log is read on.
_MOST_WAITING = 20_000
_LARGEST_WAITING = 1 << 18
# A longer line is cut into pieces.
_LONGEST = 1 << 16

# (time, stream, text)
Line = tuple[str, str, str]


class LineMaker:
    """Takes pieces as they come, gives lines that are whole. They begin with their time."""

    def __init__(self, search: str = "") -> None:
        self._search = search.lower()
        self._begun = {STDOUT: b"", STDERR: b""}
        # The times of lines of which pieces were given: what follows has none, whatever it begins with.
        self._cut: dict[str, str] = {}

    def feed(self, piece: Piece) -> Iterator[Line]:
        stream = piece.stream
        *whole, rest = (self._begun[stream] + piece.data).split(b"\n")
        cut = len(rest) > _LONGEST
        self._begun[stream] = b"" if cut else rest
        for line in whole:
            time, text = self._told(stream, line)
            self._cut.pop(stream, None)
            if self._wanted(text):
                yield (time, stream, text)
        if cut:
            time, text = self._told(stream, rest)
            self._cut[stream] = time
            if self._wanted(text):
                yield (time, stream, text)

    def rest(self) -> Iterator[Line]:
        """Yield the lines that have begun and not ended, one of a stream at most."""
        for stream, line in self._begun.items():
            time, text = self._told(stream, line)
            if line and self._wanted(text):
                yield (time, stream, text)

    def _told(self, stream: str, line: bytes) -> tuple[str, str]:
        """(time, text)"""
        text = line.decode(errors="replace").removesuffix("\r")
        if stream in self._cut:
            return self._cut[stream], text
        time, _, text = text.partition(" ")
        return time, text

    def _wanted(self, text: str) -> bool:
        return not self._search or self._search in text.lower()


class _Waiting:
    """Lines that were read and are not told yet. There is an end to how many, and to how long they are together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: deque[Line] = deque()
        self._letters = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: Line) -> None:
        self._lines.append(line)
        self._letters += _letters(line)

    @property
    def is_full(self) -> bool:
        return len(self._lines) > self._most or self._letters > _LARGEST_WAITING

    @property
    def is_batch(self) -> bool:
        """True if there are as many lines, or letters, as go at once."""
        return len(self._lines) >= _MOST_AT_ONCE or self._letters >= _LARGEST_BATCH

    def take(self) -> list[Line]:
        """Those that go next, at least one if there is any."""
        taken: list[Line] = []
        letters = 0
        while self._lines and len(taken) < _MOST_AT_ONCE and letters < _LARGEST_BATCH:
            taken.append(self._lines.popleft())
            letters += _letters(taken[-1])
        self._letters -= letters
        return taken


def _letters(line: Line) -> int:
    return len(line[0]) + len(line[2])


async def batches(
    pieces: AsyncIterator[Piece], search: str, tasks: Tasks, most_waiting: int = _MOST_WAITING
) -> AsyncIterator[list[Line]]:
    """Lines as they come, many at once where many come. While `most_waiting` are not taken the log is not read on."""
    waiting = _Waiting(most_waiting)
    arrived, room = asyncio.Event(), asyncio.Event()
    room.set()

    async def read() -> None:
        maker = LineMaker(search)
        async for piece in pieces:
            for line in maker.feed(piece):
                waiting.add(line)
            if waiting:
                arrived.set()
            while waiting.is_full:
                room.clear()
                await room.wait()
        for line in maker.rest():
            waiting.add(line)

    reading = tasks.spawn(read(), "lines of a log", awaited=True)
    reading.add_done_callback(lambda _: arrived.set())
    try:
        while not (reading.done() and not waiting):
            await arrived.wait()
            if not reading.done() and not waiting.is_batch:
                await asyncio.sleep(_TOGETHER)
            batch = waiting.take()
            if not waiting and not reading.done():
                arrived.clear()
            room.set()
            if batch:
                yield batch
        await reading
    finally:
        reading.cancel()
        await asyncio.wait([reading])
