"""Frames survive any way of cutting the bytes; what is wrong about one is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.rpc.http2 import frames
from husk.rpc.http2.errors import Http2Error

some_frames = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, frames.LARGEST_WINDOW), st.binary(max_size=40)),
    max_size=6,
)


@given(some_frames, st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(sent: list[frames.Frame], step: int) -> None:
    data = b"".join(frames.frame(*one) for one in sent)
    reader = frames.FrameReader()
    received = [one for start in range(0, len(data), step) for one in reader.feed(data[start : start + step])]
    assert _joined(received) == _joined(sent)
    assert reader.waiting == 0


@pytest.mark.parametrize("step", [1, 7, 4096, 16393, 20000, 65536])
def test_large_frames_come_out_as_they_went_in_wherever_the_bytes_are_cut(step: int) -> None:
    sent = [
        (frames.DATA, 0, 1, bytes(range(256)) * 64),
        (frames.DATA, 0, 1, b"x" * 5000),
        (frames.PING, 0, 0, b"12345678"),
        (frames.DATA, 0, 3, b"y" * 16384),
        (frames.DATA, frames.END_STREAM, 3, b"z" * 3000),
    ]
    data = b"".join(frames.frame(*one) for one in sent)
    reader = frames.FrameReader()
    received = [one for start in range(0, len(data), step) for one in reader.feed(data[start : start + step])]
    assert _joined(received) == _joined(sent)
    assert all(type(payload) is bytes for *_, payload in received)
    assert reader.waiting == 0


def test_data_of_one_stream_in_many_frames_is_given_as_one() -> None:
    data, ping = frames.frame(frames.DATA, 0, 3, b"some"), frames.frame(frames.PING, 0, 0, bytes(8))
    other, last = frames.frame(frames.DATA, 0, 5, b"other"), frames.frame(frames.DATA, frames.END_STREAM, 3, b"last")
    assert list(frames.FrameReader().feed(data + data + other + data + data + ping + data + last)) == [
        (frames.DATA, 0, 3, b"somesome"),
        (frames.DATA, 0, 5, b"other"),
        (frames.DATA, 0, 3, b"somesome"),
        (frames.PING, 0, 0, bytes(8)),
        (frames.DATA, 0, 3, b"some"),
        (frames.DATA, frames.END_STREAM, 3, b"last"),
    ]


def _joined(read: list[frames.Frame]) -> list[frames.Frame]:
    """With the data of one stream that follows each other as one frame."""
    joined: list[frames.Frame] = []
    for kind, flags, stream, payload in read:
        if joined and (kind, flags) == (frames.DATA, 0) and joined[-1][:3] == (kind, flags, stream):
            payload = joined.pop()[3] + payload
        joined.append((kind, flags, stream, payload))
    return joined


def test_a_frame_larger_than_we_take_is_refused_before_its_payload_came() -> None:
    with pytest.raises(Http2Error, match="16385"):
        list(frames.FrameReader().feed(frames.head(frames.DATA, 0, 1, 16385)))
    reader = frames.FrameReader()
    head = frames.head(frames.DATA, 0, 1, 16385)
    assert list(reader.feed(head[:5])) == []
    with pytest.raises(Http2Error, match="16385"):
        list(reader.feed(head[5:]))


def test_padding_and_priority_are_taken_off() -> None:
    padded = b"\x02" + b"12345" + b"payload" + bytes(2)
    assert frames.without_padding(frames.PADDED | frames.WITH_PRIORITY, padded) == b"payload"


@pytest.mark.parametrize("payload", [b"", b"\x05", b"\x01\x01" + bytes(3)])
def test_padding_that_does_not_fit_is_refused(payload: bytes) -> None:
    with pytest.raises(Http2Error):
        frames.without_padding(frames.PADDED | frames.WITH_PRIORITY, payload)


def test_settings_are_read_as_they_are_written() -> None:
    [(kind, flags, stream, payload)] = frames.FrameReader().feed(frames.settings({3: 100, 4: 1 << 20}))
    assert (kind, flags, stream) == (frames.SETTINGS, 0, 0)
    assert frames.read_settings(payload) == [(3, 100), (4, 1 << 20)]
    with pytest.raises(Http2Error):
        frames.read_settings(payload[1:])
