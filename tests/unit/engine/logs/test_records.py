"""The records of a log: taken apart at once, torn lines left out, and the wanted ones chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.logs.records import (
    KINDS,
    LONGEST,
    STDERR,
    STDOUT,
    Columns,
    LogQuery,
    LogRecord,
    RecordSelection,
    take_apart,
)
from husk.engine.model.clock import rfc3339

T = [b"1970-01-01T00:00:0%d.000000000Z" % second for second in range(6)]
SECOND = 10**9


def text(*records: tuple[int, bytes, bytes]) -> bytes:
    return b"".join(T[second] + b" " + kind + b" " + data + b"\n" for second, kind, data in records)


LOG = text((1, b"stdout F", b"a"), (2, b"stderr P", b"b"), (3, b"stdout F", b""), (4, b"stderr F", b"d"))


def test_columns_tell_kind_bytes_and_time() -> None:
    assert take_apart(LOG) == Columns(
        [b"stdout F", b"stderr P", b"stdout F", b"stderr F"], [b"a", b"b", b"", b"d"], [T[1], T[2], T[3], T[4]]
    )
    assert take_apart(LOG, times=False) == take_apart(LOG)._replace(times=None)
    assert take_apart(b"") == Columns([], [], [])
    assert take_apart(b"", times=False) == Columns([], [])


def test_records_have_their_newline_back() -> None:
    assert take_apart(LOG).records() == [
        LogRecord(STDOUT, T[1], b"a\n", False),
        LogRecord(STDERR, T[2], b"b", True),
        LogRecord(STDOUT, T[3], b"\n", False),
        LogRecord(STDERR, T[4], b"d\n", False),
    ]


def test_utc_is_written_as_docker_writes_it() -> None:
    assert take_apart(b"1970-01-01T00:00:01.000000000+00:00 stdout F x\n").times == [T[1]]
    other = b"1970-01-01T00:00:01.000000000+02:00"
    assert take_apart(other + b" stdout F x\n").times == [other]


def pieces(*kinds: bytes) -> bytes:
    return text(*((second, kind, b"%d" % second) for second, kind in enumerate(kinds)))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (pieces(b"stdout P", b"stdout F"), [(STDOUT, T[0], b"01\n", False)]),
        (pieces(b"stdout P", b"stdout P", b"stdout F"), [(STDOUT, T[0], b"012\n", False)]),
        (
            pieces(b"stderr F", b"stderr P", b"stderr F"),
            [(STDERR, T[0], b"0\n", False), (STDERR, T[1], b"12\n", False)],
        ),
        (pieces(b"stderr F", b"stderr P", b"stderr P"), [(STDERR, T[0], b"0\n", False), (STDERR, T[1], b"12", True)]),
        (pieces(b"stdout P", b"stderr F"), [(STDOUT, T[0], b"0", True), (STDERR, T[1], b"1\n", False)]),
        (b"torn\n" + pieces(b"stdout P") + b"torn\n" + pieces(b"stdout F"), [(STDOUT, T[0], b"00\n", False)]),
    ],
)
def test_pieces_that_follow_one_another_are_put_together(
    log: bytes, expected: list[tuple[int, bytes, bytes, bool]]
) -> None:
    assert [tuple(record) for record in take_apart(log).records()] == expected
    assert take_apart(log, times=False).data == [data.removesuffix(b"\n") for _, _, data, _ in expected]


def test_a_very_long_line_stays_in_pieces_of_dockers_size() -> None:
    half = b"x" * (LONGEST // 2)
    log = text(*[(1, b"stdout P", half)] * 3, (2, b"stdout F", b"end"))
    for times in (True, False):
        assert take_apart(log, times=times).data == [half + half, half + b"end"]


records = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(list(KINDS)), st.binary(max_size=8)), max_size=12)


@given(records)
def test_both_ways_to_take_a_log_apart_find_the_same(happened: list[tuple[int, bytes, bytes]]) -> None:
    log = text(*((second, kind, data.replace(b"\n", b"")) for second, kind, data in happened))
    with pytest.MonkeyPatch.context() as patch:
        quick = take_apart(log), take_apart(log, times=False)
        patch.setattr("husk.engine.logs.records._of_one_kind", lambda text, times: None)
        assert (take_apart(log), take_apart(log, times=False)) == quick


@given(st.lists(st.sampled_from([b"", b"torn", b"1970-01-01T00:00:01.00 std", T[1] + b" stdout X data", b"F"])))
def test_torn_lines_are_left_out_wherever_they_are(torn: list[bytes]) -> None:
    noise = b"".join(line + b"\n" for line in torn)
    for times in (True, False):
        assert take_apart(noise + LOG + noise + LOG + noise, times=times).data == [b"a", b"b", b"", b"d"] * 2


@given(st.binary(max_size=60))
def test_what_a_container_writes_is_never_taken_for_a_record(data: bytes) -> None:
    line = data.replace(b"\n", b" stdout F ")
    assert take_apart(text((1, b"stdout F", line)), times=False).data == [line]


@pytest.mark.parametrize(
    ("query", "expected", "past"),
    [
        (LogQuery(), [b"a", b"b", b"", b"d"], False),
        (LogQuery(stderr=False), [b"a", b""], False),
        (LogQuery(stdout=False), [b"b", b"d"], False),
        (LogQuery(since_ns=2 * SECOND), [b"b", b"", b"d"], False),
        (LogQuery(until_ns=3 * SECOND), [b"a", b"b", b""], True),
        (LogQuery(until_ns=4 * SECOND), [b"a", b"b", b"", b"d"], False),
        (LogQuery(since_ns=2 * SECOND, until_ns=3 * SECOND, stdout=False), [b"b"], True),
        (LogQuery(since_ns=5 * SECOND, until_ns=5 * SECOND), [], False),
    ],
)
def test_a_selection_takes_its_records(query: LogQuery, expected: list[bytes], past: bool) -> None:
    selection = RecordSelection(query)
    lines = take_apart(LOG, times=selection.needs_times)
    assert selection.past(lines) == past
    chosen = selection.select(lines)
    assert chosen.data == expected
    assert len(chosen.kinds) == len(expected)
    assert chosen.times is None or len(chosen.times) == len(expected)


def test_a_clock_that_leaves_utc_in_the_middle_of_a_log_keeps_every_time() -> None:
    nanoseconds = b"2026-03-29T00:59:59.123456789"
    text = (
        nanoseconds + b"+00:00 stdout P wi\n" + nanoseconds + b"+00:00 stdout F nter\n"
        + nanoseconds + b"+01:00 stdout P sum\n" + nanoseconds + b"+01:00 stdout F mer\n"
        + nanoseconds + b"+00:00 stdout P la\n" + nanoseconds + b"+01:00 stdout F st\n"
        + nanoseconds + b"+01:00 stdout P end\n" + nanoseconds + b"+00:00 stdout F ed\n"
    )  # fmt: skip
    times = [nanoseconds + zone for zone in (b"Z", b"+01:00", b"Z", b"+01:00")]
    lines = take_apart(text)
    assert (lines.data, lines.times) == ([b"winter", b"summer", b"last", b"ended"], times)
    first, second = text.splitlines(keepends=True)[:2]
    winter = take_apart(first + second + second)
    assert (winter.data, winter.times) == ([b"winter", b"nter"], [nanoseconds + b"Z"] * 2)


def test_a_line_is_of_the_time_when_it_began_wherever_the_log_is_cut() -> None:
    def chosen(*blocks: bytes) -> list[bytes]:
        selection = RecordSelection(LogQuery(since_ns=2))
        return [data for block in blocks for data in selection.select(take_apart(block)).data]

    def record(moment: int, kind: str, data: str) -> bytes:
        return f"{rfc3339(moment)} {kind} {data}\n".encode()

    begun, middle, end = record(1, "stdout P", "a"), record(2, "stdout P", "b"), record(3, "stdout F", "c")
    later = record(3, "stdout F", "d")
    whole = chosen(begun + middle + end + later)
    assert whole == chosen(begun, middle + end, later) == chosen(begun, middle, end, later) == [b"d"]
    # What would not be put together is of its own time.
    assert chosen(begun, record(2, "stderr F", "x"), end) == [b"x", b"c"]
    assert chosen(begun, record(2, "stdout F", "y" * LONGEST)) == [b"y" * LONGEST]
