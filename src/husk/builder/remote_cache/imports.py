"""Reads the caches that a client names: from a registry, from a directory of the client's, from an image.

    type=registry,ref=…     a cache of its own, or an image whose configuration has one; an image of ours is asked first
    type=local,src=…        an OCI layout of the client's; which manifest of it is meant, the client says by `digest`

One that cannot be read is no failure of the build: the reason is shown, and the build goes on without it.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from husk.builder.remote_cache import config
from husk.builder.remote_cache.config import CacheConfig, CacheLayer
from husk.builder.remote_cache.records import ImportedCache, RemoteLayer
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.interfaces import CacheSource
from husk.builder.solver.sessions import ContentStore, Session
from husk.builder.sources.registry_login import login_at
from husk.engine.images.fetch import Again, OpenBlob
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import parse_rfc3339
from husk.errors import HuskError, InvalidParameter, NotFound, NotImplementedYet
from husk.registry import reference as references
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor
from husk.storage.sources import read_pieces
from husk.text.documents import MOST_VALUES, MalformedDocument, decode

UNCOMPRESSED = "containerd.io/uncompressed"
CREATED = "buildkit/createdat"
_MOST_MANIFESTS = 32

T = TypeVar("T")
ReadBlob = Callable[[Descriptor], Awaitable[bytes]]


class _Manifest(Struct, rename="camel"):
    """A manifest or an index, as far as it matters here."""

    media_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] = []
    manifests: list[Descriptor] = []


class _Rootfs(Struct):
    diff_ids: list[str] = []


class _Step(Struct):
    created: str | None = None
    empty_layer: bool = False


class _ImageWithCache(Struct):
    rootfs: _Rootfs = msgspec.field(default_factory=_Rootfs)
    history: list[_Step] = []
    cache: str | None = msgspec.field(default=None, name="moby.buildkit.cache.v0")


class CacheImporter:
    def __init__(self, registry: RegistryClient, store: ImageStore) -> None:
        self._registry = registry
        self._store = store

    async def read(self, sources: Sequence[CacheSource], asker: Asker) -> list[ImportedCache]:
        found: list[ImportedCache] = []
        for source in sources:
            name = source.attributes.get("ref") or source.attributes.get("src") or source.kind
            try:
                with ShownWork(asker, f"importing cache manifest from {name}"):
                    found += await self._read(source, asker.session)
            except HuskError:
                pass  # what was wrong is shown
        return found

    async def _read(self, source: CacheSource, session: Session | None) -> list[ImportedCache]:
        match source.kind:
            case "registry":
                return await self._from_registry(source.attributes.get("ref", ""), session)
            case "local":
                return await self._from_client(source.attributes, session)
            case _:
                raise NotImplementedYet(f"caches of the kind {source.kind} are not implemented by Husk yet")

    async def _from_registry(self, name: str, session: Session | None) -> list[ImportedCache]:
        reference = references.parse(name).tagged()
        if own := await self._from_image(str(reference)):
            return own
        auth = login_at(reference, session)
        fetched = await self._registry.manifest(reference, auth)

        async def read(descriptor: Descriptor) -> bytes:
            if "manifest" in descriptor.media_type or "index" in descriptor.media_type:
                return (await self._registry.manifest(reference.with_digest(descriptor.digest), auth)).body
            return await self._registry.blob_bytes(reference, _bounded(descriptor), auth)

        registry = self._registry
        return await read_manifest(fetched.body, read, lambda one, again: registry.blob(reference, one, auth, again))

    async def _from_client(self, attributes: Mapping[str, str], session: Session | None) -> list[ImportedCache]:
        digest, place = attributes.get("digest", ""), attributes.get("src", "")
        if not digest:
            raise InvalidParameter("local cache importer requires explicit digest")
        if not place:
            raise InvalidParameter("local cache importer requires src")
        if session is None:
            raise InvalidParameter("local cache exporter/importer requires session")
        store = session.content(f"local:{place}")

        async def read(descriptor: Descriptor) -> bytes:
            return await _read_all(store, _bounded(descriptor))

        size = await store.size(references.validate_digest(digest))
        body = await read(Descriptor(digest=digest, size=size))
        return await read_manifest(body, read, lambda one, again: _pieces(store, one))

    async def _from_image(self, name: str) -> list[ImportedCache]:
        """The cache in an image that is here."""
        try:
            image = self._store.catalog.look_up(name).image
        except NotFound:
            return []
        layers = [self._store.layers.get(chain_id) for chain_id in image.chain_ids]
        described = [
            Descriptor(media_type=layer.media_type, digest=layer.blob, size=layer.blob_size)
            for layer in layers
            if layer
        ]
        own = await self._store.blobs.read(image.id)
        found = await asyncio.to_thread(inline_cache, own, described, self._own_blob)
        return [found] if found else []

    def _own_blob(self, descriptor: Descriptor, again: Again) -> AsyncGenerator[bytes, None]:
        return read_pieces(self._store.blobs.path(descriptor.digest))


async def read_manifest(body: bytes, read: ReadBlob, blobs: OpenBlob) -> list[ImportedCache]:
    """A cache's own manifest or index, or that of images with caches in their configurations."""
    manifest = _decoded(body, _Manifest)
    described = manifest.layers or manifest.manifests
    document = next((one for one in described if one.media_type == config.MEDIA_TYPE), None)
    if manifest.config and manifest.config.media_type == config.MEDIA_TYPE:
        document = manifest.config
    if document is not None:
        layers = {one.digest: layer for one in described if (layer := _layer(one)) is not None}
        # Somebody else's cache may be large, and is looked at whole.
        return [ImportedCache(await asyncio.to_thread(config.read, await read(document)), layers, blobs)]
    found: list[ImportedCache] = []
    for inner in await _images_in(manifest, read):
        if inner.config and inner.layers:
            cache = await asyncio.to_thread(inline_cache, await read(inner.config), inner.layers, blobs)
            found += [cache] if cache else []
    if not found:
        raise NotFound("there is no cache in it")
    return found


