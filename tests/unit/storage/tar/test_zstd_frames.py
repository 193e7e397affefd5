"""Frames of zstd, whole and cut off, in pieces of any size."""

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.zstd_frames import ZstdFrames

DATA = b"text " * 3000 + os.urandom(3000) + bytes(200_000)


def frames() -> list[bytes]:
    """With a size and without, with a checksum, empty, of many blocks, and one to be skipped."""
    plain = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    several = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    blocks = b"".join(several.compress(DATA) + several.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for _ in range(3))
    return [
        zstandard.compress(DATA),
        zstandard.compress(b""),
        plain.compress(DATA) + plain.flush(),
        blocks + several.flush(),
        (0x184D2A5A).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello",
        zstandard.compress(os.urandom(70_000)),
    ]


def is_whole(data: bytes, size: int) -> bool:
    found = ZstdFrames()
    for at in range(0, len(data), size):
        found.feed(data[at : at + size])
    return found.whole


@pytest.mark.parametrize("number", range(len(frames())))
def test_a_frame_is_whole_at_its_end_and_nowhere_before(number: int) -> None:
    frame = frames()[number]
    found = ZstdFrames()
    for byte in frame[:-1]:
        found.feed(bytes([byte]))
        assert not found.whole
    found.feed(frame[-1:])
    assert found.whole


@given(st.lists(st.sampled_from(frames()), max_size=4), st.integers(1, 5000))
def test_frames_behind_each_other(parts: list[bytes], size: int) -> None:
    assert is_whole(b"".join(parts), size)
    for part in parts:
        assert not is_whole(b"".join(parts) + part[:-1], size)


@given(st.binary(max_size=200))
def test_what_is_no_frame_does_no_harm(data: bytes) -> None:
    is_whole(data, 7)
