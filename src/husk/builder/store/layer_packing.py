"""Layers in the compression that registries and archives want them in. Layers of builds are kept as plain tars.

    packed = await packer.pack(blob, Compression("gzip"), hold)

What was made is a blob beside the layer's own, for whoever holds it and names it in a record. It is not made twice
while it is there.
"""

import asyncio
import hashlib
import io
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import msgspec
import zstandard

from husk.aio.tasks import Tasks
from husk.builder.store.compressions import GZIP, ZSTD, Compression
from husk.storage.blobs import BlobStore
from husk.storage.sources import Compressor, gzip_packer, read_pieces
from husk.storage.tar.inflate import inflate

_ZSTD_LEVEL = 3
# Each takes a processor: more at once would only take them from others.
_AT_ONCE = 2
_MOST_KNOWN = 10_000


class PackedLayer(msgspec.Struct, frozen=True):
    digest: str
    size: int


Hold = Callable[[str], None]
"""Keeps a blob, by its digest."""
_Key = tuple[str, Compression]


class LayerPacker:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._known: dict[_Key, PackedLayer] = {}
        self._under_way: dict[_Key, asyncio.Task[PackedLayer]] = {}
        self._waiting: Counter[_Key] = Counter()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks = Tasks()

    async def close(self) -> None:
        await self._tasks.cancel_all()

    async def pack(self, blob: str, compressed: bool, wanted: Compression, hold: Hold) -> PackedLayer:
        """Return a blob in another compression; `compressed` tells if it has one now. The caller holds the blob."""
        key = blob, wanted
        while True:
            packed = self._known.get(key) or await self._made(key, compressed)
            hold(packed.digest)
            # Somebody who had it too may have let go of it before.
            if self._blobs.has(packed.digest):
                return packed
            self._known.pop(key, None)

    async def _made(self, key: _Key, compressed: bool) -> PackedLayer:
        """One who comes while it is made waits for the same; when nobody waits any more it is given up."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = self._tasks.spawn(self._make(key, compressed), "pack a layer", awaited=True)
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]
                task.cancel()

    async def _make(self, key: _Key, compressed: bool) -> PackedLayer:
        blob, wanted = key
        file = self._blobs.make_temporary()
        try:
            async with self._slots, aclosing(read_pieces(self._blobs.path(blob))) as pieces:
                if compressed:
                    async with aclosing(inflate(pieces)) as inflated:
                        packed = await _write(inflated, packer_for(wanted), file)
                else:
                    packed = await _write(pieces, packer_for(wanted), file)
            self._blobs.adopt(file, packed.digest)
        finally:
            file.unlink(missing_ok=True)
        self._known[key] = packed
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return packed


class _Plain:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def packer_for(wanted: Compression) -> Compressor:
    if wanted.kind == GZIP:
        return gzip_packer(wanted.level)
    if wanted.kind == ZSTD:
        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL if wanted.level is None else wanted.level).compressobj()
    return _Plain()


async def _write(pieces: AsyncIterator[bytes], packer: Compressor, path: Path) -> PackedLayer:
    hashed = hashlib.sha256()
    size = 0

    def write(file: io.FileIO, piece: bytes) -> int:
        packed = packer.compress(piece) if piece else packer.flush()
        hashed.update(packed)
        remaining = memoryview(packed)
        while remaining:
            remaining = remaining[file.write(remaining) :]
        return len(packed)

    with await asyncio.to_thread(path.open, "wb", buffering=0) as file:
        async for piece in pieces:
            size += await asyncio.to_thread(write, file, piece)
        size += await asyncio.to_thread(write, file, b"")
    return PackedLayer("sha256:" + hashed.hexdigest(), size)
