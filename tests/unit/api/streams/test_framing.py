"""Framing: eight bytes before each piece, times before each line, nothing lost."""

from hypothesis import given
from hypothesis import strategies as st

from husk.api.streams.framing import LogEncoder, frame
from husk.engine.logs.records import take_apart

T = b"2026-01-02T03:04:05.000000006Z"


def unframe(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        length = int.from_bytes(data[4:8])
        assert data[1:4] == b"\0\0\0"
        found.append((data[0], data[8 : 8 + length]))
        data = data[8 + length :]
    return found


def encoded(encoder: LogEncoder, *records: bytes) -> bytes:
    text = b"".join(T + b" " + record + b"\n" for record in records)
    return encoder.encode(take_apart(text, times=encoder.needs_times))


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary())))
def test_frames_carry_every_byte(pieces: list[tuple[int, bytes]]) -> None:
    assert unframe(b"".join(frame(stream, data) for stream, data in pieces)) == pieces


def test_a_terminal_gets_bytes_as_they_were() -> None:
    encoder = LogEncoder(multiplexed=False, timestamps=False)
    assert encoded(encoder, b"stdout F a\r", b"stdout F ", b"stdout P b") == b"a\r\n\nb"
    assert encoded(encoder, b"stdout F a\r", b"stdout F ") == b"a\r\n\n"


def test_every_record_is_a_frame() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=False)
    assert unframe(encoded(encoder, b"stdout F out", b"stderr F err")) == [(1, b"out\n"), (2, b"err\n")]
    assert unframe(encoded(encoder, b"stdout F a", b"stdout F bc")) == [(1, b"a\n"), (1, b"bc\n")]
    assert encoded(encoder) == b""


def test_a_time_stands_before_each_line_and_not_within() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=True)
    first = encoded(encoder, b"stdout P long ", b"stderr F err")
    rest = encoded(encoder, b"stdout F line", b"stdout F next")
    assert unframe(first + rest) == [
        (1, T + b" long "),
        (2, T + b" err\n"),
        (1, b"line\n"),
        (1, T + b" next\n"),
    ]


def test_details_leave_the_space_of_absent_attributes() -> None:
    encoder = LogEncoder(multiplexed=False, timestamps=True, attributes=b" ")
    assert encoded(encoder, b"stdout F x") == T + b"  x\n"


def test_details_stand_before_each_line_without_times_too() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=False, attributes=b"a=b ")
    assert unframe(encoded(encoder, b"stdout F x", b"stdout P y", b"stderr F -", b"stdout F z")) == [
        (1, b"a=b x\n"),
        (1, b"a=b y"),
        (2, b"a=b -\n"),
        (1, b"z\n"),
    ]


def test_a_line_in_two_pieces_is_one_frame_as_long_as_docker_makes_them() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=True)
    assert unframe(encoded(encoder, b"stdout P y", b"stdout F z")) == [(1, T + b" yz\n")]
    half = b"x" * 8192
    frames = unframe(encoded(encoder, *[b"stdout P " + half] * 3, b"stdout F end"))
    assert frames == [(1, T + b" " + half + half), (1, half + b"end\n")]


def test_lines_of_any_length_have_their_frame_whether_its_header_was_ready_or_not() -> None:
    encoder = LogEncoder(multiplexed=True, timestamps=False)
    lines = [b"x" * length for length in range(1100)]
    for _ in range(2):
        data = encoded(encoder, *(b"stdout F " + line for line in lines))
        assert unframe(data) == [(1, line + b"\n") for line in lines]


kinds = st.sampled_from([b"stdout F", b"stdout P", b"stderr F", b"stderr P"])
texts = st.binary(max_size=30).map(lambda data: data.replace(b"\n", b" stdout F "))
batches = st.lists(st.lists(st.tuples(kinds, texts), max_size=5), max_size=4)


def joined(batch: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """With one record for pieces that follow one another."""
    done: list[tuple[bytes, bytes]] = []
    for kind, data in batch:
        if done and done[-1][0].endswith(b"P") and done[-1][0][:6] == kind[:6]:
            data = done.pop()[1] + data
        done.append((kind, data))
    return done


@given(batches, st.booleans(), st.booleans(), st.sampled_from([b"", b" ", b"a=b "]))
def test_many_lines_at_once_are_what_they_are_one_by_one(
    happened: list[list[tuple[bytes, bytes]]], multiplexed: bool, timestamps: bool, attributes: bytes
) -> None:
    encoder = LogEncoder(multiplexed=multiplexed, timestamps=timestamps, attributes=attributes)
    got = b"".join(encoded(encoder, *(kind + b" " + data for kind, data in batch)) for batch in happened)
    expected, within = b"", {1: False, 2: False}
    for kind, data in (record for batch in happened for record in joined(batch)):
        stream, partial = 1 if kind.startswith(b"stdout") else 2, kind.endswith(b"P")
        prefix = b"" if within[stream] else (T + b" " if timestamps else b"") + attributes
        within[stream] = partial
        line = prefix + data + (b"" if partial else b"\n")
        expected += frame(stream, line) if multiplexed else line
    assert got == expected
