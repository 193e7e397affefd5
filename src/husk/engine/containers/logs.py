"""What did the container write? Reads the log that conmon keeps, forwards, backwards from the end, or as it grows.

conmon writes one line per record, `<RFC 3339 with nanoseconds> <stdout|stderr> <F|P> <bytes>`; `P` marks a piece whose
line goes on in the next record of that stream, `F` the end of a line. Bytes are kept as they were, except the newline.
A log may be several files (`engine/logs/files.py`); a line may begin in one and end in the next.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from husk.engine.clock import now_ns, rfc3339
from husk.engine.logs.files import LogFiles, OpenFile
from husk.kernel.inotify import FileWatch

T = TypeVar("T")

CHUNK = 1 << 18
STDOUT, STDERR = 1, 2
_HEAD = re.compile(rb"(\S{20,35}) (stdout|stderr) ([FP]) ")
_RECORD = re.compile(rb"^" + _HEAD.pattern + rb"(.*)\n", re.MULTILINE)


class LogRecord(NamedTuple):
    stream: int
    timestamp: bytes
    data: bytes
    partial: bool


class LogQuery(Struct, kw_only=True, frozen=True):
    """Which records: of which streams, how many from the end (None: all), from when to when, and whether to go on.

    The moment 0 is no end, as with dockerd.
    """

    stdout: bool = True
    stderr: bool = True
    follow: bool = False
    tail: int | None = None
    since_ns: int | None = None
    until_ns: int | None = None


def parse(lines: bytes) -> list[LogRecord]:
    """Whole lines of a log; a line that is none of conmon's (a torn write) is left out."""
    records = []
    for moment, source, tag, data in _RECORD.findall(lines):
        timestamp = moment[:-6] + b"Z" if moment.endswith(b"+00:00") else moment
        stream = STDOUT if source == b"stdout" else STDERR
        partial = tag == b"P"
        records.append(LogRecord(stream, timestamp, data if partial else data + b"\n", partial))
    return records


class _Selection:
    """The part of a query that looks at single records."""

    def __init__(self, query: LogQuery) -> None:
        self._streams = {s for s, wanted in ((STDOUT, query.stdout), (STDERR, query.stderr)) if wanted}
        self._since = rfc3339(max(0, query.since_ns)).encode() if query.since_ns else b""
        self._until = rfc3339(max(0, query.until_ns)).encode() if query.until_ns else None
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


class _Tail:
    """Looks for the beginning of the last lines, from the end backwards through one file after the other.

    Pieces of one line count together; a stream's unfinished last line counts as one.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._found = 0
        self._seen: set[bytes] = set()

    def search(self, fd: int) -> int | None:
        """Where the last lines begin in this file: behind the end of the line before them. None: further back."""
        position, carry = os.fstat(fd).st_size, b""
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
                if head := _HEAD.match(line):
                    _, source, tag = head.groups()
                    self._found += tag == b"F" or source not in self._seen
                    if self._found > self._lines:
                        return end
                    self._seen.add(source)
                end -= len(line) + 1
            carry = block[:cut]
        return None


def tail_offset(fd: int, lines: int) -> int:
    """Where the last lines of a log that is one file begin."""
    return _Tail(lines).search(fd) or 0


def _start(opened: list[OpenFile], query: LogQuery) -> tuple[int, int]:
    """(which of the files, offset in it) to begin with."""
    if query.tail is None:
        # What was last written before the moment in question need not be read, nor unpacked.
        since = query.since_ns or 0
        older = [n for n, file in enumerate(opened[:-1]) if file.modified_ns < since]
        return (older[-1] + 1 if older else 0), 0
    tail = _Tail(query.tail)
    for n in range(len(opened) - 1, -1, -1):
        if (offset := tail.search(opened[n].plain())) is not None:
            return n, offset
    return 0, 0


async def read_log(
    path: Path, query: LogQuery, ended: Callable[[], bool], exit: asyncio.Future[T] | None = None
) -> AsyncIterator[list[LogRecord]]:
    """Batches of records; with `follow`, goes on until `ended()` holds and all is read.

    `exit` wakes it at the end; it is this reader's own and cancelled when the reader goes.
    """
    selection = _Selection(query)
    files = LogFiles(path)
    opened = files.open_all()
    try:
        if not opened:
            return
        first, position = await asyncio.to_thread(_start, opened, query)
        for file in opened[first:]:
            fd = await asyncio.to_thread(file.plain)
            async for batch in _read_to_end(fd, position, selection):
                position = batch.end
                if batch.records:
                    yield batch.records
                if batch.past:
                    return
            position, kept = 0, position
        if query.follow:
            async for records in _follow(files, opened, kept, selection, query.until_ns, ended, exit):
                yield records
    finally:
        for file in opened:
            file.close()
        if exit is not None:
            exit.cancel()


async def _follow(
    files: LogFiles,
    opened: list[OpenFile],
    position: int,
    selection: _Selection,
    until_ns: int | None,
    ended: Callable[[], bool],
    exit: asyncio.Future[T] | None,
) -> AsyncIterator[list[LogRecord]]:
    """Go on from `position` in the last of the files, into those that come after it."""
    while True:
        file = opened[-1]
        fd = await asyncio.to_thread(file.plain)
        async with FileWatch(fd, files.path.parent) as watch:
            if exit is not None:
                exit.add_done_callback(partial(_wake, watch))
            while opened[-1] is file:
                last = ended()
                if (following := files.after(file)) is not None:
                    opened.append(following)
                async for batch in _read_to_end(fd, position, selection):
                    position = batch.end
                    if batch.records:
                        yield batch.records
                    if batch.past:
                        return
                if following is None and (last or not await _more(watch, until_ns)):
                    return
        opened.remove(file)
        file.close()
        position = 0


def _wake(watch: FileWatch, _: object) -> None:
    watch.wake()


class _Batch(NamedTuple):
    end: int
    records: list[LogRecord]
    past: bool


async def _read_to_end(fd: int, position: int, selection: _Selection) -> AsyncIterator[_Batch]:
    """What the log holds now: a container that writes faster than its client reads must not keep a reader for ever."""
    rest, end = b"", os.fstat(fd).st_size
    while (begin := position + len(rest)) < end:
        data = rest + await asyncio.to_thread(os.pread, fd, min(CHUNK, end - begin), begin)
        if len(data) == len(rest):
            return
        cut = data.rfind(b"\n") + 1
        position, rest = position + cut, data[cut:]
        if cut:
            records = parse(data[:cut])
            yield _Batch(position, selection.select(records), selection.past(records))


async def _more(watch: FileWatch, until_ns: int | None) -> bool:
    """Wait for a write or the container's end; False when the query's own end came first."""
    timeout = max(0.0, (until_ns - now_ns()) / 1e9) if until_ns else None
    try:
        await asyncio.wait_for(watch.changed(), timeout)
    except TimeoutError:
        return False
    return True
