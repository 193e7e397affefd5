"""The progress of a client that follows the log of a task on another node: from where to ask again when the way there
breaks off, and which records of the answer have come before. Pure.

A log is asked for from a time on: that of the last record, or where a line has not ended yet, that of the line's first
piece, for the whole line has that time when its pieces are put together. What has come since then comes once more, in
the same order, but lines may be put together in another way: so it is counted in bytes, for each stream by itself.
"""

from collections import Counter
from typing import NamedTuple

import msgspec

from husk.engine.logs.records import KINDS, Columns, LogQuery
from husk.engine.model.clock import parse_rfc3339

# Times that are remembered of lines that do not end: a line is put together of fewer records.
_MOST = 4096


class _At(NamedTuple):
    time: bytes
    stream: int


class LogProgress:
    def __init__(self, query: LogQuery, most: int = _MOST) -> None:
        self._most = most
        self._query = query
        # From when on the log would be asked for, the latest time that has come, and how much has come in between. Many
        # records may have one time. What is too old for `_since` goes when it has become much.
        self._since = self._last = b""
        self._came: dict[_At, int] = {}
        # Lines that began before this are not waited for.
        self._earliest = b""
        # Lines that have not ended: when they began, by stream.
        self._open: dict[int, bytes] = {}
        # While what comes may have come before: how much of it, by stream; and the stream of a line in the midst.
        self._left: Counter[int] | None = None
        self._within = 0

    @property
    def query(self) -> LogQuery:
        """The query that asks for the rest of the log; InvalidParameter where the node told a time that is none."""
        if not self._since:
            return self._query
        since = parse_rfc3339(self._since.decode(errors="replace"))
        return msgspec.structs.replace(self._query, tail=None, since_ns=since)

    def break_off(self) -> None:
        """Prepare for asking anew: of what comes from now on, some may have come before."""
        self._within, self._left = 0, None
        if self._since:
            self._left = Counter()
            for at, size in self._came.items():
                if at.time >= self._since:
                    self._left[at.stream] += size

    def take(self, lines: Columns) -> Columns:
        """Return the records that have not come before, of some with their times. A time without a record says when the
        reading began: what was before is not wanted."""
        assert lines.times is not None
        if not lines.data:
            if not self._since and lines.times:
                self._since = self._last = lines.times[0]
            return lines._replace(times=[])
        if self._left is not None:
            lines = self._rest(lines, self._left)
        if lines.times:
            self._note(lines, lines.times)
        return lines

    def _note(self, lines: Columns, times: list[bytes]) -> None:
        last, plain = max(self._last, max(times)), not self._open and not lines.partial()
        if plain and last > self._last:
            self._came = {}
        for kind, data, time in zip(lines.kinds, lines.data, times, strict=True):
            if plain and time < last:
                continue
            stream, partial = KINDS[kind]
            at = _At(time, stream)
            self._came[at] = self._came.get(at, 0) + len(data) + (not partial)
            if partial:
                self._open.setdefault(stream, time)
            else:
                self._open.pop(stream, None)
        much = len(self._came) > 2 * self._most
        if much:
            self._earliest = max(self._earliest, list(self._came)[-self._most].time)
        self._last, self._since = last, max(self._earliest, min([last, *self._open.values()]))
        if much or not self._open:
            self._came = {at: size for at, size in self._came.items() if at.time >= self._since}
        if len(self._came) > 2 * self._most:  # times that go backwards: a node may tell anything
            self._came = dict(list(self._came.items())[-self._most :])

    def _rest(self, lines: Columns, left: Counter[int]) -> Columns:
        kinds, kept, times = list[bytes](), list[bytes](), list[bytes]()
        for kind, data, time in zip(lines.kinds, lines.data, lines.times or (), strict=True):
            if time < self._since:
                continue
            stream, partial = KINDS[kind]
            whole, before = len(data) + (not partial), 0
            if time <= self._last or stream == self._within:
                before = min(left[stream], whole)
                left[stream] -= before
            elif not self._within:
                self._left = None  # nothing that has come was later
            goes_on = partial and before == whole and left[stream] > 0
            self._within = stream if goes_on else 0 if stream == self._within else self._within
            if before < whole:
                kinds.append(kind)
                kept.append(data[before:])
                times.append(time)
        return Columns(kinds, kept, times)
