"""Transfers of images: pull, push, save, load and import, and questions to registries.

What a daemon does not need until somebody moves an image, loaded with the first of them.
"""

from collections.abc import Callable
from functools import cached_property

from husk.engine.images import remote
from husk.engine.images.fetch import LayerFetcher
from husk.engine.images.importer import Importer
from husk.engine.images.limiter import Limiter
from husk.engine.images.load import Loader
from husk.engine.images.pull import Puller, parse_pull_reference
from husk.engine.images.push import Pusher
from husk.engine.images.remote import Distribution
from husk.engine.images.save import Saver
from husk.engine.images.singleflight import Report
from husk.engine.images.store import ImageStore
from husk.engine.model.filters import Filters
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import parse_platform
from husk.registry.search import SearchResult
from husk.storage.state.store import StateStore
from husk.watch import Watch


class Transfers:
    def __init__(
        self,
        store: ImageStore,
        registry: Callable[[], RegistryClient],
        state: StateStore,
        downloads: Limiter,
        uploads: Limiter,
        watch: Watch,
    ) -> None:
        self._store = store
        self._registry = registry
        self._state = state
        self._uploads = uploads
        self._watch = watch
        self.fetcher = LayerFetcher(store, downloads)
        self.saver = Saver(store)
        self.loader = Loader(store)

    @cached_property
    def _puller(self) -> Puller:
        return Puller(self._store, self._registry(), self.fetcher)

    @cached_property
    def pusher(self) -> Pusher:
        return Pusher(self._store, self._registry(), self._state, self._uploads)

    @cached_property
    def importer(self) -> Importer:
        return Importer(self._store, self._registry())

    async def pull(self, image: str, tag: str, platform: str, auth: Credentials | None, progress: Report) -> None:
        reference = parse_pull_reference(image, tag)
        if platform:
            parse_platform(platform)
        with self._watch.action("pull", image=reference.familiar):
            await self._puller.pull(reference, platform, auth, progress)

    async def search(self, term: str, limit: int, filters: Filters, auth: Credentials | None) -> list[SearchResult]:
        return await remote.search(self._registry(), term, limit, filters, auth)

    async def distribution(self, reference: str, auth: Credentials | None) -> Distribution:
        return await remote.distribution(self._registry(), reference, auth)
