"""What content is an image? Its manifest, its configuration and the blobs of its layers, as others can take them over.

A registry's manifest is kept byte for byte. It may name blobs that are not here, because a layer with the same files
came earlier in another compression; then an equal manifest is made over the blobs that are here.
"""

from dataclasses import dataclass

from husk.engine.images.make import compose_manifest
from husk.engine.images.model import Image
from husk.errors import HuskError, NotFound
from husk.registry.manifest import Descriptor, ImageManifest, parse_manifest
from husk.storage.blobs import BlobStore
from husk.storage.layers import Layer, LayerStore


@dataclass(frozen=True, slots=True)
class Content:
    """An image's documents and layers, base first."""

    image: Image
    config: bytes
    manifest: bytes
    media_type: str
    layers: list[Layer]
    own: bool
    """Whether the manifest is one that Husk made, so that nobody is bound to its digest."""


async def content_of(image: Image, blobs: BlobStore, store: LayerStore) -> Content:
    layers = [layer for chain_id in image.chain_ids if (layer := store.get(chain_id))]
    if len(layers) != len(image.chain_ids):
        raise NotFound(f"a layer of image {image.id} is missing")
    config = await blobs.read(image.id)
    composed, media_type = compose_manifest(image.id, len(config), layers)
    try:
        stored = await blobs.read(image.manifest)
        manifest = parse_manifest(stored, image.manifest_media_type)
    except HuskError:
        return Content(image, config, composed, media_type, layers, own=True)
    whole = isinstance(manifest, ImageManifest) and [d.digest for d in manifest.layers] == [la.blob for la in layers]
    in_oci = compose_manifest(image.id, len(config), layers, oci=True)[0]  # as `save` writes it
    if not whole or stored in (composed, in_oci):
        return Content(image, config, composed, media_type, layers, own=True)
    return Content(image, config, stored, image.manifest_media_type, layers, own=False)


def descriptors_of(content: Content) -> list[Descriptor]:
    """What the manifest says of its layers."""
    manifest = parse_manifest(content.manifest, content.media_type)
    assert isinstance(manifest, ImageManifest)
    return manifest.layers
