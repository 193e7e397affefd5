"""The caches that builds read from and write to elsewhere."""

from collections.abc import Callable, Sequence

from msgspec import structs

from husk.builder.cache.cache import BuildCache
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.remote_cache import write
from husk.builder.remote_cache.imports import CacheImporter
from husk.builder.remote_cache.lookup import Loader, RemoteCaches
from husk.builder.remote_cache.records import RemoteLayer
from husk.builder.remote_cache.write import CacheWriter
from husk.builder.solver.asking import Asker
from husk.builder.solver.interfaces import CacheSource, Elsewhere, PortableExecutor, Watcher
from husk.builder.sources.images import Heard
from husk.engine.images.fetch import OpenBlob, WantedLayer
from husk.engine.images.make import chain_ids
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.registry.manifest import Descriptor


class CacheService:
    def __init__(
        self,
        importer: CacheImporter,
        writer: CacheWriter,
        executor: PortableExecutor,
        cache: BuildCache,
        loader: Loader,
    ) -> None:
        self._importer = importer
        self._writer = writer
        self._executor = executor
        self._cache = cache
        self._loader = loader

    def elsewhere(self, sources: Sequence[CacheSource]) -> Callable[[Asker], Elsewhere | None]:
        """Return a function that makes the reader of these caches for a build that begins; None without caches."""

        def make(asker: Asker) -> Elsewhere | None:
            if not sources:
                return None
            return RemoteCaches(
                lambda: self._importer.read(sources, asker), self._executor, self._cache.is_whole, self._loader
            )

        return make

    def check(self, exports: Sequence[CacheSource]) -> None:
        """Refuse what cannot be written, before anything is built for it."""
        for export in exports:
            write.read(export)

    def with_inline(self, job: Job, result: Result, exports: Sequence[CacheSource]) -> Result:
        """The result with a cache that goes into its image, if one is wanted."""
        if not any(export.kind == write.INLINE for export in exports):
            return result

        async def inline(platform: str, layers: Sequence[Descriptor]) -> bytes | None:
            return await self._writer.inline(job, result, platform, layers)

        return structs.replace(result, inline_cache=inline)

    async def write(self, job: Job, result: Result, exports: Sequence[CacheSource]) -> dict[str, str]:
        """Write caches that go elsewhere; what the client is told."""
        told: dict[str, str] = {}
        for export in exports:
            if export.kind != write.INLINE:
                told |= await self._writer.write(job, result, export)
        return told


class LayerLoader:
    """Brings layers here that a cache elsewhere has; they stay as long as our own has a record on them."""

    def __init__(self, images: Images, store: ImageStore) -> None:
        self._images = images
        self._store = store

    async def load(self, layers: Sequence[RemoteLayer], blobs: OpenBlob, watcher: Watcher) -> None:
        wanted = [WantedLayer(layer.descriptor, layer.diff_id) for layer in layers]
        chain = chain_ids([layer.diff_id for layer in layers])
        async with self._store.pins.hold(chain):
            await self._images.fetcher.fetch(wanted, blobs, Heard(watcher).report)
            assert self._store.held is not None
            await self._store.held.add(chain)
