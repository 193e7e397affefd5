"""Decompression of a stream: gzip, zstd, xz and bzip2 are told by their first bytes, all else passes as it is.

For archives that a client sends (`load`, `import`); layers are decompressed by the worker that unpacks them.
"""

import asyncio
import bz2
import lzma
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Protocol

import zstandard
from isal import isal_zlib

from husk.compression import LONGEST_MAGIC, compression_of
from husk.errors import InvalidParameter

# A few bytes can become gigabytes: never take more than this out of a decompressor at once.
_MOST = 4 << 20
_SMALL = 512
_FAULTS: tuple[type[Exception], ...] = (isal_zlib.IsalError, lzma.LZMAError, OSError, EOFError)  # type: ignore[assignment]


class _Decoder(Protocol):
    """One compressed member; `more` has bytes that were taken in and not yet decompressed."""

    def feed(self, data: bytes) -> bytes: ...
    @property
    def pending(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def rest(self) -> bytes: ...


class _Stdlib:
    """lzma and bz2, whose objects have one interface."""

    def __init__(self, decoder: "lzma.LZMADecompressor | bz2.BZ2Decompressor") -> None:
        self._decoder = decoder

    def feed(self, data: bytes) -> bytes:
        return self._decoder.decompress(data, _MOST)

    @property
    def pending(self) -> bool:
        return not self._decoder.needs_input and not self._decoder.eof

    @property
    def ended(self) -> bool:
        return self._decoder.eof

    @property
    def rest(self) -> bytes:
        return self._decoder.unused_data


class _Gzip:
    def __init__(self) -> None:
        self._decoder = isal_zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> bytes:
        inflated: bytes = self._decoder.decompress(self._decoder.unconsumed_tail + data, _MOST)
        return inflated

    @property
    def pending(self) -> bool:
        return bool(self._decoder.unconsumed_tail) and not self.ended

    @property
    def ended(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def rest(self) -> bytes:
        return bytes(self._decoder.unused_data)


class _Zstd:
    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self._ahead = b""

    def feed(self, data: bytes) -> bytes:
        # zstandard has no limit for what comes out. A block of 4 bytes may become 128 KiB, so little goes in at once.
        data = self._ahead + data
        out: list[bytes] = []
        size = at = 0
        while at < len(data) and size < _MOST and not self._decoder.eof:
            out.append(self._decoder.decompress(data[at : at + _SMALL]))
            at += _SMALL
            size += len(out[-1])
        self._ahead = data[at:]
        return b"".join(out)

    @property
    def pending(self) -> bool:
        return bool(self._ahead) and not self.ended

    @property
    def ended(self) -> bool:
        return self._decoder.eof

    @property
    def rest(self) -> bytes:
        return self._decoder.unused_data + self._ahead


def _decoder_for(head: bytes) -> _Decoder | None:
    match compression_of(head):
        case "gzip":
            return _Gzip()
        case "zstd":
            return _Zstd()
        case "xz":
            return _Stdlib(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=512 << 20))
        case "bzip2":
            return _Stdlib(bz2.BZ2Decompressor())
        case _:
            return None


async def peek(chunks: AsyncIterator[bytes], count: int = LONGEST_MAGIC) -> bytes:
    """At least the next `count` bytes, fewer only at the end."""
    head = b""
    while len(head) < count and (chunk := await anext(chunks, b"")):
        head += chunk
    return head


async def inflate(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The stream without its compression; several compressed members in a row are one. Iterate inside `aclosing`."""
    data = await peek(chunks)
    decoder = _decoder_for(data)
    if decoder is None:
        if data:
            yield data
        async for chunk in chunks:
            yield chunk
        return
    try:
        async with aclosing(_members(chunks, decoder, data)) as pieces:
            async for piece in pieces:
                yield piece
    except Exception as error:
        if isinstance(error, _FAULTS) or type(error).__name__ == "ZstdError":
            raise InvalidParameter(f"damaged archive: {error}") from error
        raise


async def _members(chunks: AsyncIterator[bytes], decoder: _Decoder, data: bytes) -> AsyncGenerator[bytes, None]:
    while True:
        while True:
            if piece := await asyncio.to_thread(decoder.feed, data):
                yield piece
            if decoder.ended:
                break
            data = b""
            if not decoder.pending and not (data := await anext(chunks, b"")):
                raise EOFError("unexpected end of the compressed data")
        data = decoder.rest
        if len(data) < LONGEST_MAGIC:
            data += await peek(chunks, LONGEST_MAGIC - len(data))
        if (following := _decoder_for(data)) is None:
            return  # padding, or nothing
        decoder = following
