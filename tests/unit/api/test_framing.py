"""Framing: eight bytes before each piece, times before each line, nothing lost."""

from hypothesis import given
from hypothesis import strategies as st

from husk.api.framing import LogEncoder, frame
from husk.engine.logs.read import LogRecord

T = b"2026-01-02T03:04:05.000000006Z"


def unframe(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        length = int.from_bytes(data[4:8])
        assert data[1:4] == b"\0\0\0"
        found.append((data[0], data[8 : 8 + length]))
        data = data[8 + length :]
    return found


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary())))
def test_frames_carry_every_byte(pieces: list[tuple[int, bytes]]) -> None:
    assert unframe(b"".join(frame(stream, data) for stream, data in pieces)) == pieces


def test_a_terminal_gets_bytes_as_they_were() -> None:
    encoder = LogEncoder(multiplexed=False, timestamps=False)
    assert encoder.encode([LogRecord(1, T, b"a\r\n", False), LogRecord(1, T, b"b", True)]) == b"a\r\nb"


def test_every_record_is_a_frame() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=False)
    records = [LogRecord(1, T, b"out\n", False), LogRecord(2, T, b"err\n", False)]
    assert unframe(encoder.encode(records)) == [(1, b"out\n"), (2, b"err\n")]


def test_a_time_stands_before_each_line_and_not_within() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=True)
    first = encoder.encode([LogRecord(1, T, b"long ", True), LogRecord(2, T, b"err\n", False)])
    rest = encoder.encode([LogRecord(1, T, b"line\n", False), LogRecord(1, T, b"next\n", False)])
    assert unframe(first + rest) == [
        (1, T + b" long "),
        (2, T + b" err\n"),
        (1, b"line\n"),
        (1, T + b" next\n"),
    ]


def test_details_leave_the_space_of_absent_attributes() -> None:
    encoder = LogEncoder(multiplexed=False, timestamps=True, attributes=b" ")
    assert encoder.encode([LogRecord(1, T, b"x\n", False)]) == T + b"  x\n"
