"""`docker push`: layers, several at a time, and the configuration, then the manifest by its tag.

What came from a registry goes back byte for byte. Layers that were made here (commit, import, build) are plain tars;
they are compressed on their way out, always to the same bytes. The digest of those bytes is remembered, so that the
next push can ask for them first.
"""

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import structs

from husk.engine.images.catalog import FoundImage, ImageCatalog
from husk.engine.images.content import (
    ImageContent,
    IndexContent,
    content_of,
    descriptors_of,
    held_by,
    index_content,
    member_content,
)
from husk.engine.images.index import ImageIndex, choose_image, platform_of
from husk.engine.images.limiter import Limiter
from husk.engine.images.make import compose_manifest
from husk.engine.images.singleflight import Report
from husk.engine.images.store import PACKED, ImageStore
from husk.engine.model.image import Image, Progress, Pushed, PushedInsteadOfIndex
from husk.errors import Conflict, InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import DOCKER_LAYER, Descriptor, Platform, host_platform, normalize
from husk.registry.reference import Reference
from husk.registry.upload import PushTarget
from husk.storage.layers.store import Layer
from husk.storage.sources import FileSource, GzipSource
from husk.storage.state.store import Change, StateStore

MOST_MOUNT_SOURCES = 3


class PackedTar(msgspec.Struct, frozen=True):
    """The digest and the size of a layer's plain tar when it is compressed."""

    digest: str
    size: int


class PushedContent(msgspec.Struct, frozen=True):
    """Content to be pushed as it is: blobs of the store, and manifests with the tags or digests that they go under.

    Manifests that name others come after those.
    """

    repository: Reference
    layers: list[tuple[Descriptor, Layer]]
    blobs: list[Descriptor]
    manifests: list[tuple[str, bytes, str]]


class _Push(msgspec.Struct, frozen=True):
    """One push under way: where to, and who wants to know."""

    reference: Reference
    target: PushTarget
    report: Report
    slots: Limiter

    async def put_manifest(self, reference: str, body: bytes, media_type: str) -> None:
        def on_retry(tries: int, seconds: float, why: str) -> None:
            self.report(Progress(status=f"Retrying in {max(1, round(seconds))} seconds", id=reference))

        await self.target.put_manifest(reference, body, media_type, on_retry)


