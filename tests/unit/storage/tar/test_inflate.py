"""Compressed streams of any kind, in pieces of any size, whole, repeated or damaged."""

import bz2
import gzip
import lzma
from collections.abc import AsyncIterator, Callable

import pytest
import zstandard

from husk.errors import InvalidParameter
from husk.storage.tar.inflate import inflate

DATA = b"".join(b"line %d of the data\n" % number for number in range(50_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def whole(data: bytes, size: int = 10_000) -> bytes:
    return b"".join([piece async for piece in inflate(chunks(data, size))])


@pytest.mark.parametrize("size", [1000, 1 << 20])
@pytest.mark.parametrize("kind", PACK)
async def test_what_was_packed_comes_out(kind: str, size: int) -> None:
    assert await whole(PACK[kind](DATA), size) == DATA


@pytest.mark.parametrize("kind", PACK)
async def test_members_in_a_row_are_one_stream(kind: str) -> None:
    assert await whole(PACK[kind](DATA[:1000]) + PACK[kind](DATA[1000:])) == DATA


@pytest.mark.parametrize("kind", PACK)
async def test_a_stream_that_is_cut_off_or_damaged(kind: str) -> None:
    packed = PACK[kind](DATA)
    with pytest.raises(InvalidParameter, match="damaged archive"):
        await whole(packed[:-10])
    with pytest.raises(InvalidParameter, match="damaged archive"):
        await whole(packed[:20] + bytes(40) + packed[60:])


async def test_the_first_bytes_may_come_one_by_one() -> None:
    assert await whole(gzip.compress(b"hello"), 1) == b"hello"
    assert await whole(b"hello", 1) == b"hello"
    assert await whole(b"") == b""


async def test_a_bomb_comes_out_in_pieces() -> None:
    # Most of this test's time goes into packing: no larger than it has to be.
    bomb = bytes(64 << 20)
    for pack in PACK.values():
        sizes = [len(piece) async for piece in inflate(chunks(pack(bomb), 1 << 20))]
        assert sum(sizes) == len(bomb)
        assert max(sizes) <= 32 << 20
