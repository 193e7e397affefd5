"""How does an image get into a registry? Layers, several at a time, and configuration, then the manifest by its tag.

What came from a registry goes back byte for byte. Layers that were made here (commit, import, build) are plain tars;
they are compressed on their way out, always to the same bytes. The digest of those bytes is remembered, so that the
next push can ask for them first.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from husk.engine.images.content import Content, content_of, descriptors_of
from husk.engine.images.make import compose_manifest
from husk.engine.images.model import Image, Progress, Pushed
from husk.engine.images.shared import Report
from husk.engine.images.store import ImageStore
from husk.errors import InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import DOCKER_LAYER, Descriptor
from husk.registry.reference import Reference
from husk.registry.upload import Target
from husk.storage.layers import Layer
from husk.storage.sources import FileSource, GzipSource
from husk.storage.state import Change, StateStore

CONCURRENT_UPLOADS = 5
MOST_MOUNT_SOURCES = 3
PACKED = "packed-layer"


class Packed(msgspec.Struct, frozen=True):
    """What a layer's plain tar becomes when it is compressed."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class _Push:
    """One push under way: where to, and who wants to know."""

    reference: Reference
    target: Target
    report: Report
    slots: asyncio.Semaphore


class Pusher:
    def __init__(self, store: ImageStore, registry: RegistryClient, state: StateStore) -> None:
        self._store = store
        self._registry = registry
        self._state = state
        self._packed = {k: msgspec.json.decode(body, type=Packed) for k, body in state.load(PACKED).items()}

    async def collect(self) -> None:
        """At start: forget what became of layers that are gone."""
        gone = self._packed.keys() - self._store.layers.blobs()
        await self._state.commit(*(Change(PACKED, blob, None) for blob in gone))
        for blob in gone:
            del self._packed[blob]

    async def push(self, name: str, tag: str, auth: Credentials | None, report: Report) -> None:
        """Push one tag of a repository, or all that are here."""
        named = references.parse(name)
        if named.digest:
            raise InvalidParameter("cannot push a digest reference")
        repository = Reference(named.domain, named.path)
        wanted = repository.with_tag(tag) if tag else None
        report(Progress(status=f"The push refers to repository [{repository.name}]"))
        present = [own for own in self._store.index.tags_of(repository) if wanted in (None, own)]
        if not present:
            if wanted is not None and self._store.index.tags_of(repository):
                raise NotFound(f"tag does not exist: {wanted.familiar}")
            raise NotFound(f"An image does not exist locally with the tag: {repository.familiar_name}")
        target = await self._registry.target(repository, auth)
        push = _Push(repository, target, report, asyncio.Semaphore(CONCURRENT_UPLOADS))
        for reference in present:
            await self._push(reference, push)
            self._store.events.publish("image", "push", reference.familiar, {"name": repository.familiar_name})

    async def _push(self, reference: Reference, push: _Push) -> None:
        image = self._store.index.by_name(reference)
        if image is None:
            raise NotFound(f"tag does not exist: {reference.familiar}")
        held = [image.id, image.manifest]
        try:
            async with self._store.pins.hold([*image.chain_ids, *held]):
                content = await content_of(image, self._store.blobs, self._store.layers)
                manifest, media_type = await self._send(content, push)
                await push.target.put_manifest(reference.tag, manifest, media_type)
                digest = await self._remember(image, reference, manifest)
        finally:
            # Somebody may have removed the image meanwhile.
            await asyncio.shield(self._store.release(image.chain_ids, held))
        push.report(Progress(status=f"{reference.tag}: digest: {digest} size: {len(manifest)}"))
        push.report(Progress(aux=Pushed(tag=reference.tag, digest=digest, size=len(manifest))))

    async def _send(self, content: Content, push: _Push) -> tuple[bytes, str]:
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
                group.create_task(self._send_config(config, push.target), name=f"push {content.image.id}")
        except BaseExceptionGroup as failures:
            # One layer's failure cancels its siblings; the client wants that one failure.
            raise failures.exceptions[0] from None
        if not content.own:
            return content.manifest, content.media_type
        sent = [sending[layer.blob].result() for layer in content.layers]
        return compose_manifest(content.image.id, len(content.config), sent)

    async def _send_config(self, config: FileSource, target: Target) -> None:
        if not await target.has(config.digest):
            await target.upload(config)

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
        await self._keep_packed(layer, Packed(source.digest, source.size))
        return Descriptor(media_type=f"{DOCKER_LAYER}.gzip", digest=source.digest, size=source.size)

    def _source(self, layer: Layer, packing: bool) -> FileSource | GzipSource:
        path = self._store.blobs.path(layer.blob)
        if not packing:
            return FileSource(path, layer.blob, layer.blob_size)
        packed = self._packed.get(layer.blob)
        return GzipSource(path, packed.digest, packed.size) if packed else GzipSource(path)

    async def _keep_packed(self, layer: Layer, packed: Packed) -> None:
        if self._packed.get(layer.blob) != packed:
            await self._state.commit(Change(PACKED, layer.blob, msgspec.json.encode(packed)))
            self._packed[layer.blob] = packed

    def _elsewhere(self, layer: Layer, here: Reference) -> list[str]:
        """Repositories of the same registry that should have this layer: its images were pulled or pushed there."""
        paths = dict.fromkeys(
            name.path
            for image in self._with_layer(layer)
            for name in self._store.index.names(image)
            if name.digest and name.domain == here.domain and name.path != here.path
        )
        return list(paths)[:MOST_MOUNT_SOURCES]

    def _with_layer(self, layer: Layer) -> Iterable[Image]:
        return (image for image in self._store.index if layer.chain_id in image.chain_ids)

    async def _remember(self, image: Image, reference: Reference, manifest: bytes) -> str:
        """The image is from now on also known by the digest that the registry has it under."""
        digest = references.digest_of(manifest)
        name = Reference(reference.domain, reference.path, digest=digest)
        current = self._store.index.get(image.id)
        if current is not None and self._store.index.by_name(name) is not current:
            await self._store.index.add(current, name)
        return digest
