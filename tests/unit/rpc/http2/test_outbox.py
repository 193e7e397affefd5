"""Outgoing data keeps to the peer's windows, and many small pieces become few frames."""

import pytest
from hpack import Decoder

from husk.rpc.http2 import frames
from husk.rpc.http2.errors import Http2Error
from husk.rpc.http2.outbox import Outbox
from tests.support.work import lines_run


def sent(outbox: Outbox) -> list[frames.Frame]:
    return list(frames.FrameReader().feed(b"".join(outbox.take()[0])))


def test_small_pieces_go_out_in_one_frame() -> None:
    outbox = Outbox()
    stream = outbox.open(1)
    for _ in range(100):
        outbox.data(stream, b"12345")
    outbox.end(stream)
    assert sent(outbox) == [(frames.DATA, frames.END_STREAM, 1, b"12345" * 100)]
    assert sent(outbox) == []


def test_data_waits_for_the_window_of_its_stream_and_of_the_connection() -> None:
    outbox = Outbox()
    outbox.first_window_is(10)
    stream = outbox.open(1)
    outbox.data(stream, b"x" * 25)
    outbox.end(stream)
    assert [len(one[3]) for one in sent(outbox)] == [10]
    outbox.window = 5
    outbox.widen(1, 10)
    assert [len(one[3]) for one in sent(outbox)] == [5]
    outbox.widen(0, 100)
    outbox.widen(1, 100)
    assert sent(outbox) == [(frames.DATA, frames.END_STREAM, 1, b"x" * 10)]


def test_trailers_come_behind_the_data() -> None:
    outbox = Outbox()
    outbox.window = 4
    stream = outbox.open(1)
    outbox.data(stream, b"12345678")
    outbox.end(stream, [(b"grpc-status", b"0")])
    assert [one[0] for one in sent(outbox)] == [frames.DATA]
    outbox.widen(0, 4)
    data, headers = sent(outbox)
    assert (data[0], data[1]) == (frames.DATA, 0)
    assert (headers[0], headers[1]) == (frames.HEADERS, frames.END_STREAM | frames.END_HEADERS)


def test_data_larger_than_a_frame_is_cut() -> None:
    outbox = Outbox()
    stream = outbox.open(1)
    outbox.data(stream, b"x" * 40000)
    outbox.end(stream)
    pieces, _ = outbox.take()
    assert [len(piece) for piece in pieces[1::2]] == [16384, 16384, 7232]
    assert [head[4] for head in pieces[::2]] == [0, 0, frames.END_STREAM]


def test_headers_larger_than_a_frame_are_cut() -> None:
    outbox = Outbox()
    outbox.open(1)
    outbox.headers(1, [(b"x", bytes(range(33, 127)) * 400)], end=True)
    kinds = [(one[0], one[1]) for one in sent(outbox)]
    assert kinds[0] == (frames.HEADERS, frames.END_STREAM)
    assert kinds[-1] == (frames.CONTINUATION, frames.END_HEADERS)


def test_a_stream_without_room_does_not_keep_others_from_theirs() -> None:
    outbox = Outbox()
    first, second = outbox.open(1), outbox.open(3)
    outbox.window = 10
    outbox.data(first, b"a" * 30)
    outbox.data(second, b"b" * 5)
    assert [one[2] for one in sent(outbox)] == [1]
    outbox.widen(0, 5)
    assert [one[2] for one in sent(outbox)] == [3]


def test_windows_cannot_grow_without_end() -> None:
    outbox = Outbox()
    outbox.open(1)
    for number in (0, 1):
        with pytest.raises(Http2Error):
            outbox.widen(number, frames.LARGEST_WINDOW)


def test_a_peer_that_takes_a_byte_at_a_time_does_not_have_the_rest_copied() -> None:
    outbox = Outbox()
    outbox.first_window_is(0)
    stream = outbox.open(1)
    data = bytes(range(256)) * 1000
    outbox.data(stream, data[:1000])
    outbox.data(stream, data[1000:])
    kept = stream.parts[1]
    got = b""
    for size in (1, 998, 1, 1, 500, 7):
        outbox.widen(1, size)
        got += b"".join(one[3] for one in sent(outbox))
        assert stream.parts[-1] is kept
    outbox.widen(1, 1 << 20)
    outbox.widen(0, 1 << 20)
    assert got + b"".join(one[3] for one in sent(outbox)) == data


def test_streams_that_wait_for_their_own_window_are_not_looked_at() -> None:
    def work(streams: int) -> int:
        outbox = Outbox()
        outbox.first_window_is(0)
        for number in range(1, 2 * streams, 2):
            outbox.data(outbox.open(number), b"x")
        outbox.take()
        return lines_run(outbox.take)

    assert work(500) == work(5)


def test_sizes_of_the_peers_table_do_not_gather() -> None:
    outbox = Outbox()
    outbox.open(1)
    for _ in range(1000):
        outbox.table_size_is(0)
        outbox.table_size_is(4096)
    outbox.headers(1, [(b":status", b"200")], end=True)
    (headers,) = sent(outbox)
    assert headers[3] == bytes([0x20, 0x3F, 0xE1, 0x1F, 0x88]), "the smallest, the last, and the header"


def test_long_headers_are_said_as_they_are() -> None:
    """To press them is a microsecond of everybody's time for each byte."""
    said = [(b"grpc-status", b"2"), (b"grpc-message", b"a long story, " * 2000)]
    outbox = Outbox()
    outbox.open(1)
    outbox.headers(1, said, end=True)
    block = b"".join(frame[-1] for frame in sent(outbox))
    assert said[1][1] in block
    assert Decoder(max_header_list_size=1 << 20).decode(block, raw=True) == said
