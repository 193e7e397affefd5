"""Reading of a stream that may be compressed, in a worker: through the decompressor that its first bytes ask for.

What a client sends to the daemon itself is decompressed by `inflate`.
"""

import bz2
import lzma
from typing import Protocol

import zstandard
from isal import igzip

from husk.compression import compression_of
from husk.storage.tar.header import is_tar
from husk.storage.tar.zstd_frames import ZstdFrames

_READ_SIZE = 1 << 20


class Reader(Protocol):
    """A source of bytes: none at the end; less than asked for where more would have to be waited for."""

    def readinto(self, buffer: memoryview, /) -> int: ...

    def read1(self, size: int, /) -> bytes: ...


class HeadedReader(Reader, Protocol):
    """A stream whose first block can be looked at before it is read."""

    head: bytes

    def read(self, size: int, /) -> bytes: ...


class Gunzip:
    """gzip, in one member or many."""

    def __init__(self, source: HeadedReader) -> None:
        # It only reads from it.
        self._file = igzip.IGzipFile(fileobj=source, mode="rb")  # type: ignore[no-untyped-call]

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read1(self, size: int, /) -> bytes:
        # What one step of the decoder gives: the next thread need not wait for more to come.
        piece: bytes = self._file.read1(size)
        return piece


class _FramesSource:
    """The input of a decompressor of zstd, which takes the end of that for an end, in the middle of a frame too."""

    def __init__(self, source: HeadedReader) -> None:
        self._source = source
        self._frames = ZstdFrames()

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._frames.feed(data)
        if not data and not self._frames.whole:
            raise EOFError("unexpected end of the compressed data")
        return data


def choose_reader(source: HeadedReader) -> Reader:
    """The decompressor for the stream. It raises EOFError, or what the compression's library does, for one that is cut
    off."""
    if is_tar(source.head):
        return source
    compression = compression_of(source.head)
    if compression == "gzip":
        return Gunzip(source)
    if compression == "zstd":
        decompressor = zstandard.ZstdDecompressor()
        frames = _FramesSource(source)
        # It only calls `read`.
        return decompressor.stream_reader(frames, read_size=_READ_SIZE, read_across_frames=True)  # type: ignore[arg-type]
    if compression == "bzip2":
        return bz2.BZ2File(source)  # type: ignore[call-overload,no-any-return]
    if compression == "xz":
        return lzma.LZMAFile(source)  # type: ignore[arg-type]
    return source
