"""What did the container write? Reads the log that conmon keeps, forwards, backwards from the end, or as it grows.

conmon writes one line per record, `<RFC 3339 with nanoseconds> <stdout|stderr> <F|P> <bytes>`; `P` marks a piece whose
line goes on in the next record of that stream, `F` the end of a line. Bytes are kept as they were, except the newline.
A log may be several files (`engine/logs/files.py`); a line may begin in one and end in the next.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from husk.engine.logs.files import LogFiles, OpenFile
from husk.engine.logs.readers import Readers
from husk.engine.model.clock import now_ns, rfc3339
from husk.kernel.inotify import FileWatch

T = TypeVar("T")

CHUNK = 1 << 18
# How far apart in the log the pieces of one line are put together again for `tail`.
LOOK_BACK = 1 << 20
# The time of a file is that of the kernel's last tick.
_COARSE = 10**9
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
    """Looks for the last lines, from the end backwards through one file after the other.

    Pieces of one line count together; a stream's unfinished last line counts as one. The last lines lie behind one
    place, except for pieces of theirs that were written before another stream ended a line that is not among them.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._found = 0
        self._seen: set[bytes] = set()
        # Streams whose first line here may have begun before the place, and how far back that is looked for.
        self._open: set[bytes] | None = None
        self._patience = LOOK_BACK
        self._pieces: list[bytes] = []

    @property
    def done(self) -> bool:
        return self._open is not None and (not self._open or self._patience <= 0)

    @property
    def pieces(self) -> bytes:
        """What of the last lines lies before the place that `search` found."""
        return b"".join(reversed(self._pieces))

    def search(self, fd: int) -> int | None:
        """Where the last lines begin in this file: behind the end of the line before them. None: in another one.

        Call it for the files from the last to the first until `done`.
        """
        place, position, carry = None, os.fstat(fd).st_size, b""
        while position > 0 and not self.done:
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
                if (head := _HEAD.match(line)) and self._takes_back(line, *head.group(2, 3)):
                    place = end
                if self.done:
                    break
                end -= len(line) + 1
            carry = block[:cut]
        return place

    def _takes_back(self, line: bytes, source: bytes, tag: bytes) -> bool:
        """Go one record back. True for the first that is none of the last lines."""
        if self._open is not None:
            self._patience -= len(line)
            if tag == b"F":
                self._open.discard(source)
            elif source in self._open:
                self._pieces.append(line + b"\n")
            return False
        self._found += tag == b"F" or source not in self._seen
        if self._found > self._lines:
            self._open = self._seen - {source}
            return True
        self._seen.add(source)
        return False


class _Place(NamedTuple):
    """Where to begin: in which of the files, at which offset, and with which records from before it."""

    file: int
    offset: int
    pieces: bytes = b""


def tail(files: Sequence[Callable[[], int]], lines: int) -> _Place:
    """Where the last lines of a log begin. Its files, the oldest first, are opened as far back as needed."""
    search, place = _Tail(lines), _Place(0, 0)
    for n in range(len(files) - 1, -1, -1):
        if (offset := search.search(files[n]())) is not None:
            place = _Place(n, offset)
        if search.done:
            break
    return place._replace(pieces=search.pieces)


def _start(opened: list[OpenFile], query: LogQuery) -> _Place:
    if not opened:
        return _Place(0, 0)
    if query.tail is None:
        # What was last written before the moment in question need not be read, nor unpacked.
        since = (query.since_ns or 0) - _COARSE
        older = [n for n, file in enumerate(opened[:-1]) if file.modified_ns < since]
        return _Place(older[-1] + 1 if older else 0, 0)
    return tail([file.plain for file in opened], query.tail)


class Part(NamedTuple):
    """Some records, and where in the log they end: the number of the file and the offset in it."""

    number: int
    end: int
    records: list[LogRecord]


async def read_log(
    path: Path,
    query: LogQuery,
    ended: Callable[[], bool],
    exit: asyncio.Future[T] | None = None,
    readers: Readers | None = None,
) -> AsyncIterator[list[LogRecord]]:
    """Batches of records; with `follow`, goes on until `ended()` holds and all is read.

    `exit` wakes it at the end; it is this reader's own and cancelled when the reader goes. `readers` are all others.
    """
    readers = readers or Readers()
    files = LogFiles(path)
    opened = files.open_all()
    try:
        async with readers.turn:
            place, selection = await asyncio.to_thread(_start, opened, query), _Selection(query)
        if pieces := selection.select(parse(place.pieces)):
            yield pieces
        reader = _Reader(files, opened, selection, query.until_ns, readers)
        reading = reader.read(place.file, place.offset, ended if query.follow else None, exit)
        with readers.one_more():
            async with aclosing(reading) as parts:
                async for part in parts:
                    if part.records:
                        yield part.records
    finally:
        for file in opened:
            file.close()
        if exit is not None:
            exit.cancel()


