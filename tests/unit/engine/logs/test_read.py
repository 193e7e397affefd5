"""Logs: what conmon wrote comes back byte for byte, from the start, from the end, or as it grows."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.logs import read as logs
from husk.engine.logs.read import AsRecords, read_log
from husk.engine.logs.records import STDERR, STDOUT, LogQuery, LogRecord, take_apart
from husk.engine.model.clock import rfc3339

# What conmon reads from a pipe at once: a longer line becomes several records.
CONMON_READS = 8192
SECOND = 10**9


def written(stream: int, data: bytes, ns: int = 0) -> bytes:
    """Return what conmon 2.1 writes to its k8s-file for one write of the container."""
    name = b"stdout" if stream == STDOUT else b"stderr"
    head = rfc3339(ns).encode().replace(b"Z", b"+00:00") + b" " + name
    records = (b"F " + piece if piece.endswith(b"\n") else b"P " + piece + b"\n" for piece in pieces(data))
    return b"".join(head + b" " + record for record in records)


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield the records into which conmon cuts a write."""
    for begin in range(0, len(data), CONMON_READS):
        *whole, rest = data[begin : begin + CONMON_READS].split(b"\n")
        yield from (line + b"\n" for line in whole)
        if rest:
            yield rest


def log_of(writes: list[tuple[int, bytes]]) -> bytes:
    return b"".join(written(stream, data, ns) for ns, (stream, data) in enumerate(writes))


def joined(records: list[LogRecord], stream: int | None = None) -> bytes:
    return b"".join(record.data for record in records if stream in (None, record.stream))


def tail(log: bytes, lines: int) -> bytes:
    with tempfile.TemporaryFile() as file:
        file.write(log)
        file.flush()
        place = logs.tail([file.fileno], lines)
        return place.pieces + log[place.offset :]


# Lines of any bytes, some longer than conmon reads at once.
contents = st.binary(max_size=40) | st.builds(
    lambda byte, length, end: bytes([byte]) * length + end,
    st.integers(0, 255).filter(lambda byte: byte != 10),
    st.integers(CONMON_READS - 2, 3 * CONMON_READS),
    st.sampled_from([b"", b"\n", b"\nrest"]),
)
streams = st.sampled_from([STDOUT, STDERR])
writes = st.lists(st.tuples(streams, contents), max_size=12)


@given(writes)
def test_each_stream_comes_back_byte_for_byte(happened: list[tuple[int, bytes]]) -> None:
    records = take_apart(log_of(happened)).records()
    for stream in (STDOUT, STDERR):
        assert joined(records, stream) == b"".join(data for source, data in happened if source == stream)


@given(st.lists(contents, max_size=12), st.integers(1, 8), st.sampled_from([64, 1000, 1 << 18]))
def test_the_tail_of_a_stream_is_exactly_its_last_lines(happened: list[bytes], lines: int, chunk: int) -> None:
    everything = b"".join(happened).split(b"\n")
    expected = b"\n".join(everything[-lines:] if everything[-1] else everything[-lines - 1 :])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHUNK", chunk)
        assert joined(take_apart(tail(log_of([(STDOUT, data) for data in happened]), lines)).records()) == expected


@given(writes, st.integers(0, 8), st.sampled_from([64, 1000, 1 << 18]))
def test_the_tail_of_two_streams_is_their_last_lines_from_the_first_piece_on(
    happened: list[tuple[int, bytes]], lines: int, chunk: int
) -> None:
    log = log_of(happened)
    records = take_apart(log).records()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHUNK", chunk)
        assert one_by_one(take_apart(tail(log, lines)).records()) == one_by_one(last_lines(records, lines))


def one_by_one(records: list[LogRecord]) -> list[tuple[int, bytes]]:
    """With one record for pieces that follow one another, whatever part of a log they were read from."""
    done: list[tuple[int, bytes]] = []
    for record in records:
        if done and done[-1][0] == record.stream and not done[-1][1].endswith(b"\n"):
            done[-1] = (record.stream, done[-1][1] + record.data)
        else:
            done.append((record.stream, record.data))
    return done


def last_lines(records: list[LogRecord], lines: int) -> list[LogRecord]:
    """The records of the lines that end last; one that has not ended ends with its last record."""
    ends = [index for index, record in enumerate(records) if not record.partial or last_of_its_stream(records, index)]
    kept = []
    for end in ends[-lines:] if lines else []:
        kept.append(end)
        for index in range(end - 1, -1, -1):
            if records[index].stream == records[end].stream:
                if not records[index].partial:
                    break
                kept.append(index)
    return [records[index] for index in sorted(kept)]


def last_of_its_stream(records: list[LogRecord], index: int) -> bool:
    return all(record.stream != records[index].stream for record in records[index + 1 :])


def test_a_long_line_keeps_its_start_when_the_other_stream_wrote_in_between() -> None:
    log = log_of([(STDOUT, b"old\n"), (STDOUT, b"first "), (STDERR, b"noise\n"), (STDOUT, b"second\n")])
    assert joined(take_apart(tail(log, 1)).records()) == b"first second\n"
    assert joined(take_apart(tail(log, 2)).records()) == b"first noise\nsecond\n"


