"""Images as sources of builds: one that is here by its name, else what a registry has under it.

What only a build needs of a registry is no image of ours, and no list shows it: its configuration is asked for when the
build begins, its layers are fetched when a step needs them, and they stay as long as the cache has a record on them.
The classic door pulls images instead, as dockerd's does.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from husk.builder.dockerfile.options import BaseImage
from husk.builder.graph import schemes, stacks
from husk.builder.graph.op_digests import source_digest
from husk.builder.graph.operations import Source
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Watcher
from husk.builder.solver.source_policy import DescribedImage
from husk.builder.sources.registry_login import login_at
from husk.engine.images.fetch import WantedLayer
from husk.engine.images.make import chain_ids, read_config_aside, require_layers
from husk.engine.images.pull import resolve
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image, ImageConfig, Progress
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import ImageManifest, Platform, host_platform
from husk.registry.reference import Reference

# What is known of images in registries, by digests: a build asks several times for each.
_MOST_KNOWN = 200
# Configurations of images that are here: how many are kept in memory, and how large ones.
_MOST_KEPT = 16
_LARGEST_KEPT = 1 << 14

CredentialsFor = Callable[[str], Credentials | None]
"""The credentials of a client for a registry."""


class FetchedImage(Struct, frozen=True):
    stack: str
    description: str
    made: list[str] = []
    type: str = "regular"


class RemoteImage(Struct, frozen=True):
    """An image of a registry, of which no layer need be here."""

    reference: Reference  # with the digest
    id: str
    config: bytes
    manifest: ImageManifest
    diff_ids: Sequence[str]

    @property
    def layers(self) -> list[WantedLayer]:
        return [WantedLayer(*pair) for pair in zip(self.manifest.layers, self.diff_ids, strict=True)]


class ImageSource:
    def __init__(self, images: Images, store: ImageStore, registry: RegistryClient) -> None:
        self._images = images
        self._store = store
        self._registry = registry
        self._known: dict[tuple[str, str], RemoteImage] = {}  # by names with digests, and platforms
        # Of images that are here, by their ids: builds begin with the same few, again and again.
        self._configs: dict[str, bytes] = {}

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        found = await self._have(_name_of(source), platform, watcher)
        return found.id

    async def portable_keys(self, source: Source, platform: Platform | None, watcher: Watcher) -> list[str]:
        """The digests by which BuildKit knows the file system of an image."""

        found = await self._have(_name_of(source), platform, watcher)
        chain = chain_ids([one.diff_id for one in found.layers]) if isinstance(found, RemoteImage) else found.chain_ids
        return [source_digest(chain[-1])] if chain else []

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedImage:
        name = _name_of(source)
        found = await self._have(name, platform, watcher)
        if not isinstance(found, RemoteImage):
            return FetchedImage(stacks.of_layers(found.chain_ids), f"pulled from {name}")
        chain = chain_ids([one.diff_id for one in found.layers])
        auth = login_at(found.reference, watcher.session)
        try:
            async with self._store.pins.hold(chain):
                registry, reference = self._registry, found.reference
                await self._images.fetcher.fetch(
                    found.layers,
                    lambda one, again: registry.blob(reference, one, auth, again),
                    Heard(watcher).report,
                )
                assert self._store.held is not None
                await self._store.held.add(chain)
        except BaseException:
            await asyncio.shield(self._store.release(chain))
            raise
        stack = stacks.of_layers(chain)
        return FetchedImage(stack, f"pulled from {name}", stacks.elements(stack))

    async def resolve(
        self, name: str, platform: Platform, pull: bool, credentials: CredentialsFor, report: Callable[[Progress], None]
    ) -> BaseImage:
        """For the classic door: an image that is not here is pulled, and so is any if the client says so."""
        reference = references.parse(name).tagged()
        image = None if pull else self._find(str(reference), platform)
        if image is None:
            auth = credentials(reference.domain)
            await self._images.pull(str(reference), "", str(platform), auth, report)
            image = self._images.select(str(reference), platform).image
        return BaseImage(str(reference), await read_config_aside(await self._config(image.id)), image.id)

    async def find(self, name: str, platform: Platform) -> ImageConfig | None:
        """An image that is here, by its name or id."""
        try:
            image = self._find(name, platform)
        except InvalidParameter:
            image = None
        return None if image is None else await read_config_aside(await self._config(image.id))

    async def look_up(self, name: str, platform: Platform, pull: bool, watcher: Watcher) -> BaseImage:
        """Look up the image that a stage begins with, for a client with a session."""
        found = await self.describe(name, platform, pull, watcher)
        return BaseImage(found.reference, await read_config_aside(found.config))

    async def describe(self, name: str, platform: Platform, pull: bool, watcher: Watcher) -> DescribedImage:
        reference = references.parse(name).tagged()
        image = None if pull else self._find(str(reference), platform)
        if image is not None:
            config = await self._config(image.id)
            return DescribedImage(str(reference), image.manifest or image.id, config)
        found = await self._ask(reference, platform, watcher)
        return DescribedImage(str(found.reference), found.reference.digest, found.config)

    async def _have(self, name: str, platform: Platform | None, watcher: Watcher) -> Image | RemoteImage:
        if (image := self._find(name, platform)) is not None:
            return image
        reference = references.parse(name).tagged()
        wanted = platform or host_platform()
        known = self._known.get(_key(reference, wanted)) if reference.digest else None
        return known or await self._ask(reference, wanted, watcher)

    async def _ask(self, reference: Reference, platform: Platform, watcher: Watcher) -> RemoteImage:
        """Ask a registry for the image that it has now; only the documents of the image are kept, in memory."""
        auth = login_at(reference, watcher.session)
        fetched = await self._registry.manifest(reference, auth)
        pinned = Reference(reference.domain, reference.path, reference.tag, fetched.descriptor.digest)
        key = _key(pinned, platform)
        if key not in self._known:
            _, manifest, _ = await resolve(self._registry, reference, fetched, str(platform), auth)
            config = await self._registry.blob_bytes(reference, manifest.config, auth)
            document = await read_config_aside(config)
            require_layers(document, len(manifest.layers))
            self._known[key] = RemoteImage(pinned, manifest.config.digest, config, manifest, document.rootfs.diff_ids)
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return self._known[key]

    async def _config(self, id: str) -> bytes:
        """The configuration of an image that is here."""
        found = self._configs.pop(id, None) or await self._store.blobs.read(id)
        if len(found) <= _LARGEST_KEPT:
            self._configs[id] = found
            if len(self._configs) > _MOST_KEPT:
                del self._configs[next(iter(self._configs))]
        return found

    def _find(self, name: str, platform: Platform | None) -> Image | None:
        with contextlib.suppress(NotFound):
            return self._images.select(name, platform).image
        return None


class Heard:
    """The progress of a pull in a build's terms."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def report(self, progress: Progress) -> None:
        if progress.id and progress.total:
            done = progress.current >= progress.total
            status = Status(id=progress.id, current=progress.current, total=progress.total, done=done)
            self._watcher.status(status)


def _key(reference: Reference, platform: Platform) -> tuple[str, str]:
    """The repository counts: another registry's layers are fetched there, with the login for it."""
    return str(Reference(reference.domain, reference.path, digest=reference.digest)), str(platform)


def _name_of(source: Source) -> str:
    return source.identifier.removeprefix(f"{schemes.IMAGE}://")


def credentials_in(known: dict[str, Credentials]) -> CredentialsFor:
    """By the addresses that docker's configuration has: a host, or its index's address for Docker Hub."""

    def find(domain: str) -> Credentials | None:
        return next((known[name] for name in _addresses(domain) if name in known), None)

    return find


def _addresses(domain: str) -> Iterator[str]:
    yield domain
    yield f"https://{domain}"
    if domain == "docker.io":
        yield "https://index.docker.io/v1/"
        yield "index.docker.io"
