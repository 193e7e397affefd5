"""Bodies: cut at every byte they are the same, and sizes that could be read in two ways are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.http.bodies import ChunkFraming, Framing, LengthFraming
from husk.api.http.errors import BadRequest


def decode(framing: Framing, *pieces: bytes) -> tuple[bytes, bytes]:
    """(the body, what is behind it)"""
    found: list[bytes] = []
    behind = b""
    for piece in pieces:
        rest = piece
        while rest and not framing.ended:
            rest = framing.feed(rest, found)
        behind += rest
    return b"".join(found), behind


CHUNKED = [
    (b"0\r\n\r\n", b""),
    (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
    (b"5\r\nhello\r\n1\r\n \r\n005\r\nworld\r\n0\r\n\r\n", b"hello world"),
    (b"A;name=value\r\n0123456789\r\n0;x\r\n\r\n", b"0123456789"),
    (b"a ; x\r\n\r\n0\r\n\r\n012\r\n0\r\n\r\n", b"\r\n0\r\n\r\n012"),
    (b"1\r\nx\r\n000\r\nTrailer: x\r\nOther:\r\n\r\n", b"x"),
]


@pytest.mark.parametrize(("data", "body"), CHUNKED)
def test_chunks_cut_at_every_byte(data: bytes, body: bytes) -> None:
    for cut in range(len(data) + 1):
        framing = ChunkFraming()
        assert decode(framing, data[:cut], data[cut:] + b"GET /") == (body, b"GET /")
        assert framing.ended


@pytest.mark.parametrize(("data", "body"), CHUNKED)
def test_chunks_byte_by_byte_end_with_their_last_byte(data: bytes, body: bytes) -> None:
    framing = ChunkFraming()
    assert decode(framing, *(data[at : at + 1] for at in range(len(data) - 1))) == (body, b"")
    assert not framing.ended
    assert decode(framing, data[-1:]) == (b"", b"")
    assert framing.ended


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.binary(max_size=10), st.data())
def test_any_chunks_however_they_are_cut(chunks: list[bytes], behind: bytes, draw: st.DataObject) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n" + behind
    cuts = sorted(draw.draw(st.sets(st.integers(1, len(data) - 1), max_size=8)))
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert decode(ChunkFraming(), *pieces) == (b"".join(chunks), behind)


@given(st.binary(max_size=60), st.integers(0, 60), st.data())
def test_any_length_however_it_is_cut(data: bytes, length: int, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    framing = LengthFraming(length)
    assert decode(framing, data[:cut], data[cut:]) == (data[:length], data[length:])
    assert framing.ended is (len(data) >= length)


BAD = {
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "no digits": b"zz\r\n{}\r\n0\r\n\r\n",
    "a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "a negative size": b"-5\r\nhello\r\n0\r\n\r\n",
    "a prefix": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a space before": b" 5\r\nhello\r\n0\r\n\r\n",
    "a space behind": b"5 \r\nhello\r\n0\r\n\r\n",
    "an underscore": b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    "too long a size": b"1" * 17 + b"\r\nhello\r\n0\r\n\r\n",
    "a bare LF behind the size": b"5\nhello\r\n0\r\n\r\n",
    "a bare CR behind the size": b"5\rhello\r\n0\r\n\r\n",
    "a bare LF in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "a chunk that is longer than its size": b"4\r\nhello\r\n0\r\n\r\n",
    "a chunk that is shorter than its size": b"6\r\nhello\r\n0\r\n\r\n",
    "a bare LF behind a chunk": b"5\r\nhello\n0\r\n\r\n",
    "a trailer that is none": b"0\r\nGET / HTTP/1.1\r\n\r\n",
    "a folded trailer": b"0\r\nA: b\r\n c\r\n\r\n",
    "a NUL in an extension": b"5;\0\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_what_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    for cut in range(len(data)):
        framing = ChunkFraming()
        with pytest.raises(BadRequest):
            decode(framing, data[:cut], data[cut:])
            assert framing.ended  # else it is still waited for, and nothing was made of it


def test_an_extension_has_an_end() -> None:
    with pytest.raises(BadRequest):
        decode(ChunkFraming(), b"5;" + b"a" * 5000)
    with pytest.raises(BadRequest):
        decode(ChunkFraming(), b"5;", *[b"a"] * 5000)
    with pytest.raises(BadRequest):
        decode(ChunkFraming(), *[b"1;" + b"a" * 1000 + b"\r\nx\r\n"] * 100)


def test_trailers_have_an_end() -> None:
    with pytest.raises(BadRequest):
        decode(ChunkFraming(), b"0\r\n", *[b"Trailer: " + b"a" * 1000 + b"\r\n"] * 100)


def test_small_chunks_are_welcome() -> None:
    data = b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n"
    assert decode(ChunkFraming(), data) == (b"x" * 50_000, b"")
    begun: list[bytes] = []
    rest = ChunkFraming().feed(data, begun)
    assert len(begun) <= 2048 and data.endswith(rest)
