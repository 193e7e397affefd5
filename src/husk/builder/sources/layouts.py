"""Images in an OCI layout on a client's disk as sources of builds: `--build-context base=oci-layout://…`.

The client names the store and the digest of a manifest or an index. What is not here comes over its session, blob by
blob, and becomes an image of ours without a name, as `docker load` would make it.
"""

import hashlib
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from husk.builder.graph import schemes, stacks
from husk.builder.graph.operations import Source
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Watcher
from husk.builder.solver.sessions import ContentStore, Session, Sessions
from husk.builder.solver.source_policy import DescribedImage
from husk.builder.sources.images import FetchedImage
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import ImageManifest, Index, Platform, choose_platform, host_platform, parse_manifest
from husk.registry.reference import validate_digest
from husk.storage.tar.entry import BLOCK, padding
from husk.storage.tar.header import root_file_header

_LARGEST_DOCUMENT = 4 << 20
_MOST_INDEXES = 3


class Layout(Struct, frozen=True):
    """The digest of an image in a store of a client, and the client's session, if it is named."""

    digest: str
    store: str
    session: str = ""


class _Documents(Struct, frozen=True):
    """The documents of an image, which are known before its layers come."""

    digest: str
    body: bytes
    manifest: ImageManifest
    config: bytes


class LayoutSource:
    def __init__(self, images: Images, store: ImageStore, sessions: Sessions) -> None:
        self._images = images
        self._store = store
        self._sessions = sessions

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        return (await self._have(layout_of(source), platform, watcher)).id

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedImage:
        image = await self._have(layout_of(source), platform, watcher)
        return FetchedImage(stacks.of_layers(image.chain_ids), f"loaded from {source.identifier}")

    async def describe(self, layout: Layout, platform: Platform | None, watcher: Watcher) -> DescribedImage:
        """The image, which is here afterwards, by its id."""
        image = await self._have(layout, platform, watcher)
        return DescribedImage(image.id, image.id, await self._store.blobs.read(image.id))

    async def describe_named(self, text: str, platform: Platform | None, watcher: Watcher) -> DescribedImage:
        return await self.describe(named(text), platform, watcher)

    async def resolve(self, source: Source, platform: Platform | None, watcher: Watcher) -> DescribedImage:
        """Describe the image without fetching its layers."""
        layout = layout_of(source)
        content = (await self._session(layout, watcher)).content(f"oci:{layout.store}")
        documents = await _documents(content, layout.digest, platform or host_platform())
        return DescribedImage(f"{layout.store}@{layout.digest}", layout.digest, documents.config)

    async def _have(self, layout: Layout, platform: Platform | None, watcher: Watcher) -> Image:
        session = await self._session(layout, watcher)
        content = session.content(f"oci:{layout.store}")
        documents = await _documents(content, layout.digest, platform or host_platform())
        id = documents.manifest.config.digest
        try:
            return self._images.select(id, None).image
        except NotFound:
            await self._images.load(_archive(content, documents, watcher), [], True, lambda progress: None)
        return self._images.select(id, None).image

    async def _session(self, layout: Layout, watcher: Watcher) -> Session:
        if layout.session:
            return await self._sessions.get(layout.session)
        if watcher.session is None:
            raise InvalidParameter("an OCI layout belongs to a client, and there is none")
        return watcher.session


def layout_of(source: Source) -> Layout:
    """`oci-layout://name@digest`, with the store and the session in attributes."""
    name, _, digest = source.identifier.removeprefix(f"{schemes.LAYOUT}://").partition("@")
    store, session = (source.attributes.get(f"oci.{which}", "") for which in ("store", "session"))
    return _checked(Layout(digest, store or name.partition(":")[0], session))


def named(text: str) -> Layout:
    """Parse a name that a client gave: `//store:tag@digest`. The meaning of the tag is for the client to know."""
    store, _, digest = text.removeprefix("//").partition("@")
    return _checked(Layout(digest, store.partition(":")[0]))


def _checked(layout: Layout) -> Layout:
    if not layout.digest:
        raise InvalidParameter(f'oci-layout reference "{layout.store}" has no digest')
    validate_digest(layout.digest)
    return layout


async def _documents(content: ContentStore, digest: str, platform: Platform) -> _Documents:
    for _ in range(_MOST_INDEXES):
        body = await _read(content, digest)
        manifest = parse_manifest(body, "")
        if isinstance(manifest, Index):
            digest = choose_platform(manifest, platform).digest
            continue
        return _Documents(digest, body, manifest, await _read(content, manifest.config.digest))
    raise InvalidParameter("an OCI layout has indexes of indexes of indexes")


async def _read(content: ContentStore, digest: str) -> bytes:
    data = bytearray()  # a client may send it byte by byte
    async for chunk in content.read(digest):
        data += chunk
        if len(data) > _LARGEST_DOCUMENT:
            raise InvalidParameter(
                f"{digest} is larger than {_LARGEST_DOCUMENT} bytes, which no document of an image is"
            )
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise InvalidParameter(f"the client has another content than {digest} under this name")
    return bytes(data)


async def _archive(content: ContentStore, documents: _Documents, watcher: Watcher) -> AsyncIterator[bytes]:
    """An OCI layout as one archive, the documents first."""
    descriptor = {
        "mediaType": documents.manifest.media_type,
        "digest": documents.digest,
        "size": len(documents.body),
    }
    yield _file("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    yield _file("index.json", msgspec.json.encode({"schemaVersion": 2, "manifests": [descriptor]}))
    yield _file(_path(documents.digest), documents.body)
    yield _file(_path(documents.manifest.config.digest), documents.config)
    for layer in {layer.digest: layer for layer in documents.manifest.layers}.values():
        yield root_file_header(_path(layer.digest), layer.size)
        received = 0
        async for chunk in content.read(layer.digest):
            received += len(chunk)
            if received > layer.size:
                break
            watcher.status(Status(id=layer.digest, current=received, total=layer.size))
            yield chunk
        if received != layer.size:
            raise InvalidParameter(f"the client's {layer.digest} does not have {layer.size} bytes")
        watcher.status(Status(id=layer.digest, current=received, total=layer.size, done=True))
        yield bytes(padding(received))
    yield bytes(2 * BLOCK)


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _file(name: str, data: bytes) -> bytes:
    return root_file_header(name, len(data)) + data + bytes(padding(len(data)))
