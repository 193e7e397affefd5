"""An image in the form that it goes out in: its documents, and its layers in their final compression.

    async with bundler.bundle(result, options, tell) as bundle:
        ...                     # store it, push it, write it

All that it consists of stays while the block goes on, and then goes unless a record has come to name it.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from husk.builder.exporters import documents
from husk.builder.exporters.documents import Attested, ImageDocument, attest
from husk.builder.exporters.layers import Finisher
from husk.builder.exporters.options import Annotations, ExportOptions
from husk.builder.exporters.parts import PlatformPart, is_several, parts_aside
from husk.builder.jobs.results import Predicate, Result
from husk.builder.store.compressions import GZIP, PLAIN, ZSTD, Compression
from husk.builder.store.layer_packing import LayerPacker
from husk.engine.images.store import ImageStore
from husk.engine.model.image import ImageConfig
from husk.errors import InvalidParameter
from husk.registry.manifest import OCI_LAYER, Descriptor
from husk.storage.layers.store import Layer
from husk.text.documents import decode

# Where an image's configuration has the cache that goes with it.
INLINE_CACHE = "moby.buildkit.cache.v0"

T = TypeVar("T")
Tell = Callable[[str], None]
"""Says what is done."""


class BundledImage(Struct, frozen=True, kw_only=True):
    """One platform of a bundle. `described` are the layers as the manifest names them."""

    part: PlatformPart
    document: ImageConfig
    config: ImageDocument
    layers: list[Layer]
    described: list[Descriptor]
    manifest: ImageDocument
    descriptor: Descriptor
    attested: Attested | None = None

    @property
    def packed(self) -> list[str]:
        """The blobs of layers that are not the layers' own."""
        own = {layer.blob for layer in self.layers}
        return list(dict.fromkeys(one.digest for one in self.described if one.digest not in own))


class ImageBundle(Struct, frozen=True):
    images: list[BundledImage]
    index: ImageDocument | None
    descriptor: Descriptor
    """The document that names all of it: the index, or the only manifest."""

    @property
    def root(self) -> ImageDocument:
        return self.index or self.images[0].manifest

    @property
    def manifests(self) -> list[ImageDocument]:
        """All of them, those that name others after those that are named."""
        found = [image.manifest for image in self.images]
        found += [image.attested.manifest for image in self.images if image.attested]
        return found + ([self.index] if self.index else [])

    @property
    def small_blobs(self) -> list[ImageDocument]:
        """Configurations and statements."""
        found = [image.config for image in self.images]
        found += [blob for image in self.images if image.attested for blob in image.attested.blobs]
        return list({one.descriptor.digest: one for one in found}.values())

    @property
    def layers(self) -> list[Descriptor]:
        return list({one.digest: one for image in self.images for one in image.described}.values())


class Bundler:
    def __init__(self, store: ImageStore, finisher: Finisher, packer: LayerPacker) -> None:
        self._store = store
        self._finisher = finisher
        self._packer = packer

    @asynccontextmanager
    async def bundle(
        self, result: Result, options: ExportOptions, tell: Tell, *, oci: bool = False
    ) -> AsyncIterator[ImageBundle]:
        """With `oci`, media types are OCI's unless the client says otherwise."""
        parts = await parts_aside(result)
        several = is_several(result) or any(part.predicates for part in parts)
        oci = _uses_oci(options, parts, oci or several)
        _check_annotations(options, parts, several)
        held = HeldContent(self._store)
        try:
            made = await _all(self._image(result, part, options, oci, held) for part in parts)
            bundle = _bundle(made, options, several, oci)
            await self._write(bundle, held)
            tell("exporting layers")
            for manifest in bundle.manifests:
                kind = "manifest list" if manifest is bundle.index else "manifest"
                tell(f"exporting {kind} {manifest.descriptor.digest}")
            yield bundle
        finally:
            await asyncio.shield(held.release())

    async def _image(
        self, result: Result, part: PlatformPart, options: ExportOptions, oci: bool, held: "HeldContent"
    ) -> BundledImage:
        stack = await part.stack()
        held.add_chain(await self._finisher.packer.chain_ids(stack, options.clamp))
        layers = await self._finisher.packer.layers(stack, options.clamp)
        described = await _all(self.described(layer, options, oci, held) for layer in layers)
        document = self._finisher.finished(stack, part.document, layers, options.epoch)
        body = msgspec.json.encode(document)
        if result.inline_cache and (cache := await result.inline_cache(part.id, described)) is not None:
            body = with_inline_cache(body, cache)
        config = documents.config_document(body, oci=oci)
        annotations = options.annotations_for(part.platform)
        manifest = documents.manifest(config, described, annotations.manifest, oci=oci)
        named = structs.replace(
            manifest.descriptor, platform=part.platform, annotations=annotations.manifest_descriptor or None
        )
        predicates = [_completed(one, described) for one in part.predicates]
        attested = (
            attest(named, part.platform, options.names, predicates, artifact=options.artifact) if predicates else None
        )
        return BundledImage(
            part=part,
            document=document,
            config=config,
            layers=layers,
            described=described,
            manifest=manifest,
            descriptor=named,
            attested=attested,
        )

    async def described(self, layer: Layer, options: ExportOptions, oci: bool, held: "HeldContent") -> Descriptor:
        """A layer in the compression that is wanted; one that is compressed already stays so, unless told otherwise."""
        now, wanted = compression_of(layer.media_type), options.compression
        if now == ZSTD and not oci:
            # Docker's own format has no zstd.
            wanted = wanted if wanted.kind != ZSTD and options.force_compression else Compression()
        elif now == wanted.kind or (now != PLAIN and not options.force_compression):
            return Descriptor(media_type=layer.media_type, digest=layer.blob, size=layer.blob_size)
        packed = await self._packer.pack(layer.blob, now != PLAIN, wanted, lambda digest: held.add([digest]))
        ending = "" if wanted.kind == PLAIN else f"+{wanted.kind}"
        return Descriptor(media_type=OCI_LAYER + ending, digest=packed.digest, size=packed.size)

    async def _write(self, bundle: ImageBundle, held: "HeldContent") -> None:
        documents = [*bundle.small_blobs, *bundle.manifests]
        held.add(one.descriptor.digest for one in documents)
        for one in documents:
            await self._store.blobs.put(one.body)


