"""Transfers of images: pull, push, save, load and import, and questions to registries.

What a daemon does not need until somebody moves an image, loaded with the first of them.

Questions to a registry about an image that is not here: its search, and a manifest with its platforms.
"""

from collections.abc import Callable
from functools import cached_property

import msgspec

from husk.engine.images.fetch import LayerFetcher
from husk.engine.images.importer import Importer
from husk.engine.images.limiter import Limiter
from husk.engine.images.load import Loader
from husk.engine.images.make import read_config_aside
from husk.engine.images.pull import Puller, parse_pull_reference
from husk.engine.images.push import Pusher
from husk.engine.images.save import Saver
from husk.engine.images.singleflight import Report
from husk.engine.images.store import ImageStore
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor, Index, Platform, parse_manifest, parse_platform
from husk.registry.search import MOST_RESULTS, SearchResult
from husk.storage.state.store import StateStore
from husk.watch import Watch

SEARCH_FILTERS = ("is-automated", "is-official", "stars")
DEFAULT_RESULTS = 25


class Distribution(msgspec.Struct, frozen=True):
    """The content that a registry has under a name, and the platforms that it runs on."""

    descriptor: Descriptor
    platforms: list[Platform]


async def distribution(registry: RegistryClient, text: str, auth: Credentials | None) -> Distribution:
    reference = references.parse(text).tagged()
    fetched = await registry.manifest(reference, auth)
    parsed = parse_manifest(fetched.body, fetched.descriptor.media_type)
    descriptor = msgspec.structs.replace(fetched.descriptor, media_type=parsed.media_type)
    if isinstance(parsed, Index):
        return Distribution(descriptor, [entry.platform for entry in parsed.manifests if entry.platform is not None])
    document = await read_config_aside(await registry.blob_bytes(reference, parsed.config, auth))
    return Distribution(descriptor, [Platform(document.architecture, document.os, document.variant)])


async def search(
    registry: RegistryClient, term: str, limit: int, filters: Filters, auth: Credentials | None
) -> list[SearchResult]:
    if not term:
        raise InvalidParameter("search needs a term: name a repository or a part of its name")
    limit = limit or DEFAULT_RESULTS
    if not 1 <= limit <= MOST_RESULTS:
        raise InvalidParameter(f"limit {limit} is outside the range of [1, {MOST_RESULTS}]")
    stars = max(filters.numbers("stars"), default=0)
    flags = [(name, filters.boolean(name, False)) for name in ("is-official", "is-automated") if name in filters]

    def wanted(result: SearchResult) -> bool:
        facts = {"is-official": result.is_official, "is-automated": result.is_automated}
        return result.star_count >= stars and all(facts[name] == value for name, value in flags)

    return [result for result in await registry.search(term, limit, auth) if wanted(result)]


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
        return await search(self._registry(), term, limit, filters, auth)

    async def distribution(self, reference: str, auth: Credentials | None) -> Distribution:
        return await distribution(self._registry(), reference, auth)
