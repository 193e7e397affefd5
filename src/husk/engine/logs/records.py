"""The records of a log, many at once: taken apart and chosen from. Pure.

conmon writes one line per record, `<RFC 3339 with nanoseconds> <stdout|stderr> <F|P> <bytes>`; `P` marks a piece whose
line goes on in the next record of that stream, `F` the end of a line. Bytes are kept as they were, except the newline.
conmon ends a record where its buffer ends, often in the middle of a short line: such pieces are put together again.

A log of 200 MB has millions of records, and whatever Python does once for each of them takes seconds. So records stay
columns (`Columns`): one call of the regular expression engine takes a whole piece of a log apart, and who writes them
out again works on columns too. Loops of Python are only for pieces of lines.
"""

from collections.abc import Iterable
from itertools import compress, count, repeat
from operator import add, contains
from typing import NamedTuple

from msgspec import Struct

from husk.engine.model.clock import rfc3339
from husk.text.patterns import pattern

STDOUT, STDERR = 1, 2
# What stands between a record's time and its bytes, and what that means: the stream, and whether the line goes on.
KINDS = {
    b"stdout F": (STDOUT, False),
    b"stdout P": (STDOUT, True),
    b"stderr F": (STDERR, False),
    b"stderr P": (STDERR, True),
}
PARTIAL = frozenset(kind for kind, (_, partial) in KINDS.items() if partial)
# Docker's own size of a message.
LONGEST = 16 * 1024
HEAD = pattern(rb"(\S{20,35}) (stdout|stderr) ([FP]) ")
# The newline in front lets the search jump from line to line.
_RECORDS = pattern(rb"\n(\S{20,35}) (std(?:out|err) [FP]) ")
_LINES_WITH_TIME = {kind: pattern(rb"\n(\S{20,35}) %b " % kind) for kind in KINDS if kind not in PARTIAL}
# So conmon writes it where the clock shows UTC, which is what Docker wants: then only a Z is missing.
_UTC = b"+00:00"
_LINES_IN_UTC = {kind: pattern(rb"\n(.{29})\+00:00 %b " % kind) for kind in KINDS if kind not in PARTIAL}
# A time that nobody looks at is all up to the space: that is found sooner.
_LINES = {kind: pattern(rb"\n[^ ]{20,35} %b " % kind) for kind in KINDS if kind not in PARTIAL}
_NEWLINE = 10


class LogRecord(NamedTuple):
    stream: int
    timestamp: bytes
    data: bytes
    partial: bool


class LogQuery(Struct, kw_only=True, frozen=True):
    """The wanted records: of which streams, how many from the end (None: all), from when to when, whether to go on.

    The moment 0 is no end, as with dockerd.
    """

    stdout: bool = True
    stderr: bool = True
    follow: bool = False
    tail: int | None = None
    since_ns: int | None = None
    until_ns: int | None = None


class Columns(NamedTuple):
    """Records in columns: of each its kind (see `KINDS`), its bytes without the newline, and its time if asked for."""

    kinds: list[bytes]
    data: list[bytes]
    times: list[bytes] | None = None

    @property
    def kind(self) -> bytes | None:
        """The kind that all have; None where they differ or there is none."""
        return self.kinds[0] if self.kinds and self.kinds.count(self.kinds[0]) == len(self.kinds) else None

    def partial(self) -> list[int]:
        """Return the places of pieces of lines."""
        if self.kind is not None and self.kind not in PARTIAL:
            return []
        return [place for place, kind in enumerate(self.kinds) if kind in PARTIAL]

    def records(self) -> list[LogRecord]:
        """One by one; the times have to be there."""
        found = []
        for kind, data, time in zip(self.kinds, self.data, self.times or (), strict=True):
            stream, partial = KINDS[kind]
            found.append(LogRecord(stream, time, data if partial else data + b"\n", partial))
        return found


def take_apart(text: bytes, *, times: bool = True) -> Columns:
    """Whole lines of a log; a line that is none of conmon's (a torn write) is left out."""
    if (lines := _of_one_kind(text, times)) is not None:
        return lines
    parts = _RECORDS.split(b"\n" + text[:-1])
    lines = Columns(parts[2::3], parts[3::3], _utc(parts[1::3]) if times else None)
    if len(lines.data) != text.count(b"\n"):
        # What is no record was taken for the end of the one before it.
        lines.data[:] = [data.partition(b"\n")[0] for data in lines.data]
    if partial := lines.partial():
        _join(lines, partial)
    return lines


