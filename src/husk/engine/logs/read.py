"""Reading of the log that conmon keeps of a container: forwards, backwards from the end, or as it grows.

`engine/logs/records.py` says what a record is. A log may be several files (`runtime/logs/files.py`); a line may begin
in one and end in the next. What is read becomes what its reader wants of it (a `Form`: records, or bytes for a client)
in the thread that read it: taking many records apart is too much for the event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from husk.engine.logs.readers import Readers
from husk.engine.logs.records import HEAD, LONGEST, Columns, LogQuery, LogRecord, RecordSelection, take_apart
from husk.engine.model.clock import now_ns
from husk.runtime.logs.files import FileWatch, LogFiles, OpenFile, read_at, size_of

T = TypeVar("T")
Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)

CHUNK = 1 << 18
# How much is taken apart at once. What is larger than 512 KiB costs new pages each time (`kernel/memory.py`).
BLOCK = 1 << 16
# How far apart in the log the pieces of one line are put together again for `tail`.
LOOK_BACK = 1 << 20
# How much of a log is looked through at its end for pieces of a line that goes on; they hold `LONGEST` at most.
HELD = 1 << 16
# Of a time all but the zone.
_MOMENT = 29
# The time of a file is that of the kernel's last tick.
_COARSE = 10**9


# When the run before the present one ended, as a record tells it; None where none is under way.
Since = Callable[[], str | None]


class Form(Protocol[Made_co]):
    """The form that a reader gives to records. Called in a thread, for one batch after the other."""

    @property
    def needs_times(self) -> bool: ...

    def encode(self, lines: Columns) -> Made_co: ...


class AsRecords:
    needs_times = True

    def encode(self, lines: Columns) -> list[LogRecord]:
        return lines.records()


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
        """The pieces of the last lines that lie before the place that `search` found."""
        return b"".join(reversed(self._pieces))

    def search(self, fd: int, size: int) -> int | None:
        """Find the start of the last lines in this file: behind the end of the line before them. None: in another one.

        Call it for the files from the last to the first until `done`.
        """
        place, position, carry = None, size, b""
        while position > 0 and not self.done:
            step = min(CHUNK, position)
            position -= step
            block = read_at(fd, step, position) + carry
            cut = block.find(b"\n") + 1 if position else 0
            if position and cut == 0:
                carry = block
                continue
            pieces = block[cut:].split(b"\n")
            end = position + len(block) - len(pieces.pop())
            for line in reversed(pieces):
                if (head := HEAD.match(line)) and self._takes_back(line, *head.group(2, 3)):
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


class _StartPoint(NamedTuple):
    """The place to begin at: in which of the files, at which offset, and with which records from before it.

    `end` is how far the last file went when the last lines were looked for: what was written since is not among them.
    """

    file: int
    offset: int
    pieces: bytes = b""
    end: int | None = None


def whole(text: bytes, cut: int, since: str) -> int:
    """Return the end of the records before `cut` that are told: not the pieces at their end whose line goes on.

    A container that runs may still write the rest of them; those from before `since` are of a run that has ended.
    """
    first, room = max(0, cut - HELD), LONGEST
    while cut > first:
        begin = text.rfind(b"\n", 0, cut - 1) + 1
        head = HEAD.match(text, begin, cut)
        if begin < first or head is None or head[3] != b"P" or head[1][:_MOMENT] <= since[:_MOMENT].encode():
            break
        room -= cut - head.end()
        if room < 0:
            break
        cut = begin
    return cut


def _whole_of(fd: int, size: int, since: str) -> int:
    """The same of a file."""
    begin = max(0, size - 2 * HELD)
    text = read_at(fd, size - begin, begin)
    cut = text.rfind(b"\n") + 1
    return begin + whole(text, cut, since) if cut else size


def tail(files: Sequence[Callable[[], int]], lines: int, since: str | None = None) -> _StartPoint:
    """Find the beginning of the last lines of a log. Its files, the oldest first, are opened as far back as needed.

    With `since` a line that goes on is none of them."""
    search, place, end = _Tail(lines), _StartPoint(0, 0), None
    for n in range(len(files) - 1, -1, -1):
        fd = files[n]()
        size = size_of(fd)
        if end is None:
            end = size = size if since is None else _whole_of(fd, size, since)
        if (offset := search.search(fd, size)) is not None:
            place = _StartPoint(n, offset)
        if search.done:
            break
    return place._replace(pieces=search.pieces, end=end)


def _start(opened: list[OpenFile], query: LogQuery, run: str | None) -> _StartPoint:
    if not opened:
        return _StartPoint(0, 0)
    if query.tail is None:
        # What was last written before the moment in question need not be read, nor unpacked.
        since = (query.since_ns or 0) - _COARSE
        older = [n for n, file in enumerate(opened[:-1]) if file.modified_ns < since]
        return _StartPoint(older[-1] + 1 if older else 0, 0)
    return tail([file.plain for file in opened], query.tail, run)


class ReadPart(NamedTuple, Generic[Made]):
    """The form of some records, and their end in the log: the number of the file and the offset in it."""

    number: int
    end: int
    made: Made


async def read_log(
    path: Path,
    query: LogQuery,
    form: Form[Made],
    ended: Callable[[], bool],
    exit: asyncio.Future[T] | None = None,
    readers: Readers | None = None,
    since: Since = lambda: None,
) -> AsyncIterator[Made]:
    """Yield what `form` makes of batches of records; with `follow`, until `ended()` holds and all is read.

    As with dockerd, a line is told when it is whole, or its run has ended, if `since` tells of the present one.
    `exit` wakes it at the end; it is this reader's own and cancelled when the reader goes. `readers` are all others.
    """
    readers = readers or Readers()
    files = LogFiles(path)
    opened = files.open_all()
    try:
        worker = _Worker(RecordSelection(query), form)
        async with readers.turn:
            place = await asyncio.to_thread(_start, opened, query, since())
            made = (await asyncio.to_thread(worker.make, place.pieces)).made if place.pieces else None
        if made:
            yield made
        reader = _Reader(files, opened, worker, query.until_ns, readers, since)
        reading = reader.read(place.file, place.offset, ended if query.follow else None, exit, place.end)
        with readers.one_more():
            async with aclosing(reading) as parts:
                async for part in parts:
                    if part.made:
                        yield part.made
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
) -> AsyncGenerator[ReadPart[list[LogRecord]], None]:
    """All records behind a place that a `ReadPart` told, or what is left of them; then as `read_log` follows."""
    try:
        first = next((n for n, file in enumerate(opened) if file.number >= number), len(opened))
        position = offset if first < len(opened) and opened[first].number == number else 0
        reader = _Reader(files, opened, _Worker(RecordSelection(LogQuery()), AsRecords()), None, Readers())
        async with aclosing(reader.read(first, position, ended, exit)) as parts:
            async for part in parts:
                yield part
    finally:
        for file in opened:
            file.close()
        exit.cancel()


class _Batch(NamedTuple, Generic[Made]):
    """The form of so many bytes of whole lines, and whether they reach beyond what is wanted."""

    size: int
    made: Made
    past: bool


class _Worker(Generic[Made]):
    """The work on each piece of a log, in a thread: read it, take it apart, choose, and give it its form."""

    def __init__(self, selection: RecordSelection, form: Form[Made]) -> None:
        self._selection = selection
        self._form = form
        self._times = form.needs_times or selection.needs_times

    def read(
        self, fd: int, size: int, position: int, rest: bytes, since: str | None
    ) -> tuple[list[_Batch[Made]], bytes]:
        """So many bytes behind `rest`, block by block, and the beginning of the line behind them, with pieces of it
        where there is a `since`."""
        batches: list[_Batch[Made]] = []
        end = position + size
        while position < end and (data := read_at(fd, min(BLOCK, end - position), position)):
            position += len(data)
            if rest:
                data = rest + data
            cut = data.rfind(b"\n") + 1
            if since is not None:
                cut = whole(data, cut, since)
            rest = data[cut:]
            if cut:
                batches.append(self.make(data[:cut]))
        return batches, rest

    def make(self, text: bytes) -> _Batch[Made]:
        lines = take_apart(text, times=self._times)
        past = self._selection.past(lines)
        return _Batch(len(text), self._form.encode(self._selection.select(lines)), past)


class _Reader(Generic[Made]):
    """Reads through the files of a log; `opened` is the owner's, who closes what is in it at the end."""

    def __init__(
        self,
        files: LogFiles,
        opened: list[OpenFile],
        worker: _Worker[Made],
        until_ns: int | None,
        readers: Readers,
        since: Since = lambda: None,
    ) -> None:
        self._files = files
        self._readers = readers
        self._opened = opened
        self._worker = worker
        self._until_ns = until_ns
        self._since = since
        self._past = False
        self._position = 0

    async def read(
        self,
        first: int,
        position: int,
        ended: Callable[[], bool] | None,
        exit: asyncio.Future[T] | None,
        end: int | None = None,
    ) -> AsyncGenerator[ReadPart[Made], None]:
        """From a file and a position in it to the end; where there is an `ended`, until that holds.

        `end` is where the last file ends for a reader who does not follow.
        """
        last = self._opened[-1] if self._opened and ended is None else None
        for file in self._opened[first:]:
            self._position, position = position, 0
            async for part in self._read_file(file, end if file is last else None):
                yield part
        if ended is None:
            return
        while self._opened and not self._past:
            file = self._opened[-1]
            async with FileWatch(await asyncio.to_thread(file.plain), self._files.path.parent) as watch:
                if exit is not None:
                    exit.add_done_callback(partial(_wake, watch))
                while self._opened[-1] is file:
                    was_last = ended()
                    if (following := self._files.after(file)) is not None:
                        self._opened.append(following)
                    async for part in self._read_file(file):
                        yield part
                    if self._past or (following is None and (was_last or not await _more(watch, self._until_ns))):
                        return
            self._opened.remove(file)
            file.close()
            self._position = 0

    async def _read_file(self, file: OpenFile, limit: int | None = None) -> AsyncGenerator[ReadPart[Made], None]:
        """From the present position to what is now the end: a container that writes faster than its client reads must
        not keep a reader for ever."""
        if self._past:
            return
        fd = await asyncio.to_thread(file.plain)
        # What goes on in another file is not waited for.
        since = self._since() if file is self._opened[-1] else None
        rest, end = b"", size_of(fd) if limit is None else limit
        while (begin := self._position + len(rest)) < end:
            async with self._readers.turn:
                size = min(self._readers.piece, end - begin)
                batches, rest = await asyncio.to_thread(self._worker.read, fd, size, begin, rest, since)
            if not batches and self._position + len(rest) == begin:
                return  # shorter than it was
            batches.reverse()
            while batches:
                batch = batches.pop()
                self._position += batch.size
                self._past = batch.past
                part = ReadPart(file.number, self._position, batch.made)
                # Whoever takes it may stand still for long: nothing is kept beside it.
                del batch
                yield part
                del part
                if self._past:
                    return


def _wake(watch: FileWatch, _: object) -> None:
    watch.wake()


async def _more(watch: FileWatch, until_ns: int | None) -> bool:
    """Wait for a write or the container's end; False when the query's own end came first."""
    timeout = max(0.0, (until_ns - now_ns()) / 1e9) if until_ns else None
    try:
        async with asyncio.timeout(timeout):
            await watch.changed()
    except TimeoutError:
        return False
    return True
