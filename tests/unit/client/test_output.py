import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.streams.framing import frame
from husk.client.output import Captured, Frames, Piece, lines, pieces
from husk.errors import InvalidParameter


async def coming(*data):
    for each in data:
        yield each


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=20)), max_size=8), st.integers(1, 9))
def test_frames_are_the_same_however_they_are_cut(written, step):
    whole = b"".join(frame(stream, data) for stream, data in written)
    frames = Frames()
    found = [piece for start in range(0, len(whole), step) for piece in frames.feed(whole[start : start + step])]
    assert found == [Piece("stderr" if stream == 2 else "stdout", data) for stream, data in written]


async def test_with_a_terminal_all_is_output():
    assert [piece async for piece in pieces(coming(b"a", b"", b"b"), multiplexed=False)] == [
        ("stdout", b"a"),
        ("stdout", b"b"),
    ]


async def test_lines_of_both_streams_do_not_mix():
    written = coming(Piece("stdout", b"on"), Piece("stderr", b"err\nleft"), Piece("stdout", b"e\r\ntwo\n"))
    assert [line async for line in lines(written)] == ["err", "one", "two", "left"]


async def test_all_of_both_streams():
    kept = Captured(2)
    written = pieces(coming(frame(1, b"a") + frame(2, b"xyz"), frame(1, b"b")), multiplexed=True)
    async for stream, data in written:
        kept.add(stream, data)
    assert (kept.stdout, kept.stderr, kept.truncated) == (b"ab", b"xy", True)
    with pytest.raises(InvalidParameter, match="max_output"):
        Captured(-1)
