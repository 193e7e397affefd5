"""The targets of a cache: a repository of a registry, or a directory of the client's. Blobs first, then their names."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Protocol

from husk.builder.solver.sessions import ContentStore, Session
from husk.builder.sources.registry_login import login_at
from husk.errors import InvalidParameter
from husk.registry import reference as references
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor
from husk.registry.reference import Reference
from husk.registry.upload import PushTarget
from husk.storage.blobs import BlobStore
from husk.storage.sources import FileSource


class CacheTarget(Protocol):
    name: str

    async def write(self, descriptor: Descriptor, /) -> None:
        """A blob that our store has."""
        ...

    async def name_it(self, manifest: Descriptor, body: bytes, /) -> None:
        """The document that all of it is found by; the last thing to be written."""
        ...


class RegistryTarget:
    name = "exporting cache to registry"

    def __init__(self, blobs: BlobStore, target: PushTarget, reference: Reference) -> None:
        self._blobs = blobs
        self._target = target
        self._reference = reference

    async def write(self, descriptor: Descriptor, /) -> None:
        if not await self._target.has(descriptor.digest):
            path = self._blobs.path(descriptor.digest)
            await self._target.upload(FileSource(path, descriptor.digest, descriptor.size))

    async def name_it(self, manifest: Descriptor, body: bytes, /) -> None:
        reference = self._reference
        await self._target.put_manifest(reference.tag or reference.digest, body, manifest.media_type)


class ClientTarget:
    """An OCI layout; the client itself writes its index, by what it is told."""

    name = "exporting cache to client directory"

    def __init__(self, blobs: BlobStore, store: ContentStore) -> None:
        self._blobs = blobs
        self._store = store

    async def write(self, descriptor: Descriptor, /) -> None:
        source = FileSource(self._blobs.path(descriptor.digest), descriptor.digest, descriptor.size)
        async with aclosing(source.read(0)) as pieces:
            await self._store.write(descriptor.digest, descriptor.size, pieces)

    async def name_it(self, manifest: Descriptor, body: bytes, /) -> None:
        await self.write(manifest)


class Targets:
    def __init__(self, registry: RegistryClient, blobs: BlobStore) -> None:
        self._registry = registry
        self._blobs = blobs

    async def open(self, kind: str, attributes: Mapping[str, str], session: Session | None) -> CacheTarget:
        if kind == "registry":
            if not attributes.get("ref"):
                raise InvalidParameter("registry cache exporter requires ref")
            reference = references.parse(attributes["ref"]).tagged()
            auth = login_at(reference, session)
            return RegistryTarget(self._blobs, await self._registry.target(reference, auth), reference)
        if not attributes.get("dest"):
            raise InvalidParameter("local cache exporter requires dest")
        if session is None:
            raise InvalidParameter("local cache exporter/importer requires session")
        return ClientTarget(self._blobs, session.content(f"local:{attributes['dest']}"))