def test_the_start_of_a_line_is_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LOOK_BACK", 1000)
    log = log_of([(STDOUT, b"first "), *[(STDERR, b"noise\n")] * 100, (STDOUT, b"second\n")])
    assert joined(take_apart(tail(log, 1)).records()) == b"second\n"


def test_a_tail_of_nothing_begins_behind_the_last_whole_record() -> None:
    assert tail(written(STDOUT, b"a\nb\n"), 0) == b""
    assert tail(written(STDOUT, b"a\n") + b"1970-", 0) == b"1970-"
    assert tail(b"", 5) == b""


def test_a_record_tells_stream_time_and_whether_its_line_goes_on() -> None:
    log = written(STDERR, b"half", 1) + written(STDOUT, b"x\n", 2) + written(STDERR, b"\n", 3)
    assert take_apart(log).records() == [
        LogRecord(STDERR, b"1970-01-01T00:00:00.000000001Z", b"half", True),
        LogRecord(STDOUT, b"1970-01-01T00:00:00.000000002Z", b"x\n", False),
        LogRecord(STDERR, b"1970-01-01T00:00:00.000000003Z", b"\n", False),
    ]


@pytest.mark.parametrize(
    "torn",
    [
        b"\n", b"half of a line\n", b"1970-01-01T00:00:00.000000001+00:00 std\n",
        b"1970-01-01T00:00:00.000000001+00:00 stdout X data\n", b"1970-01-01T00:00:00.000000001+00:00 stdin F data\n",
        b"F\n", b"x" * 300 + b"\n",
    ],
)  # fmt: skip
def test_a_torn_line_is_left_out_and_does_not_count(torn: bytes) -> None:
    log = written(STDOUT, b"a\nb\n") + torn + written(STDOUT, b"c\n") + torn
    assert joined(take_apart(log).records()) == b"a\nb\nc\n"
    assert joined(take_apart(tail(log, 2)).records()) == b"b\nc\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "container.log"
    path.write_bytes(log_of([(STDOUT, b"one\n"), (STDERR, b"two\n"), (STDOUT, b"three\n")]))
    return path


async def read(path: Path, query: LogQuery) -> bytes:
    return b"".join([joined(batch) async for batch in read_log(path, query, AsRecords(), ended=lambda: True)])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (LogQuery(), b"one\ntwo\nthree\n"),
        (LogQuery(stderr=False), b"one\nthree\n"),
        (LogQuery(stdout=False), b"two\n"),
        (LogQuery(tail=2), b"two\nthree\n"),
        (LogQuery(tail=2, stdout=False), b"two\n"),
        (LogQuery(tail=0), b""),
        (LogQuery(since_ns=1), b"two\nthree\n"),
        (LogQuery(until_ns=1), b"one\ntwo\n"),
        (LogQuery(since_ns=1, until_ns=1), b"two\n"),
        (LogQuery(since_ns=0, until_ns=0), b"one\ntwo\nthree\n"),
        (LogQuery(since_ns=-5 * SECOND), b"one\ntwo\nthree\n"),
    ],
)
@pytest.mark.parametrize("follow", [False, True])
async def test_a_query_takes_its_records(log: Path, query: LogQuery, expected: bytes, follow: bool) -> None:
    fields = {name: getattr(query, name) for name in LogQuery.__struct_fields__}
    assert await read(log, LogQuery(**{**fields, "follow": follow})) == expected


async def test_a_container_that_never_wrote_has_an_empty_log(tmp_path: Path) -> None:
    assert await read(tmp_path / "none", LogQuery(follow=True)) == b""


async def test_a_log_of_many_chunks_is_read_whole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK", 50)
    log.write_bytes(log_of([(STDOUT, bytes([65 + number]) * number + b"\n") for number in range(26)]))
    assert await read(log, LogQuery()) == b"".join(bytes([65 + number]) * number + b"\n" for number in range(26))


async def test_without_follow_a_log_that_grows_has_an_end(log: Path) -> None:
    batches = 0
    async for _ in read_log(log, LogQuery(), AsRecords(), ended=lambda: False):
        batches += 1
        append(log, written(STDOUT, b"more\n"))
    assert batches == 1


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


class Following:
    """A reader that follows, and a container that ends when the test says so."""

    def __init__(self, path: Path, query: LogQuery) -> None:
        self._ended = False
        since = rfc3339(0)
        self.exit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.batches: AsyncIterator[list[LogRecord]] = read_log(
            path, query, AsRecords(), lambda: self._ended, self.exit, since=lambda: None if self._ended else since
        )

    async def next(self) -> bytes:
        return joined(await anext(self.batches))

    def end(self) -> None:
        self._ended = True
        self.exit.set_result(None)


