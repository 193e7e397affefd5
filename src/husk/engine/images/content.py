"""The content of an image: its manifest, its configuration and the blobs of its layers, as others can take them over.

A registry's manifest is kept byte for byte. It may name blobs that are not here, because a layer with the same files
came earlier in another compression; then an equal manifest is made over the blobs that are here.
"""

from collections.abc import Iterable

import msgspec
from msgspec import structs

from husk.engine.images.index import ImageIndex, IndexEntry
from husk.engine.images.make import compose_manifest
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image
from husk.errors import HuskError, NotFound
from husk.registry.manifest import Descriptor, ImageManifest, parse_manifest
from husk.storage.layers.store import Layer


class ImageContent(msgspec.Struct, frozen=True):
    """An image's documents and layers, base first."""

    image: Image
    config: bytes
    manifest: bytes
    media_type: str
    layers: list[Layer]
    own: bool
    """True if the manifest is one that Husk made, so that nobody is bound to its digest."""


class Attached(msgspec.Struct, frozen=True):
    """A member of an index that is no image: its manifest and what that names, by digest."""

    member: IndexEntry
    manifest: bytes
    blobs: dict[str, bytes]


class IndexContent(msgspec.Struct, frozen=True):
    """An image index and what is here of it, all as it came."""

    index: ImageIndex
    document: bytes
    images: list[tuple[IndexEntry, ImageContent]]
    attached: list[Attached]


async def content_of(image: Image, store: ImageStore) -> ImageContent:
    """The content of one image; the manifest is its own, or composed if that is not here."""
    layers = _layers(image, store)
    config = await store.blobs.read(image.id)
    composed, media_type = compose_manifest(image.id, len(config), layers)
    try:
        stored = await store.blobs.read(image.manifest)
        exact = _as_named(stored, image.manifest_media_type, layers, filter(store.blobs.has, image.packed))
    except HuskError:
        return ImageContent(image, config, composed, media_type, layers, own=True)
    in_oci = compose_manifest(image.id, len(config), layers, oci=True)[0]  # as `save` writes it
    if exact is None or stored in (composed, in_oci):
        return ImageContent(image, config, composed, media_type, layers, own=True)
    return ImageContent(image, config, stored, image.manifest_media_type, exact[1], own=False)


async def member_content(image: Image, member: IndexEntry, store: ImageStore) -> ImageContent | None:
    """The content of one image exactly as its index names it; None if it is here in another form only."""
    try:
        layers = _layers(image, store)
        config, stored = await store.blobs.read(image.id), await store.blobs.read(member.digest)
        exact = _as_named(stored, member.media_type, layers, filter(store.blobs.has, member.blobs))
    except HuskError:
        return None
    return ImageContent(image, config, stored, exact[0], exact[1], own=False) if exact else None


async def index_content(index: ImageIndex, store: ImageStore) -> IndexContent | None:
    """All that is here of an index; None if some of it is not here as its index names it."""
    images, attached = [], []
    for member in index.manifests:
        if (image := store.catalog.get(member.image)) is not None:
            content = await member_content(image, member, store)
            if content is None:
                return None
            images.append((member, content))
        elif member.blobs:
            blobs = {digest: await store.blobs.read(digest) for digest in member.blobs}
            attached.append(Attached(member, await store.blobs.read(member.digest), blobs))
    return IndexContent(index, await store.blobs.read(index.digest), images, attached)


def descriptors_of(content: ImageContent) -> list[Descriptor]:
    """Return the descriptors of the layers, as the image's manifest has them."""
    manifest = parse_manifest(content.manifest, content.media_type)
    assert isinstance(manifest, ImageManifest)
    return manifest.layers


def held_by(image: Image, index: ImageIndex | None, store: ImageStore) -> tuple[list[str], list[str]]:
    """The chain ids and the blobs that must stay while somebody reads an image or all of its index."""
    images = [image, *(store.catalog.images_of(index) if index is not None else [])]
    content = [digest for each in images for digest in each.content]
    return [chain_id for each in images for chain_id in each.chain_ids], content + (index.content if index else [])


def _layers(image: Image, store: ImageStore) -> list[Layer]:
    layers = [layer for chain_id in image.chain_ids if (layer := store.layers.get(chain_id))]
    if len(layers) != len(image.chain_ids):
        raise NotFound(f"a layer of image {image.id} is missing")
    return layers


def _as_named(
    manifest: bytes, media_type: str, layers: list[Layer], packed: Iterable[str]
) -> tuple[str, list[Layer]] | None:
    """The manifest's media type and the layers with the blobs that it names, if those are here.

    They are those of `layers`, or among those that were `packed` for it.
    """
    parsed = parse_manifest(manifest, media_type)
    if not isinstance(parsed, ImageManifest) or len(parsed.layers) != len(layers):
        return None
    named, packed = [], set(packed)
    for descriptor, layer in zip(parsed.layers, layers, strict=True):
        if descriptor.digest in packed:
            layer = structs.replace(
                layer, blob=descriptor.digest, blob_size=descriptor.size, media_type=descriptor.media_type
            )
        elif descriptor.digest != layer.blob:
            return None
        named.append(layer)
    return parsed.media_type, named
