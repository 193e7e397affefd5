"""The room `engine/images` on a double of the layers: records and blobs are real, and no layer is ever unpacked."""

import gzip
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import zstandard

from husk.compression import compression_of
from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.held import HeldLayers
from husk.engine.images.index import ImageIndex, index_record
from husk.engine.images.make import chain_ids, image_over, read_config
from husk.engine.images.store import ImageStore
from husk.engine.model.container import Container
from husk.engine.model.events import Event, Events
from husk.engine.model.image import Image, Progress
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Descriptor, Index, parse_manifest
from husk.registry.reference import parse
from husk.storage.blobs import BlobStore
from husk.storage.layers.chain import chain_id
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import Layer, LayerStore
from husk.storage.state.store import StateStore
from tests.support.but import but
from tests.support.registry import Image as Made
from tests.support.registry import digest_of, make_index


class MemoryIngest:
    """A layer on its way in."""

    def __init__(self, layers: "MemoryLayers", expected: str | None, media_type: str) -> None:
        self._layers, self._expected, self._media_type = layers, expected, media_type
        self._received = bytearray()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self._received += chunk

    async def finish(self) -> Unpacked:
        blob = bytes(self._received)
        digest = digest_of(blob)
        if self._expected not in (None, digest):
            raise InvalidParameter(f"layer verification failed for digest {self._expected}")
        plain = _plain(blob)
        blob_file = self._layers.content.make_temporary()
        blob_file.write_bytes(blob)
        self._layers.staged.add(blob_file)
        return Unpacked(digest, len(blob), digest_of(plain), len(plain), self._media_type, "", blob_file, False)


class MemoryLayers:
    """Layers by their chain ids; `staged` holds what came and was neither committed nor discarded."""

    def __init__(self, blobs: BlobStore) -> None:
        self.content = blobs
        self.records: dict[str, Layer] = {}
        self.staged: set[Path] = set()
        self.damaged: set[str] = set()
        self.fails: Exception | None = None
        self.revision = 0

    def get(self, chain: str) -> Layer | None:
        return self.records.get(chain)

    async def sound(self, chain: str) -> bool:
        return chain in self.records and chain not in self.damaged

    def all(self) -> list[Layer]:
        return list(self.records.values())

    def owns(self, blob: str) -> bool:
        return blob in self.blobs()

    def of_blob(self, blob: str) -> list[str]:
        return [layer.chain_id for layer in self.all() if layer.blob == blob]

    def blobs(self) -> set[str]:
        return {layer.blob for layer in self.records.values()}

    def lower(self, chain_ids: Sequence[str]) -> list[str]:
        if missing := [chain for chain in chain_ids if chain not in self.records]:
            raise NotFound(f"layer does not exist: {missing[0]}")
        return [f"/layers/{chain}" for chain in reversed(chain_ids)]

    @asynccontextmanager
    async def ingest(self, digest: str | None, media_type: str, limited: bool = True) -> AsyncIterator[MemoryIngest]:
        yield MemoryIngest(self, digest, media_type)

    async def commit(self, unpacked: Unpacked, parent: str) -> Layer:
        self.staged.discard(unpacked.blob_file)
        if self.fails is not None:
            unpacked.blob_file.unlink()
            raise self.fails
        chain = chain_id(parent, unpacked.diff_id)
        self.content.adopt(unpacked.blob_file, unpacked.blob)
        self.damaged.discard(chain)
        self.records[chain] = Layer(
            chain,
            unpacked.diff_id,
            parent,
            chain,
            unpacked.size,
            unpacked.blob,
            unpacked.blob_size,
            unpacked.media_type,
        )
        return self.records[chain]

    async def discard(self, unpacked: Unpacked) -> None:
        self.staged.discard(unpacked.blob_file)
        unpacked.blob_file.unlink(missing_ok=True)

    async def remove(self, chain: str, needed: Callable[[str], bool] = lambda chain: False) -> bool:
        if chain not in self.records or needed(chain):
            return False
        del self.records[chain]
        return True


class Shelf:
    """The part of a daemon that has to do with images: the images, the words to its clients, and the events."""

    def __init__(self, directory: Path, state: StateStore) -> None:
        self.state = state
        self.blobs = BlobStore.open(directory / "blobs")
        self.layers = MemoryLayers(self.blobs)
        self.catalog = ImageCatalog(state)
        self.containers: list[Container] = []
        self.told: list[Progress] = []
        self.happened: list[Event] = []
        events = Events()
        events.observe(self.happened.append)
        self.store = ImageStore(
            self.catalog,
            self.blobs,
            cast(LayerStore, self.layers),
            containers=lambda: self.containers,
            events=events,
            held=HeldLayers(state),
        )

    @property
    def lines(self) -> str:
        """The lines that a client that loads an archive reads."""
        return "".join(progress.stream for progress in self.told)

    @property
    def statuses(self) -> list[str]:
        return [progress.status for progress in self.told if progress.status]

    async def add(self, made: Made, *names: str) -> Image:
        """As after a pull: all blobs as they came, the image under its names."""
        image = await self._put(made)
        await self.catalog.add(image, *(parse(name) for name in names))
        return image

    async def add_index(self, images: Sequence[Made], *names: str, here: Sequence[Made] | None = None) -> ImageIndex:
        """As after a pull of an image for several platforms, of which some may not be here."""
        body, media_type = make_index(images)
        document = parse_manifest(body, media_type)
        assert isinstance(document, Index)
        descriptor = Descriptor(media_type=media_type, digest=await self.blobs.put(body), size=len(body))
        index = index_record(descriptor, document)
        records = [await self._put(made) for made in (images if here is None else here)]
        ids = {record.manifest: record.id for record in records}
        index = but(index, manifests=[but(entry, image=ids.get(entry.digest, "")) for entry in index.manifests])
        await self.catalog.add_all(records, [parse(name) for name in names], index)
        return index

    async def put_layer(self, blob: bytes, media_type: str, parent: str = "") -> Layer:
        async with self.layers.ingest(None, media_type) as ingest:
            await ingest.write(blob)
            return await self.layers.commit(await ingest.finish(), parent)

    async def _put(self, made: Made) -> Image:
        manifest = parse_manifest(made.manifest, made.media_type)
        assert not isinstance(manifest, Index)
        layers: list[Layer] = []
        for described in manifest.layers:
            parent = layers[-1].chain_id if layers else ""
            layers.append(await self.put_layer(made.blobs[described.digest], described.media_type, parent))
        config = made.blobs[made.config_digest]
        document = read_config(config)
        assert chain_ids(document.rootfs.diff_ids) == [layer.chain_id for layer in layers]
        return await image_over(self.blobs, config, document, layers, manifest=(made.manifest, made.media_type))


def _plain(blob: bytes) -> bytes:
    compression = compression_of(blob)
    if compression == "zstd":
        return zstandard.decompress(blob)
    return gzip.decompress(blob) if compression == "gzip" else blob
