"""Images as sources of builds: one that is here by its name, else what a registry has under it."""

import contextlib
from collections.abc import Callable, Iterator

from msgspec import Struct

from husk.engine.builder import stacks
from husk.engine.builder.dockerfile.options import BaseImage
from husk.engine.builder.operations import Source
from husk.engine.builder.progress import Status
from husk.engine.builder.registry_login import login_at
from husk.engine.builder.solver import Watcher
from husk.engine.images.make import read_config
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image, Progress
from husk.errors import NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.manifest import Platform

SCHEME = "docker-image"

CredentialsFor = Callable[[str], Credentials | None]
"""What a client has for a registry."""


class FetchedImage(Struct, frozen=True):
    stack: str
    description: str
    made: list[str] = []
    type: str = "regular"


class DescribedImage(Struct, frozen=True):
    """What a name stands for: an image's id, and its configuration as it came."""

    reference: str
    id: str
    config: bytes


class ImageSource:
    def __init__(self, images: Images, store: ImageStore) -> None:
        self._images = images
        self._store = store

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        return (await self._have(_name_of(source), platform, watcher)).id

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedImage:
        name = _name_of(source)
        image = await self._have(name, platform, watcher)
        return FetchedImage(stacks.of_layers(image.chain_ids), f"pulled from {name}")

    async def resolve(
        self, name: str, platform: Platform, pull: bool, credentials: CredentialsFor, report: Callable[[Progress], None]
    ) -> BaseImage:
        """What a stage begins with; an image that is not here is pulled, and so is any if the client says so."""
        found = await self._describe(name, platform, pull, credentials, report)
        return BaseImage(found.reference, read_config(found.config))

    async def look_up(self, name: str, platform: Platform, pull: bool, watcher: Watcher) -> BaseImage:
        """The same for a client with a session."""
        found = await self.describe(name, platform, pull, watcher)
        return BaseImage(found.reference, read_config(found.config))

    async def describe(self, name: str, platform: Platform, pull: bool, watcher: Watcher) -> "DescribedImage":
        reference = references.parse(name).tagged()
        auth = login_at(reference, watcher.session)
        return await self._describe(name, platform, pull, lambda domain: auth, _Told(watcher).report)

    async def _describe(
        self, name: str, platform: Platform, pull: bool, credentials: CredentialsFor, report: Callable[[Progress], None]
    ) -> "DescribedImage":
        reference = references.parse(name).tagged()
        image = None if pull else self._find(str(reference), platform)
        if image is None:
            auth = credentials(reference.domain)
            await self._images.pull(str(reference), "", str(platform), auth, report)
            image = self._images.select(str(reference), platform).image
        return DescribedImage(str(reference), image.id, await self._store.blobs.read(image.id))

    async def _have(self, name: str, platform: Platform | None, watcher: Watcher) -> Image:
        if (image := self._find(name, platform)) is None:
            reference = references.parse(name)
            auth = login_at(reference, watcher.session)
            told = _Told(watcher)
            await self._images.pull(name, "", str(platform) if platform else "", auth, told.report)
            image = self._images.select(name, platform).image
        return image

    def _find(self, name: str, platform: Platform | None) -> Image | None:
        with contextlib.suppress(NotFound):
            return self._images.select(name, platform).image
        return None


class _Told:
    """The progress of a pull in a build's terms."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def report(self, progress: Progress) -> None:
        if progress.id and progress.total:
            done = progress.current >= progress.total
            status = Status(id=progress.id, current=progress.current, total=progress.total, done=done)
            self._watcher.status(status)


def _name_of(source: Source) -> str:
    return source.identifier.removeprefix(f"{SCHEME}://")


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
