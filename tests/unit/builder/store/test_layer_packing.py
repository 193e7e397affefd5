"""Layers in another compression."""

import asyncio
import gzip
import hashlib
from pathlib import Path

import pytest
import zstandard

from husk.aio.tasks import Tasks
from husk.builder.store.compressions import Compression
from husk.builder.store.layer_packing import LayerPacker
from husk.storage.blobs import BlobStore
from husk.storage.sources import GzipSource

DATA = b"some content" * 200_000


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.open(tmp_path / "blobs")


async def packed(blobs, data, wanted, compressed=False):
    held: list[str] = []
    made = await LayerPacker(blobs).pack(await blobs.put(data), compressed, wanted, held.append)
    body = await blobs.read(made.digest)
    assert held == [made.digest]
    assert (made.digest, made.size) == ("sha256:" + hashlib.sha256(body).hexdigest(), len(body))
    return body


async def test_gzip_gives_what_a_push_gives(blobs):
    body = await packed(blobs, DATA, Compression("gzip"))
    assert gzip.decompress(body) == DATA
    source = GzipSource(blobs.path(await blobs.put(DATA)))
    assert b"".join([piece async for piece in source.read(0)]) == body


@pytest.mark.parametrize("level", [1, 9])
async def test_gzip_with_a_level(blobs, level):
    assert gzip.decompress(await packed(blobs, DATA, Compression("gzip", level))) == DATA


async def test_zstd_and_back(blobs):
    body = await packed(blobs, DATA, Compression("zstd", 1))
    assert zstandard.ZstdDecompressor().decompressobj().decompress(body) == DATA
    assert await packed(blobs, body, Compression("uncompressed"), compressed=True) == DATA
    assert gzip.decompress(await packed(blobs, body, Compression("gzip"), compressed=True)) == DATA


async def test_it_is_made_once_while_it_is_there(tmp_path):
    made: list[Path] = []

    class Noting(BlobStore):
        def make_temporary(self):
            made.append(super().make_temporary())
            return made[-1]

    blobs = Noting.open(tmp_path / "blobs")
    packer = LayerPacker(blobs)
    blob = await blobs.put(DATA)
    made.clear()

    async def pack():
        return await packer.pack(blob, False, Compression(), lambda digest: None)

    first, second = await asyncio.gather(pack(), pack())
    assert first == second == await pack()
    assert len(made) == 1
    await blobs.remove(first.digest)
    assert await pack() == first
    assert blobs.has(first.digest)
    assert len(made) == 2


async def test_one_that_nobody_waits_for_is_given_up(blobs, tmp_path):
    packer = LayerPacker(blobs)
    blob = await blobs.put(DATA)
    task = Tasks().spawn(packer.pack(blob, False, Compression("zstd", 22), lambda digest: None), "pack", awaited=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await packer.close()
    assert blobs.all() == {blob}
    assert list((tmp_path / "blobs/ingest").iterdir()) == []