async def test_following_brings_each_line_as_it_is_written(log: Path) -> None:
    reader = Following(log, LogQuery(follow=True, tail=1))
    assert await reader.next() == b"three\n"
    for line in (b"four\n", b"five\n"):
        append(log, written(STDOUT, line))
        assert await reader.next() == line
    append(log, written(STDOUT, b"last\n"))
    reader.end()
    assert await reader.next() == b"last\n"
    with pytest.raises(StopAsyncIteration):
        await reader.next()


async def test_following_waits_for_the_rest_of_a_half_written_record(log: Path) -> None:
    reader = Following(log, LogQuery(follow=True, tail=1))
    assert await reader.next() == b"three\n"
    record = written(STDOUT, b"whole\n")
    waiting = asyncio.gather(reader.next(), return_exceptions=True)
    for begin in range(0, len(record), 7):
        append(log, record[begin : begin + 7])
        await asyncio.sleep(0)
    assert list(await waiting) == [b"whole\n"]


async def test_a_line_is_told_when_it_is_whole_or_its_run_has_ended(log: Path) -> None:
    reader = Following(log, LogQuery(follow=True, tail=1))
    assert await reader.next() == b"three\n"
    waiting = asyncio.gather(reader.next())
    for piece in (b"pass", b"wo", b"rd: "):
        append(log, written(STDOUT, piece, SECOND))
        await asyncio.sleep(0)
    append(log, written(STDOUT, b"x\nmore", SECOND))
    assert list(await waiting) == [b"password: x\n"]
    reader.end()
    assert await reader.next() == b"more"


@pytest.mark.parametrize(
    ("query", "ended_ns", "expected"),
    [
        (LogQuery(), None, b"one\ntwo\nthree\nlast words"),
        (LogQuery(), SECOND, b"one\ntwo\nthree\nlast words"),
        (LogQuery(), 0, b"one\ntwo\nthree\n"),
        (LogQuery(tail=1), None, b"last words"),
        (LogQuery(tail=1), SECOND, b"last words"),
        (LogQuery(tail=1), 0, b"three\n"),
        (LogQuery(tail=2, stderr=False), 0, b"three\n"),
    ],
)
async def test_pieces_of_a_line_of_the_present_run_are_not_told(
    log: Path, query: LogQuery, ended_ns: int | None, expected: bytes
) -> None:
    append(log, written(STDOUT, b"last ", SECOND) + written(STDOUT, b"words", SECOND))
    since = None if ended_ns is None else rfc3339(ended_ns)
    found = read_log(log, query, AsRecords(), ended=lambda: True, since=lambda: since)
    assert b"".join([joined(batch) async for batch in found]) == expected


async def test_no_more_than_a_message_is_held_back(log: Path) -> None:
    log.write_bytes(b"".join(written(STDOUT, b"x" * 4000, SECOND) for _ in range(10)))
    found = read_log(log, LogQuery(), AsRecords(), ended=lambda: True, since=lambda: rfc3339(0))
    assert b"".join([joined(batch) async for batch in found]) == b"x" * 4000 * 6
    log.write_bytes(b"".join(written(STDOUT, b".", SECOND) for _ in range(20_000)))
    found = read_log(log, LogQuery(), AsRecords(), ended=lambda: True, since=lambda: rfc3339(0))
    assert 18_000 < len(b"".join([joined(batch) async for batch in found])) < 20_000


async def test_following_ends_with_a_container_that_writes_no_more(log: Path) -> None:
    reader = Following(log, LogQuery(follow=True, tail=0))
    waiting = asyncio.gather(reader.next(), return_exceptions=True)
    await asyncio.sleep(0)
    reader.end()
    assert [type(outcome) for outcome in await waiting] == [StopAsyncIteration]


async def test_following_ends_at_the_time_asked_for(log: Path) -> None:
    append(log, written(STDOUT, b"later\n", 5 * SECOND))
    assert await collect(Following(log, LogQuery(follow=True, until_ns=SECOND))) == b"one\ntwo\nthree\n"


async def collect(reader: Following) -> bytes:
    return b"".join([joined(batch) async for batch in reader.batches])


async def test_a_reader_that_goes_leaves_nothing_behind(log: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    reader = Following(log, LogQuery(follow=True))
    await reader.next()
    await reader.batches.aclose()  # type: ignore[attr-defined]
    assert reader.exit.cancelled()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_what_is_written_meanwhile_is_not_among_the_last_lines(tmp_path, monkeypatch):
    path = tmp_path / "container.log"
    path.write_bytes(written(STDOUT, b"1\n2\n3\n"))
    looked_for = logs.tail

    def tail_and_write(files, lines, since):
        place = looked_for(files, lines, since)
        with path.open("ab") as file:
            file.write(written(STDOUT, b"4\n"))
        return place

    monkeypatch.setattr(logs, "tail", tail_and_write)
    batches = [batch async for batch in read_log(path, LogQuery(tail=1), AsRecords(), lambda: True)]
    assert joined([record for batch in batches for record in batch]) == b"3\n"