class Pusher:
    def __init__(self, store: ImageStore, registry: RegistryClient, state: StateStore, uploads: Limiter) -> None:
        self._store = store
        self._uploads = uploads
        self._registry = registry
        self._state = state
        self._packed = state.records(PACKED, PackedTar)

    def to(self, registry: RegistryClient) -> "Pusher":
        """The same by another client."""
        return Pusher(self._store, registry, self._state, self._uploads)

    async def collect(self) -> None:
        """At start: forget what became of layers that are gone."""
        gone = self._packed.keys() - self._store.layers.blobs()
        await self._state.commit(*(Change(PACKED, blob, None) for blob in gone))
        for blob in gone:
            del self._packed[blob]

    async def push(
        self, name: str, tag: str, platform: Platform | None, auth: Credentials | None, report: Report
    ) -> None:
        """Push one tag of a repository, or all that are here; of several platforms all, or only the one that is named.

        An index goes out as a whole or not at all: if a platform of it is not here, one manifest goes instead.
        """
        named = references.parse(name)
        if named.digest:
            raise InvalidParameter("cannot push a digest reference")
        repository = Reference(named.domain, named.path)
        wanted = repository.with_tag(tag) if tag else None
        report(Progress(status=f"The push refers to repository [{repository.name}]"))
        present = [own for own in self._store.catalog.tags_of(repository) if wanted in (None, own)]
        if not present:
            if wanted is not None and self._store.catalog.tags_of(repository):
                raise NotFound(f"tag does not exist: {wanted.familiar}")
            raise NotFound(f"An image does not exist locally with the tag: {repository.familiar_name}")
        target = await self._registry.target(repository, auth)
        push = _Push(repository, target, report, self._uploads)
        for reference in present:
            await self._push(reference, platform, push)
            self._store.tell_of_transfer("push", reference, self._store.catalog.by_name(reference))

    async def upload(self, upload: PushedContent, auth: Credentials | None, report: Report) -> None:
        """Push an upload to its repository, manifests last. Whoever calls holds the blobs."""
        repository = Reference(upload.repository.domain, upload.repository.path)
        push = _Push(repository, await self._registry.target(repository, auth), report, self._uploads)
        try:
            async with asyncio.TaskGroup() as group:
                for described, layer in upload.layers:
                    own = described.digest == layer.blob
                    sent = layer if own else structs.replace(layer, blob=described.digest, blob_size=described.size)
                    group.create_task(self._send_layer(sent, described, False, push), name=f"push {described.digest}")
                for blob in upload.blobs:
                    source = FileSource(self._store.blobs.path(blob.digest), blob.digest, blob.size)
                    group.create_task(self._send_blob(source, push), name=f"push {blob.digest}")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        for reference, body, media_type in upload.manifests:
            await push.put_manifest(reference, body, media_type)
        self._store.tell_of_transfer("push", upload.repository, None)

    async def _push(self, reference: Reference, platform: Platform | None, push: _Push) -> None:
        image, index = self._store.catalog.by_name(reference), self._store.catalog.index_by_name(reference)
        if image is None:
            raise NotFound(f"tag does not exist: {reference.familiar}")
        chain, held = held_by(image, index, self._store)
        try:
            async with self._store.pins.hold([*chain, *held]):
                whole = index if platform is None and index is not None and index.complete else None
                everything = await index_content(whole, self._store) if whole is not None else None
                if everything is not None:
                    pushed = await self._push_index(everything, reference, push)
                else:
                    chosen = choose_to_push(image, index, platform, reference, self._store.catalog)
                    pushed = await self._push_image(chosen, index, reference, push)
                    if index is not None and platform is None:
                        push.report(Progress(aux=_instead_of(index, pushed)))
        finally:
            # Somebody may have removed the image meanwhile.
            await asyncio.shield(self._store.release(chain, held))
        push.report(Progress(status=f"{reference.tag}: digest: {pushed.digest} size: {pushed.size}"))
        push.report(Progress(aux=Pushed(tag=reference.tag, digest=pushed.digest, size=pushed.size)))

    async def _push_image(
        self, image: Image, index: ImageIndex | None, reference: Reference, push: _Push
    ) -> Descriptor:
        """Push one manifest under the tag; that of its index if its content is here as the index names it."""
        member = next((m for m in index.manifests if m.image == image.id), None) if index is not None else None
        exact = await member_content(image, member, self._store) if member is not None else None
        manifest, media_type = await self._send(exact or await content_of(image, self._store), push)
        await push.put_manifest(reference.tag, manifest, media_type)
        digest = references.digest_of(manifest)
        await self._remember(image, None, reference, digest)
        return Descriptor(media_type=media_type, digest=digest, size=len(manifest), platform=platform_of(image))

    async def _push_index(self, content: IndexContent, reference: Reference, push: _Push) -> Descriptor:
        """Push all manifests by their digests, then the index under the tag."""
        for member, image in content.images:
            await self._send(image, push)
            await push.put_manifest(member.digest, image.manifest, image.media_type)
        for attached in content.attached:
            for digest, body in attached.blobs.items():
                await self._send_blob(FileSource(self._store.blobs.path(digest), digest, len(body)), push)
            await push.put_manifest(attached.member.digest, attached.manifest, attached.member.media_type)
        index = content.index
        await push.put_manifest(reference.tag, content.document, index.media_type)
        await self._remember(content.images[0][1].image, index, reference, index.digest)
        return Descriptor(media_type=index.media_type, digest=index.digest, size=len(content.document))

    async def _send(self, content: ImageContent, push: _Push) -> tuple[bytes, str]:
        """Send the layers and the configuration; the manifest over what the registry now has."""
        described = dict(zip((la.chain_id for la in content.layers), descriptors_of(content), strict=True))
        # A layer may be part of an image twice.
        distinct = {layer.blob: layer for layer in content.layers}
        try:
            async with asyncio.TaskGroup() as group:
                sending = {
                    blob: group.create_task(
                        self._send_layer(layer, described[layer.chain_id], content.own, push), name=f"push {blob}"
                    )
                    for blob, layer in reversed(distinct.items())
                }
                config = FileSource(self._store.blobs.path(content.image.id), content.image.id, len(content.config))
                group.create_task(self._send_blob(config, push), name=f"push {content.image.id}")
        except BaseExceptionGroup as failures:
            # One layer's failure cancels its siblings; the client wants that one failure.
            raise failures.exceptions[0] from None
        if not content.own:
            return content.manifest, content.media_type
        sent = [sending[layer.blob].result() for layer in content.layers]
        return compose_manifest(content.image.id, len(content.config), sent)

    async def _send_blob(self, blob: FileSource, push: _Push) -> None:
        async with push.slots:
            if not await push.target.has(blob.digest):
                await push.target.upload(blob)

    async def _send_layer(self, layer: Layer, described: Descriptor, own: bool, push: _Push) -> Descriptor:
        name, report = layer.diff_id.removeprefix("sha256:")[:12], push.report
        report(Progress(status="Preparing", id=name))
        source = self._source(layer, packing=own and described.media_type == DOCKER_LAYER)
        if push.slots.locked():
            report(Progress(status="Waiting", id=name))
        async with push.slots:
            if source.digest and await push.target.has(source.digest):
                report(Progress(status="Layer already exists", id=name))
            else:
                total = layer.blob_size

                def on_progress(sent: int) -> None:
                    report(Progress(status="Pushing", id=name, current=sent, total=max(total, sent)))

                def on_retry(tries: int, seconds: float, why: str) -> None:
                    report(Progress(status=f"Retrying in {max(1, round(seconds))} seconds", id=name))

                mounted = await push.target.upload(
                    source,
                    mount_from=self._elsewhere(layer, push.reference),
                    on_progress=on_progress,
                    on_retry=on_retry,
                )
                report(Progress(status=f"Mounted from {mounted}" if mounted else "Pushed", id=name))
        if isinstance(source, FileSource):
            return Descriptor(media_type=described.media_type, digest=source.digest, size=source.size)
        await self._keep_packed(layer, PackedTar(source.digest, source.size))
        return Descriptor(media_type=f"{DOCKER_LAYER}.gzip", digest=source.digest, size=source.size)

    def _source(self, layer: Layer, packing: bool) -> FileSource | GzipSource:
        path = self._store.blobs.path(layer.blob)
        if not packing:
            return FileSource(path, layer.blob, layer.blob_size)
        packed = self._packed.get(layer.blob)
        return GzipSource(path, packed.digest, packed.size) if packed else GzipSource(path)

    async def _keep_packed(self, layer: Layer, packed: PackedTar) -> None:
        if self._packed.get(layer.blob) != packed:
            await self._state.commit(Change(PACKED, layer.blob, msgspec.json.encode(packed)))
            self._packed[layer.blob] = packed

    def _elsewhere(self, layer: Layer, here: Reference) -> list[str]:
        """Repositories of the same registry that should have this layer: its images were pulled or pushed there."""
        paths = dict.fromkeys(
            name.path
            for image in self._with_layer(layer)
            for name in self._store.catalog.known_as(image)
            if name.digest and name.domain == here.domain and name.path != here.path
        )
        return list(paths)[:MOST_MOUNT_SOURCES]

    def _with_layer(self, layer: Layer) -> Iterable[Image]:
        return (image for image in self._store.catalog if layer.chain_id in image.chain_ids)

    async def _remember(self, image: Image, index: ImageIndex | None, reference: Reference, digest: str) -> None:
        """The image or index is from now on also known by the digest that the registry has it under."""
        catalog, name = self._store.catalog, Reference(reference.domain, reference.path, digest=digest)
        current = catalog.get(image.id)
        still_there = current is not None and (index is None or catalog.index(index.digest) is not None)
        if current is not None and still_there and catalog.target(name) != (index.digest if index else image.id):
            await catalog.add(current, name, index=index)


def choose_to_push(
    image: Image, index: ImageIndex | None, platform: Platform | None, reference: Reference, catalog: ImageCatalog
) -> Image:
    """The one image that goes out when it is not all platforms; Docker's rules."""
    here = catalog.candidates(FoundImage(image, index))
    if platform is not None:
        chosen = choose_image(here, platform)
        if chosen is None:
            raise NotFound(
                f"image with reference {reference.familiar} was found but does not provide the specified platform "
                f"({normalize(platform)})"
            )
        return chosen
    if len({each.id for _, each in here}) > 1 and choose_image(here, host_platform()) is None:
        raise Conflict("multiple matching manifests found but no specific platform requested")
    return image


def _instead_of(index: ImageIndex, pushed: Descriptor) -> PushedInsteadOfIndex:
    original = Descriptor(media_type=index.media_type, digest=index.digest, size=index.size)
    return PushedInsteadOfIndex(original_index=original, selected_manifest=pushed)
