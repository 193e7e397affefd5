"""Lines of a log that have come do not come twice, and those that have not do come, wherever it breaks off."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from husk.engine.logs.records import Columns, LogQuery, RecordSelection, take_apart
from husk.engine.model.clock import rfc3339
from husk.errors import InvalidParameter
from husk.swarm.logs.progress import LogProgress


def at(moment: int) -> bytes:
    return rfc3339(moment).encode()


def lines(*records: tuple[int, str, str]) -> Columns:
    return Columns([kind.encode() for _, kind, _ in records], [data.encode() for *_, data in records],
                 [at(moment) for moment, *_ in records])  # fmt: skip


def test_nothing_that_came_is_asked_for_again() -> None:
    progress = LogProgress(LogQuery(follow=True, tail=5))
    assert progress.query == LogQuery(follow=True, tail=5)
    progress.break_off()
    first = lines((1, "stdout F", "a"), (2, "stdout F", "b"), (2, "stderr F", "c"))
    assert progress.take(first) == first
    assert progress.query == LogQuery(follow=True, since_ns=2)
    progress.break_off()
    again = lines((2, "stdout F", "b"), (2, "stderr F", "c"), (2, "stdout F", "d"), (3, "stdout F", "b"))
    assert progress.take(again) == lines((2, "stdout F", "d"), (3, "stdout F", "b"))
    progress.break_off()
    assert progress.take(lines((3, "stdout F", "b"))).data == []
    assert progress.take(lines((4, "stdout F", "b"))).data == [b"b"]


def test_a_line_that_was_in_the_midst_goes_on() -> None:
    progress = LogProgress(LogQuery(follow=True))
    progress.take(lines((1, "stdout P", "ab")))
    progress.take(lines((2, "stdout P", "cd"), (3, "stderr F", "e")))
    assert progress.query.since_ns == 1
    progress.break_off()
    # Now its pieces are put together.
    came = progress.take(lines((1, "stdout F", "abcdef"), (3, "stderr F", "e"), (5, "stdout F", "g")))
    assert came == lines((1, "stdout F", "ef"), (5, "stdout F", "g"))
    progress.break_off()
    assert progress.take(lines((5, "stdout F", "g"))).data == []


def test_a_line_that_was_whole_may_come_in_pieces() -> None:
    progress = LogProgress(LogQuery(follow=True))
    progress.take(lines((1, "stdout F", "abcd")))
    progress.break_off()
    came = progress.take(lines((1, "stdout P", "ab"), (2, "stdout F", "cd"), (3, "stdout F", "x")))
    assert came == lines((3, "stdout F", "x"))


def test_what_the_log_has_no_more_is_not_taken_from_what_is_new() -> None:
    progress = LogProgress(LogQuery(follow=True))
    progress.take(lines((1, "stdout F", "abcd")))
    progress.break_off()
    assert progress.take(lines((2, "stdout F", "wxyz"))).data == [b"wxyz"]


def test_who_wants_nothing_of_before_gets_what_comes_since_the_reading_began() -> None:
    progress = LogProgress(LogQuery(follow=True, tail=0))
    assert progress.take(Columns([], [], [at(7)])).data == []
    assert progress.query == LogQuery(follow=True, since_ns=7)
    progress.break_off()
    assert progress.take(lines((8, "stdout F", "a"))).data == [b"a"]
    assert progress.query.since_ns == 8


def test_a_line_without_end_is_not_remembered_without_end() -> None:
    progress = LogProgress(LogQuery(follow=True), most=3)
    for moment in range(1, 10):
        progress.take(lines((moment, "stdout P", "x")))
    assert len(progress._came) <= 6 and progress.query.since_ns == 5
    progress.break_off()
    assert progress.take(lines(*((moment, "stdout P", "x") for moment in range(5, 11)))).data == [b"x"]


def test_records_of_one_time_are_counted_and_not_remembered_one_by_one() -> None:
    progress = LogProgress(LogQuery(follow=True))
    for _ in range(3):
        progress.take(lines(*[(1, "stdout F", ""), (1, "stderr F", "x")] * 50))
    assert len(progress._came) == 2
    progress.break_off()
    again = lines(*[(1, "stdout F", ""), (1, "stderr F", "x")] * 150, (1, "stderr F", "y"))
    assert progress.take(again).data == [b"y"]


def test_times_that_go_backwards_are_not_remembered_without_end() -> None:
    progress = LogProgress(LogQuery(follow=True), most=3)
    progress.take(lines((1, "stderr P", "a line without end")))
    for moment in range(900, 0, -9):
        progress.take(lines(*((moment - by, "stdout F", "x") for by in range(9))))
        assert len(progress._came) <= 6


def test_a_time_that_is_none_is_refused() -> None:
    progress = LogProgress(LogQuery(follow=True))
    progress.take(Columns([b"stdout F"], [b"x"], [b"now"]))
    with pytest.raises(InvalidParameter, match="invalid time"):
        _ = progress.query


RECORD = st.tuples(
    st.integers(0, 1), st.sampled_from(["stdout", "stderr"]), st.sampled_from("FFP"), st.text("abc", max_size=3)
)


# A line of two pieces that was read at once, and the next time piece by piece: its end has the time of what came last.
@example([(0, "stderr", "P", "a"), (1, "stderr", "F", "b"), (0, "stdout", "F", "c")], [(3, 2), (0, 1)])
@given(st.lists(RECORD, max_size=30), st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=12))
def test_wherever_it_breaks_off_all_comes_once(
    written: list[tuple[int, str, str, str]], reads: list[tuple[int, int]]
) -> None:
    """Each reading begins anew, goes so far into the log, and is cut into blocks of so many records."""
    log, moment = list[bytes](), 0
    for later, stream, tag, data in written:
        moment += later
        log.append(b"%b %b %b %b\n" % (at(moment), stream.encode(), tag.encode(), data.encode()))
    progress, came = LogProgress(LogQuery(follow=True)), list[tuple[bytes, bytes]]()
    far = 0
    for further, block in [*reads, (len(log), 4)]:
        far = min(len(log), far + further)
        selection = RecordSelection(progress.query)
        progress.break_off()
        for start in range(0, far, block):
            found = selection.select(take_apart(b"".join(log[start : min(far, start + block)])))
            taken = progress.take(found) if found.data else found
            came += [(kind, data) for kind, data in zip(taken.kinds, taken.data, strict=True)]

    def bytes_of(stream: bytes, records: list[tuple[bytes, bytes]]) -> bytes:
        return b"".join(
            data + (b"\n" if kind.endswith(b"F") else b"") for kind, data in records if kind.startswith(stream)
        )

    whole = [(f"{stream} {tag}".encode(), data.encode()) for _, stream, tag, data in written]
    for one in (b"stdout", b"stderr"):
        assert bytes_of(one, came) == bytes_of(one, whole)
