"""Reading of blobs out of the store, piece by piece: as they are, or compressed on the way.

Each piece is read (and compressed, and hashed) in a thread, so that memory stays constant and the event loop free.
"""

import asyncio
import hashlib
import os
import zlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Protocol

from isal import isal_zlib

PIECE = 1 << 20
# Of isal's four levels the one that is near `gzip -1` in size at several times its speed.
_LEVEL = 2
_GZIP_FORMAT = 31


async def read_pieces(path: Path, offset: int = 0) -> AsyncGenerator[bytes, None]:
    """A file's bytes from `offset` on; iterate inside `aclosing`."""
    fd = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while piece := await asyncio.to_thread(os.pread, fd, PIECE, offset):
            yield piece
            offset += len(piece)
    finally:
        os.close(fd)


class FileSource:
    """A blob as it is on disk."""

    def __init__(self, path: Path, digest: str, size: int) -> None:
        self._path = path
        self.digest = digest
        self.size = size

    def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        return read_pieces(self._path, offset)


class Compressor(Protocol):
    """A compressor: what has come out so far, then the rest."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def gzip_packer(level: int | None = None) -> Compressor:
    """The header carries no time and no name, so that the digest depends on the content alone."""
    if level is None:
        packer: Compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP_FORMAT)
        return packer

    return zlib.compressobj(level, wbits=_GZIP_FORMAT)


class GzipSource:
    """A blob compressed on the way: the same bytes whenever it is read. Size and digest are known after that."""

    def __init__(
        self, path: Path, digest: str = "", size: int = -1, make_packer: Callable[[], Compressor] = gzip_packer
    ) -> None:
        self._path = path
        self.digest = digest
        self.size = size
        self._make_packer = make_packer

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        packer = self._make_packer()
        hashed = hashlib.sha256()
        size, skip = 0, offset

        def pack(piece: bytes) -> bytes:
            packed = packer.compress(piece) if piece else packer.flush()
            hashed.update(packed)
            return packed

        source = read_pieces(self._path)
        try:
            ended = False
            while not ended:
                piece = await anext(source, b"")
                ended = not piece
                packed = await asyncio.to_thread(pack, piece)
                size += len(packed)
                if skip < len(packed):
                    if ended:
                        # Before the last bytes leave: whoever gets them must be able to ask for the digest.
                        self.digest, self.size = "sha256:" + hashed.hexdigest(), size
                    yield packed[skip:] if skip else packed
                skip = max(0, skip - len(packed))
            self.digest, self.size = "sha256:" + hashed.hexdigest(), size
        finally:
            await source.aclose()
