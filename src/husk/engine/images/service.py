"""Operations on images: one method for each that the API has.

What carries an operation out is loaded and built when it is first wanted: a start of the daemon needs only the store.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from husk.engine.images.attestations import Attestation, attestations_of
from husk.engine.images.catalog import FoundImage
from husk.engine.images.history import history_of
from husk.engine.images.index import choose_image, platform_of
from husk.engine.images.limiter import Limiter
from husk.engine.images.listing import NamePatterns, select
from husk.engine.images.manifests import ManifestFacts, manifests_of, target_of
from husk.engine.images.prune import PrunedImages, Pruner
from husk.engine.images.remove import ImageRemover
from husk.engine.images.singleflight import Report
from husk.engine.images.store import PACKED, ImageStore
from husk.engine.images.tag import refuse_ambiguous
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.filters import Filters
from husk.engine.model.image import HistoryStep, Image, ImportOptions, Removal
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.manifest import (
    Descriptor,
    Platform,
    detected_platform,
    host_platform,
    normalize,
    parse_platform,
    runnable,
)
from husk.registry.reference import Reference
from husk.storage.state.store import StateStore
from husk.watch import Watch

if TYPE_CHECKING:
    from husk.engine.images.fetch import LayerFetcher
    from husk.engine.images.push import PushedContent
    from husk.engine.images.transfers import Distribution, Transfers
    from husk.registry.auth import Credentials
    from husk.registry.client import RegistryClient
    from husk.registry.search import SearchResult


class Images:
    def __init__(
        self,
        store: ImageStore,
        registry: "Callable[[], RegistryClient]",
        state: StateStore,
        downloads: Limiter,
        uploads: Limiter,
        watch: Watch | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._state = state
        self._downloads = downloads
        self._uploads = uploads
        self._watch = watch or Watch()

    @cached_property
    def _transfers(self) -> "Transfers":
        # A door: what brings images in and out knows registries and archives, of which a start needs nothing.
        from husk.engine.images.transfers import Transfers

        return Transfers(self._store, self._registry, self._state, self._downloads, self._uploads, self._watch)

    @property
    def fetcher(self) -> "LayerFetcher":
        """The fetcher of layers for all of the daemon, so that none is fetched twice at a time."""
        return self._transfers.fetcher

    @cached_property
    def _remover(self) -> ImageRemover:
        return ImageRemover(self._store)

    @cached_property
    def _pruner(self) -> Pruner:
        return Pruner(self._store, self._remover)

    @property
    def revision(self) -> int:
        """The number of changes to images that an answer may show: to names, records or layers."""
        return self._store.catalog.revision + self._store.layers.revision

    def __len__(self) -> int:
        return len(self._store.catalog)

    # --- looking

    def find(self, reference: str) -> Image:
        return self._store.catalog.find(reference)

    def find_for_container(self, reference: str, platform: str) -> Image:
        return self.select(reference, parse_platform(platform) if platform else None).image

    def warning_about(self, image: Image) -> str:
        """Return the warning for whoever asked for no platform, if the image is for another one than this host's."""
        here, actual = host_platform(), normalize(platform_of(image))
        if actual in runnable(here) or (actual.os, actual.architecture) == (here.os, here.architecture):
            return ""
        return (
            f"The requested image's platform ({platform_of(image)}) does not match the detected host platform "
            f"({detected_platform()}) and no specific platform was requested"
        )

    def select(self, reference: str, platform: Platform | None) -> FoundImage:
        """The image that a name stands for on one platform, and the index that it belongs to."""
        found = self._store.catalog.look_up(reference)
        if platform is None:
            return found
        image = choose_image(self._store.catalog.candidates(found), platform)
        if image is None:
            raise NotFound(
                f"image with reference {reference} was found but does not provide the specified platform "
                f"({normalize(platform)})"
            )
        return FoundImage(image, found.image_index)

    def meant_by(self, reference: str) -> set[str]:
        """The ids of all images that a name stands for, one for each platform."""
        found = self._store.catalog.look_up(reference)
        return {found.image.id, *(found.image_index.images if found.image_index is not None else [])}

    def tags(self, image: Image, patterns: NamePatterns | None = None) -> list[str]:
        """The image's names with a tag; with patterns those that match one of them, as in a filtered list."""
        return [name.familiar for name in self._names(image, patterns) if not name.digest]

    def digests(self, image: Image, patterns: NamePatterns | None = None) -> list[str]:
        return [name.familiar for name in self._names(image, patterns) if name.digest]

    def _names(self, image: Image, patterns: NamePatterns | None) -> list[Reference]:
        return [name for name in self._store.catalog.names(image) if patterns is None or patterns.match(name)]

    def listing(self, all: bool, filters: Filters) -> list[Image]:
        return select(self._store.catalog, all, filters)

    def containers_of(self, image: Image) -> int:
        ids = {each.id for each in self._store.catalog.together(image)}
        return sum(1 for container in self._store.containers() if container.image_id in ids)

    def descendants(self, reference: str) -> set[str]:
        """Ids of the image and of all images made from it; empty if there is no such image."""
        try:
            images = [image for id in self.meant_by(reference) if (image := self._store.catalog.get(id))]
        except (NotFound, InvalidParameter):
            return set()
        return {descendant for image in images for descendant in self._store.catalog.descendants(image)}

    def size_of_layers(self, chain_ids: Iterable[str]) -> int:
        return sum(layer.size for chain_id in chain_ids if (layer := self._store.layers.get(chain_id)))

    def directories(self, chain_ids: Sequence[str]) -> list[str]:
        """Return the directories of the layers on the host, topmost first; empty when one is no longer here."""
        try:
            return self._store.layers.lower(chain_ids)
        except NotFound:
            return []

    def size(self, image: Image) -> int:
        """Bytes of the layers of all platforms that an image is shown for, each layer once."""
        together = self._store.catalog.together(image)
        if len(together) == 1:
            return image.size
        return self.size_of_layers({chain_id for each in together for chain_id in each.chain_ids})

    def shared_size(self, image: Image) -> int:
        """Bytes of the image's layers that other images use too."""
        together = {each.id: each for each in self._store.catalog.together(image)}
        others = {chain_id for other in self._store.catalog if other.id not in together for chain_id in other.chain_ids}
        own = {chain_id for each in together.values() for chain_id in each.chain_ids}
        return self.size_of_layers(own & others)

    def manifests(self, image: Image) -> list[ManifestFacts]:
        """All manifests of what an image is shown for, also those that are only known by reference."""

        return manifests_of(image, self._store.catalog.shown_by(image), self._store)

    def target(self, image: Image) -> Descriptor:
        """Return the descriptor of what the image's names point to: an index of several platforms, or a manifest."""

        return target_of(image, self._store.catalog.look_up(image.id).image_index)

    def layers_size(self) -> int:
        """Bytes of all layers, each once."""
        return sum(layer.size for layer in self._store.layers.all())

    def layers_count(self) -> int:
        return len(self._store.layers.all())

    def blobs_usage(self) -> tuple[int, int]:
        """Count the blobs and their bytes. It reads a directory: not for the event loop."""
        return self._store.blobs.usage()

    def reclaimable(self) -> int:
        """Bytes of the layers that no container's image needs."""
        needed = {chain_id for container in self._store.containers() for chain_id in container.used_layers}
        return sum(layer.size for layer in self._store.layers.all() if layer.chain_id not in needed)

    def history(self, reference: str, platform: Platform | None = None) -> list[HistoryStep]:
        image = self.select(reference, platform).image
        return history_of(image, self._store.catalog, self._store.layers.get)

    async def attestations(
        self, reference: str, platform: Platform | None, types: Collection[str], with_statements: bool
    ) -> list[Attestation]:
        """Read the statements about an image, on this host's platform if none is named."""

        image, index = self.select(reference, platform or host_platform())
        return await attestations_of(image, index, types, with_statements, self._store)

    # --- elsewhere

    async def search(self, term: str, limit: int, filters: Filters, auth: "Credentials | None") -> "list[SearchResult]":
        return await self._transfers.search(term, limit, filters, auth)

    async def distribution(self, reference: str, auth: "Credentials | None") -> "Distribution":
        return await self._transfers.distribution(reference, auth)

    # --- in and out

    async def collect(self) -> None:
        """At start: forget what became of layers that are gone."""
        if self._state.has(PACKED):
            await self._transfers.pusher.collect()

    async def push(
        self, name: str, tag: str, platform: Platform | None, auth: "Credentials | None", progress: Report
    ) -> None:
        await self._transfers.pusher.push(name, tag, platform, auth, progress)

    async def upload(
        self, upload: "PushedContent", auth: "Credentials | None", progress: Report, *, insecure: bool = False
    ) -> None:
        """Push what is no image yet, or not in this form: a build's result; `insecure`: without verified TLS."""
        if not insecure:
            await self._transfers.pusher.upload(upload, auth, progress)
            return
        async with self._registry().insecurely(upload.repository.domain) as registry:
            await self._transfers.pusher.to(registry).upload(upload, auth, progress)

    def save(self, names: Sequence[str], platforms: Sequence[Platform] = ()) -> AsyncGenerator[bytes, None]:
        """An archive of these images, in pieces; iterate inside `contextlib.aclosing`."""
        return self._transfers.saver.save(names, platforms)

    async def load(
        self, archive: AsyncIterator[bytes], platforms: Sequence[Platform], quiet: bool, progress: Report
    ) -> None:
        """All images of an archive, for all platforms that it has or only for some."""
        await self._transfers.loader.load(archive, platforms, quiet, progress)

    async def import_stream(self, archive: AsyncIterator[bytes], options: ImportOptions, progress: Report) -> None:
        await self._transfers.importer.import_stream(archive, "-", options, progress)

    async def import_url(self, url: str, options: ImportOptions, progress: Report) -> None:
        await self._transfers.importer.import_url(url, options, progress)

    # --- changing

    async def prune(self, filters: Filters) -> PrunedImages:
        return await self._pruner.prune(filters)

    async def pull(self, image: str, tag: str, platform: str, auth: "Credentials | None", progress: Report) -> None:
        await self._transfers.pull(image, tag, platform, auth, progress)

    async def tag(self, reference: str, repo: str, tag: str) -> None:
        image, index = self._store.catalog.look_up(reference)
        if not repo:
            raise InvalidParameter("invalid reference format: repository name is empty")
        name = references.parse(repo)
        if name.digest:
            raise InvalidParameter("refusing to create a tag with a digest reference")

        refuse_ambiguous(name)
        name = (name.with_tag(tag) if tag else name).tagged()
        image = replace(image, last_tagged=rfc3339(now_ns()))
        await self._store.catalog.add(image, name, index=index)
        self._store.tell("tag", image, name.familiar)

    async def remove(
        self, reference: str, force: bool, noprune: bool, platforms: Sequence[Platform] = ()
    ) -> list[Removal]:
        return await self._remover.remove(reference, force, noprune, platforms)

    async def login(self, credentials: "Credentials") -> str:
        """An identity token, or empty when name and password simply are right."""
        return await self._registry().login(credentials)