def _of_one_kind(text: bytes, times: bool) -> Columns | None:
    """Read whole lines of one stream, as most logs are, with as few objects as can be; None for anything else."""
    if (head := HEAD.match(text)) is None:
        return None
    kind, piece = head[2] + b" F", head[2] + b" P"
    utc = times and head[1].endswith(_UTC) and len(head[1]) == 35
    patterns = _LINES_IN_UTC if utc else _LINES_WITH_TIME if times else _LINES
    data = patterns[kind].split(b"\n" + text[:-1])
    moments = data[1::2] if times else []
    if times:
        data = data[::2]
    for place in list(compress(count(), map(contains, data, repeat(_NEWLINE)))):
        # What is none of them was taken for the end of the one before it: the beginning of a line, or a torn one.
        data[place], *others = data[place].split(b"\n")
        begun = [(line, head) for line in others if (head := HEAD.match(line))]
        if not begun:
            continue
        if any(line[head.start(2) : head.end() - 1] != piece for line, head in begun) or place + 1 == len(data):
            return None
        data[place + 1] = b"".join([line[head.end() :] for line, head in begun]) + data[place + 1]
        if len(data[place + 1]) > LONGEST:
            return None
        if times:
            moments[place] = begun[0][1][1]
            if utc and not moments[place].endswith(_UTC):
                return None
            moments[place] = moments[place].removesuffix(_UTC) if utc else moments[place]
    del data[0]  # what stands before the first
    if utc:
        return Columns([kind] * len(data), data, list(map(add, moments, repeat(b"Z"))))
    return Columns([kind] * len(data), data, _utc(moments) if times else None)


def _join(lines: Columns, partial: list[int]) -> None:
    """Make one of pieces of a line that follow one another, as long as it does not become longer than Docker's."""
    kinds, data, times = lines
    joined: set[int] = set()
    for place in partial:
        following = place + 1
        if (
            following < len(kinds)
            and KINDS[kinds[following]][0] == KINDS[kinds[place]][0]
            and len(data[place]) + len(data[following]) <= LONGEST
        ):
            data[following] = data[place] + data[following]
            if times is not None:
                times[following] = times[place]
            joined.add(place)
    kept = [place not in joined for place in range(len(kinds))]
    for column in (kinds, data, times):
        if column is not None:
            column[:] = compress(column, kept)


def _utc(moments: list[bytes]) -> list[bytes]:
    """As Docker writes them."""
    return [moment[:-6] + b"Z" if moment[-6:] == b"+00:00" else moment for moment in moments]


class RecordSelection:
    """The part of a query that looks at single records."""

    def __init__(self, query: LogQuery) -> None:
        streams = {s for s, wanted in ((STDOUT, query.stdout), (STDERR, query.stderr)) if wanted}
        self._kinds = {kind for kind, (stream, _) in KINDS.items() if stream in streams}
        self._since = rfc3339(max(0, query.since_ns)).encode() if query.since_ns else b""
        self._until = rfc3339(max(0, query.until_ns)).encode() if query.until_ns else None
        # Where the records before ended with a piece of a line: its stream, its time, and how long it is.
        self._piece: tuple[int, bytes, int] | None = None

    @property
    def needs_times(self) -> bool:
        return bool(self._since) or self._until is not None

    def select(self, lines: Columns) -> Columns:
        """Of the records behind those that it was given last."""
        if lines.times:
            self._go_on(lines, lines.times)
        if len(self._kinds) < len(KINDS):
            lines = _chosen(lines, map(self._kinds.__contains__, lines.kinds))
        since, until = self._since, self._until
        if lines.times is not None and since:
            lines = _chosen(lines, [time >= since for time in lines.times])
        if lines.times is not None and until is not None:
            lines = _chosen(lines, [time <= until for time in lines.times or ()])
        return lines

    def _go_on(self, lines: Columns, times: list[bytes]) -> None:
        """Give a piece that would be put together with the one before it (`_join`), had both been read at once, the
        time of that one: so a line is of the same time wherever the log was cut."""
        stream, size = KINDS[lines.kinds[0]][0], len(lines.data[0])
        if self._piece is not None and self._piece[0] == stream and self._piece[2] + size <= LONGEST:
            times[0], size = self._piece[1], self._piece[2] + size
        stream, partial = KINDS[lines.kinds[-1]]
        size = size if len(times) == 1 else len(lines.data[-1])
        self._piece = (stream, times[-1], size) if partial else None

    def past(self, lines: Columns) -> bool:
        return self._until is not None and lines.times is not None and lines.times[-1:] > [self._until]


def _chosen(lines: Columns, chosen: Iterable[bool]) -> Columns:
    wanted = list(chosen)
    if all(wanted):
        return lines
    times = None if lines.times is None else list(compress(lines.times, wanted))
    return Columns(list(compress(lines.kinds, wanted)), list(compress(lines.data, wanted)), times)