def inline_cache(image: bytes, layers: Sequence[Descriptor], blobs: OpenBlob) -> ImportedCache | None:
    """The cache in an image's configuration; None if it has none, or if it does not fit the layers."""
    document = _decoded(image, _ImageWithCache)
    if document.cache is None or len(document.rootfs.diff_ids) != len(layers):
        return None
    try:
        records = config.read_records(base64.b64decode(document.cache, validate=True))
    except binascii.Error as error:
        raise InvalidParameter(f"invalid cache: {error}") from None
    times = [step.created for step in document.history if not step.empty_layer]
    known = {
        layer.digest: RemoteLayer(layer, diff_id, _time(times[number] if number < len(times) else None))
        for number, (layer, diff_id) in enumerate(zip(layers, document.rootfs.diff_ids, strict=True))
    }
    chain = [CacheLayer(layer.digest, number - 1) for number, layer in enumerate(layers)]
    return ImportedCache(config.checked(CacheConfig(chain, records)), known, blobs)


async def _images_in(manifest: _Manifest, read: ReadBlob) -> list[_Manifest]:
    if not manifest.manifests:
        return [manifest]
    return [_decoded(await read(one), _Manifest) for one in manifest.manifests[:_MOST_MANIFESTS]]


def _layer(descriptor: Descriptor) -> RemoteLayer | None:
    """One whose content is not named cannot be asked for before it is fetched, so it is left out."""
    annotations = descriptor.annotations or {}
    diff_id = annotations.get(UNCOMPRESSED, "")
    if not diff_id:
        return None
    bare = Descriptor(media_type=descriptor.media_type, digest=descriptor.digest, size=descriptor.size)
    return RemoteLayer(bare, references.validate_digest(diff_id), _time(annotations.get(CREATED)))


def _time(text: str | None) -> int | None:
    try:
        return parse_rfc3339(text) if text else None
    except HuskError:
        return None


def _bounded(descriptor: Descriptor) -> Descriptor:
    if descriptor.size > config.LARGEST:
        raise InvalidParameter(f"invalid cache: the document {descriptor.digest} has {descriptor.size} bytes")
    return descriptor


async def _read_all(store: ContentStore, descriptor: Descriptor) -> bytes:
    data = bytearray()
    async for piece in store.read(references.validate_digest(descriptor.digest)):
        data += piece
        if len(data) > config.LARGEST:
            raise InvalidParameter(f"invalid cache: the document {descriptor.digest} is too long")
    if references.digest_of(bytes(data)) != descriptor.digest:
        raise InvalidParameter(f"invalid cache: {descriptor.digest} has another content")
    return bytes(data)


async def _pieces(store: ContentStore, descriptor: Descriptor) -> AsyncGenerator[bytes, None]:
    async for piece in store.read(references.validate_digest(descriptor.digest)):
        yield piece


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return decode(data, kind, most=MOST_VALUES)
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid cache: {error}") from None