async def resume_log(
    files: LogFiles,
    opened: list[OpenFile],
    number: int,
    offset: int,
    ended: Callable[[], bool],
    exit: asyncio.Future[T],
) -> AsyncGenerator[Part, None]:
    """All records behind a place that a `Part` told, or behind what is left of the log; then as `read_log` follows."""
    try:
        first = next((n for n, file in enumerate(opened) if file.number >= number), len(opened))
        position = offset if first < len(opened) and opened[first].number == number else 0
        reader = _Reader(files, opened, _Selection(LogQuery()), None, Readers())
        async with aclosing(reader.read(first, position, ended, exit)) as parts:
            async for part in parts:
                yield part
    finally:
        for file in opened:
            file.close()
        exit.cancel()


class _Reader:
    """Reads through the files of a log; `opened` is the owner's, who closes what is in it at the end."""

    def __init__(
        self,
        files: LogFiles,
        opened: list[OpenFile],
        selection: _Selection,
        until_ns: int | None,
        readers: Readers,
    ) -> None:
        self._files = files
        self._readers = readers
        self._opened = opened
        self._selection = selection
        self._until_ns = until_ns
        self._past = False
        self._position = 0

    async def read(
        self, first: int, position: int, ended: Callable[[], bool] | None, exit: asyncio.Future[T] | None
    ) -> AsyncGenerator[Part, None]:
        """From a file and a position in it to the end; where there is an `ended`, until that holds."""
        for file in self._opened[first:]:
            self._position, position = position, 0
            async for part in self._read_file(file):
                yield part
        if ended is None:
            return
        while self._opened and not self._past:
            file = self._opened[-1]
            async with FileWatch(await asyncio.to_thread(file.plain), self._files.path.parent) as watch:
                if exit is not None:
                    exit.add_done_callback(partial(_wake, watch))
                while self._opened[-1] is file:
                    last = ended()
                    if (following := self._files.after(file)) is not None:
                        self._opened.append(following)
                    async for part in self._read_file(file):
                        yield part
                    if self._past or (following is None and (last or not await _more(watch, self._until_ns))):
                        return
            self._opened.remove(file)
            file.close()
            self._position = 0

    async def _read_file(self, file: OpenFile) -> AsyncGenerator[Part, None]:
        """From the present position to what is now the end."""
        if self._past:
            return
        fd = await asyncio.to_thread(file.plain)
        async for batch in _read_to_end(fd, self._position, self._selection, self._readers):
            self._position = batch.end
            yield Part(file.number, batch.end, batch.records)
            if batch.past:
                self._past = True
                return


def _wake(watch: FileWatch, _: object) -> None:
    watch.wake()


class _Batch(NamedTuple):
    end: int
    records: list[LogRecord]
    past: bool


async def _read_to_end(fd: int, position: int, selection: _Selection, readers: Readers) -> AsyncIterator[_Batch]:
    """What the log holds now: a container that writes faster than its client reads must not keep a reader for ever."""
    rest, end = b"", os.fstat(fd).st_size
    while (begin := position + len(rest)) < end:
        async with readers.turn:
            data = rest + await asyncio.to_thread(os.pread, fd, min(readers.piece, end - begin), begin)
            if len(data) == len(rest):
                return
            cut = data.rfind(b"\n") + 1
            position, rest = position + cut, data[cut:]
            records = parse(data[:cut]) if cut else []
        if cut:
            batch = _Batch(position, selection.select(records), selection.past(records))
            # Whoever takes it may stand still for long: nothing is kept beside it.
            del data, records
            yield batch
            del batch


async def _more(watch: FileWatch, until_ns: int | None) -> bool:
    """Wait for a write or the container's end; False when the query's own end came first."""
    timeout = max(0.0, (until_ns - now_ns()) / 1e9) if until_ns else None
    try:
        await asyncio.wait_for(watch.changed(), timeout)
    except TimeoutError:
        return False
    return True
