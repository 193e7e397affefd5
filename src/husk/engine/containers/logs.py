"""What did the container write? Reads the log that conmon keeps, forwards, backwards from the end, or as it grows.

conmon writes one line per record, `<RFC 3339 with nanoseconds> <stdout|stderr> <F|P> <bytes>`; `P` marks a piece whose
line goes on in the next record of that stream, `F` the end of a line. Bytes are kept as they were, except the newline.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from husk.engine.clock import now_ns, rfc3339
from husk.kernel.inotify import FileWatch

T = TypeVar("T")

CHUNK = 1 << 18
STDOUT, STDERR = 1, 2


class LogRecord(NamedTuple):
    stream: int
    timestamp: bytes
    data: bytes
    partial: bool


class LogQuery(Struct, kw_only=True, frozen=True):
    """Which records: of which streams, how many from the end (None: all), from when to when, and whether to go on."""

    stdout: bool = True
    stderr: bool = True
    follow: bool = False
    tail: int | None = None
    since_ns: int | None = None
    until_ns: int | None = None


def parse(lines: bytes) -> list[LogRecord]:
    """Whole lines of a log; a line that is none of conmon's (a torn write) is left out."""
    records = []
    for line in lines.split(b"\n"):
        head = line[:45]
        first = head.find(b" ")
        second = head.find(b" ", first + 1)
        if first < 20 or second < 0 or line[second + 2 : second + 3] != b" ":
            continue
        source = head[first + 1 : second]
        if source not in (b"stdout", b"stderr"):
            continue
        partial = line[second + 1 : second + 2] == b"P"
        data = line[second + 3 :]
        timestamp = head[: first - 6] + b"Z" if head[first - 6 : first] == b"+00:00" else head[:first]
        stream = STDOUT if source == b"stdout" else STDERR
        records.append(LogRecord(stream, timestamp, data if partial else data + b"\n", partial))
    return records


class _Selection:
    """The part of a query that looks at single records."""

    def __init__(self, query: LogQuery) -> None:
        self._streams = {s for s, wanted in ((STDOUT, query.stdout), (STDERR, query.stderr)) if wanted}
        self._since = b"" if query.since_ns is None else rfc3339(max(0, query.since_ns)).encode()
        self._until = None if query.until_ns is None else rfc3339(max(0, query.until_ns)).encode()
        self.everything = len(self._streams) == 2 and not self._since and self._until is None

    def select(self, records: list[LogRecord]) -> list[LogRecord]:
        if self.everything:
            return records
        return [
            r
            for r in records
            if r.stream in self._streams
            and r.timestamp >= self._since
            and (self._until is None or r.timestamp <= self._until)
        ]

    def past(self, records: list[LogRecord]) -> bool:
        return self._until is not None and bool(records) and records[-1].timestamp > self._until


def tail_offset(fd: int, lines: int) -> int:
    """Where the last `lines` lines begin; pieces of one line count together, an unfinished last line counts as one."""
    position = os.fstat(fd).st_size
    if lines <= 0:
        return position
    found, carry, newest = 0, b"", True
    while position > 0:
        step = min(CHUNK, position)
        position -= step
        block = os.pread(fd, step, position) + carry
        cut = block.find(b"\n") + 1 if position else 0
        if position and cut == 0:
            carry = block
            continue
        pieces = block[cut:].split(b"\n")
        end = position + len(block) - len(pieces.pop())
        for line in reversed(pieces):
            if _completes_line(line):
                found += 1
                if found > lines:
                    return end
            elif newest:
                found = 1
            newest = False
            end -= len(line) + 1
        carry = block[:cut]
    return 0


def _completes_line(line: bytes) -> bool:
    tag = line.find(b" ", line.find(b" ", 0, 45) + 1, 45)
    return line[tag + 1 : tag + 2] == b"F"


async def read_log(
    path: Path, query: LogQuery, ended: Callable[[], bool], exit: asyncio.Future[T] | None = None
) -> AsyncIterator[list[LogRecord]]:
    """Batches of records; with `follow`, goes on until `ended()` holds and all is read. `exit` wakes it at the end."""
    selection = _Selection(query)
    try:
        fd = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        position = 0 if query.tail is None else await asyncio.to_thread(tail_offset, fd, query.tail)
        if not query.follow:
            async for batch in _read_to_end(fd, position, selection):
                yield batch.records
            return
        async with FileWatch(path) as watch:
            if exit is not None:
                exit.add_done_callback(lambda _: watch.wake())
            while True:
                last = ended()
                async for batch in _read_to_end(fd, position, selection):
                    position = batch.end
                    if batch.records:
                        yield batch.records
                    if batch.past:
                        return
                if last or not await _more(watch, query.until_ns):
                    return
    finally:
        os.close(fd)


class _Batch(NamedTuple):
    end: int
    records: list[LogRecord]
    past: bool


async def _read_to_end(fd: int, position: int, selection: _Selection) -> AsyncIterator[_Batch]:
    rest = b""
    while data := await asyncio.to_thread(os.pread, fd, CHUNK, position + len(rest)):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        position, rest = position + cut, data[cut:]
        if cut:
            records = parse(data[:cut])
            yield _Batch(position, selection.select(records), selection.past(records))


async def _more(watch: FileWatch, until_ns: int | None) -> bool:
    """Wait for a write or the container's end; False when the query's own end came first."""
    timeout = None if until_ns is None else max(0.0, (until_ns - now_ns()) / 1e9)
    try:
        await asyncio.wait_for(watch.changed(), timeout)
    except TimeoutError:
        return False
    return True