async def _all(works: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """The results of works side by side. When one fails no other goes on: what they would hold is let go of."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work, name="bundle") for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _completed(predicate: Predicate, layers: list[Descriptor]) -> Predicate:
    return structs.replace(predicate, body=predicate.completed(layers)) if predicate.completed else predicate


def _bundle(images: list[BundledImage], options: ExportOptions, several: bool, oci: bool) -> ImageBundle:
    if not several:
        (image,) = images
        return ImageBundle(images, None, image.descriptor)
    named = [image.descriptor for image in images]
    named += [image.attested.descriptor for image in images if image.attested]
    annotations = options.annotations_for()
    index = documents.index(named, annotations.index, oci=oci)
    descriptor = structs.replace(index.descriptor, annotations=annotations.index_descriptor or None)
    return ImageBundle(images, index, descriptor)


def _uses_oci(options: ExportOptions, parts: Sequence[PlatformPart], default: bool) -> bool:
    if options.oci is False and any(part.predicates for part in parts):
        raise InvalidParameter('cannot export attestations with "oci-mediatypes=false"')
    if options.oci is not None:
        return options.oci
    return default or bool(options.annotations) or options.compression.kind == ZSTD


def _check_annotations(options: ExportOptions, parts: Sequence[PlatformPart], several: bool) -> None:
    known = {str(part.platform) for part in parts}
    for platform, annotations in options.annotations.items():
        if platform and platform not in known:
            raise InvalidParameter(f"invalid annotation: no platform {platform} found in source")
        if not several and _of_index(annotations):
            raise InvalidParameter("index annotations not supported for single platform export")


def _of_index(annotations: Annotations) -> bool:
    return bool(annotations.index or annotations.index_descriptor)


def compression_of(media_type: str) -> str:
    return next((kind for kind in (GZIP, ZSTD) if media_type.endswith(kind)), PLAIN)


def with_inline_cache(config: bytes, cache: bytes) -> bytes:
    document: dict[str, msgspec.Raw] = decode(config, dict[str, msgspec.Raw])
    inline = msgspec.Raw(msgspec.json.encode(base64.b64encode(cache).decode()))
    return msgspec.json.encode(document | {INLINE_CACHE: inline})


class HeldContent:
    """Layers and blobs that must stay for now."""

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._chain: list[str] = []
        self._blobs: list[str] = []

    def add_chain(self, chain: Iterable[str]) -> None:
        new = list(chain)
        self._store.pins.add(new)
        self._chain += new

    def add(self, blobs: Iterable[str]) -> None:
        new = list(blobs)
        self._store.pins.add(new)
        self._blobs += new

    async def release(self) -> None:
        chain, blobs, self._chain, self._blobs = self._chain, self._blobs, [], []
        self._store.pins.drop([*chain, *blobs])
        await self._store.release(chain, blobs)
