"""The manifests of an image, and what of them is here: one line for each, as `docker images --tree` shows."""

import msgspec

from husk.engine.images.index import IMAGE_KIND, ImageIndex, IndexEntry, platform_of
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image
from husk.errors import HuskError
from husk.registry.manifest import Descriptor, Platform

NOWHERE = Platform()


class ManifestFacts(msgspec.Struct, frozen=True):
    """One manifest: what it is, and how much of it is here."""

    descriptor: Descriptor
    kind: str
    available: bool
    content: int = 0
    unpacked: int = 0
    platform: Platform = NOWHERE
    containers: list[str] = msgspec.field(default_factory=list)
    about: str = ""


def target_of(image: Image, index: ImageIndex | None) -> Descriptor:
    """Return the descriptor of what the image's name points to: the index of its platforms, or its only manifest."""
    if index is not None:
        return Descriptor(media_type=index.media_type, digest=index.digest, size=index.size)
    return _own_descriptor(image)


def manifests_of(image: Image, indexes: list[ImageIndex], store: ImageStore) -> list[ManifestFacts]:
    """All manifests of the indexes that an image stands for, or its own."""
    members = {member.digest: member for index in indexes for member in index.manifests}
    if not members or store.catalog.is_named(image):
        listed = [_image_facts(_own_descriptor(image), image, store)]
        return listed + [_facts(m, store) for m in members.values() if m.digest != image.manifest]
    return [_facts(member, store) for member in members.values()]


def _own_descriptor(image: Image) -> Descriptor:
    return Descriptor(
        media_type=image.manifest_media_type,
        digest=image.manifest,
        size=image.manifest_size,
        platform=platform_of(image),
    )


def _facts(member: IndexEntry, store: ImageStore) -> ManifestFacts:
    descriptor = Descriptor(
        media_type=member.media_type, digest=member.digest, size=member.size, platform=member.platform
    )
    if (image := store.catalog.get(member.image)) is not None:
        return _image_facts(descriptor, image, store)
    content = sum(_size(digest, store) for digest in (member.digest, *member.blobs)) if member.blobs else 0
    platform = member.platform or NOWHERE
    return ManifestFacts(descriptor, member.kind, bool(member.blobs), content, platform=platform, about=member.about)


def _image_facts(descriptor: Descriptor, image: Image, store: ImageStore) -> ManifestFacts:
    layers = [layer for chain_id in image.chain_ids if (layer := store.layers.get(chain_id))]
    documents = descriptor.size + _size(image.id, store)
    return ManifestFacts(
        descriptor,
        IMAGE_KIND,
        available=len(layers) == len(image.chain_ids),
        content=documents + sum({layer.blob: layer.blob_size for layer in layers}.values()),
        unpacked=image.size,
        platform=descriptor.platform or platform_of(image),
        containers=[container.id for container in store.containers() if container.image_id == image.id],
    )


def _size(digest: str, store: ImageStore) -> int:
    try:
        return store.blobs.size(digest)
    except HuskError:
        return 0
