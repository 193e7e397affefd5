"""Making of images from a configuration and layers. Pull, load, commit and the first busybox all end here."""

import asyncio
import hashlib
from collections.abc import Iterable

import msgspec

from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import Image, ImageConfig
from husk.errors import InvalidParameter
from husk.registry.manifest import (
    DOCKER_CONFIG,
    DOCKER_LAYER,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Descriptor,
)
from husk.storage.blobs import BlobStore
from husk.storage.layers.chain import chain_id
from husk.storage.layers.store import Layer
from husk.text.gojson import Reader, parse_document

_READER = Reader(ImageConfig)
# All ports of three protocols, and all else that there is.
_MOST_VALUES = 1 << 18
_READ_AT_ONCE = 64 << 10
# What every host can mount, with some room for what containers and steps of builds lay above.
MOST_LAYERS = 480


def read_config(body: bytes) -> ImageConfig:
    """An image's configuration blob, read as Go reads it."""
    return _READER.read(parse_document(body, _MOST_VALUES))


async def read_config_aside(body: bytes) -> ImageConfig:
    """As `read_config`, in a thread where that may take a while: it comes from whoever made the image."""
    return read_config(body) if len(body) <= _READ_AT_ONCE else await asyncio.to_thread(read_config, body)


def require_layers(document: ImageConfig, given: int) -> None:
    """Refuse a configuration that does not go with so many layers of its manifest, or has more than can be mounted.

    Before anything is fetched: a manifest may name one layer as often as it likes.
    """
    require_depth(len(document.rootfs.diff_ids))
    if len(document.rootfs.diff_ids) != given:
        raise InvalidParameter("invalid rootfs in image configuration: its layers do not match the manifest's")


def require_depth(layers: int) -> None:
    """Refuse an image that no container could be made of."""
    if layers > MOST_LAYERS:
        raise InvalidParameter(f"max depth exceeded: the image has {layers} layers, {MOST_LAYERS} is the most")


def chain_ids(diff_ids: Iterable[str]) -> list[str]:
    chain, parent = [], ""
    for diff_id in diff_ids:
        parent = chain_id(parent, diff_id)
        chain.append(parent)
    return chain


def image_record(
    image_id: str, document: ImageConfig, *, size: int, parent: str = "", manifest: Descriptor | None
) -> Image:
    require_depth(len(document.rootfs.diff_ids))
    if document.created:
        parse_rfc3339(document.created)  # refused here, not in every listing from then on
    if document.rootfs.type != "layers":
        raise InvalidParameter(f"unsupported root file system type {document.rootfs.type!r}")
    return Image(
        id=image_id,
        created=document.created,
        architecture=document.architecture,
        os=document.os,
        variant=document.variant,
        author=document.author,
        comment=document.comment or (document.history[-1].comment if document.history else ""),
        docker_version=document.docker_version,
        config=document.config or ContainerConfig(),
        diff_ids=document.rootfs.diff_ids,
        chain_ids=chain_ids(document.rootfs.diff_ids),
        history=document.history,
        size=size,
        parent=parent,
        manifest=manifest.digest if manifest else "",
        manifest_media_type=manifest.media_type if manifest else "",
        manifest_size=manifest.size if manifest else 0,
    )


async def make_image(blobs: BlobStore, document: ImageConfig, layers: list[Layer], parent: str = "") -> Image:
    """Write the configuration and a manifest over layers that the store has, and return the record (not yet stored)."""
    return await image_over(blobs, msgspec.json.encode(document), document, layers, parent)


async def image_over(
    blobs: BlobStore,
    config: bytes,
    document: ImageConfig,
    layers: list[Layer],
    parent: str = "",
    manifest: tuple[bytes, str] | None = None,
) -> Image:
    """As `make_image`, for a configuration that exists already, and perhaps a manifest (with its media type)."""
    require_depth(len(layers))
    image_id = "sha256:" + hashlib.sha256(config).hexdigest()
    body, media_type = manifest or compose_manifest(image_id, len(config), layers)
    _, digest = await blobs.put_all(config, body)
    descriptor = Descriptor(media_type=media_type, digest=digest, size=len(body))
    size = sum(layer.size for layer in layers)
    return image_record(image_id, document, size=size, parent=parent, manifest=descriptor)


def compose_manifest(
    image_id: str, config_size: int, layers: Iterable[Layer | Descriptor], oci: bool = False
) -> tuple[bytes, str]:
    """A manifest over layers as the store has them, or as descriptors tell, and its media type."""
    described = [_described(layer) for layer in layers]
    # Docker's own format has no zstd; the two formats must not be mixed.
    oci = oci or any("zstd" in layer.media_type for layer in described)
    media_type = OCI_MANIFEST if oci else DOCKER_MANIFEST
    body = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": {"mediaType": OCI_CONFIG if oci else DOCKER_CONFIG, "size": config_size, "digest": image_id},
        "layers": [
            {"mediaType": layer_type(layer.media_type, oci), "size": layer.size, "digest": layer.digest}
            for layer in described
        ],
    }
    return msgspec.json.encode(body), media_type


def _described(layer: Layer | Descriptor) -> Descriptor:
    if isinstance(layer, Descriptor):
        return layer
    return Descriptor(media_type=layer.media_type, digest=layer.blob, size=layer.blob_size)


def layer_type(media_type: str, oci: bool) -> str:
    compression = next((name for name in ("gzip", "zstd") if media_type.endswith(name)), "")
    if oci:
        return OCI_LAYER + (f"+{compression}" if compression else "")
    return DOCKER_LAYER + (f".{compression}" if compression else "")
