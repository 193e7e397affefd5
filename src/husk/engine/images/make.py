"""How do a configuration and layers become an image? One way for all: pull, commit and the first busybox end here."""

import msgspec

from husk.engine.containers.model import Config
from husk.engine.images.model import Image, ImageDocument
from husk.errors import InvalidParameter
from husk.gojson import Reader, parse_document
from husk.registry.manifest import DOCKER_CONFIG, DOCKER_MANIFEST, Descriptor
from husk.storage.archive import chain_id
from husk.storage.blobs import BlobStore
from husk.storage.layers import Layer

_READER = Reader(ImageDocument)


def read_document(body: bytes) -> ImageDocument:
    """An image's configuration blob, read as Go reads it."""
    return _READER.read(parse_document(body))


def chain_ids(diff_ids: list[str]) -> list[str]:
    chain, parent = [], ""
    for diff_id in diff_ids:
        parent = chain_id(parent, diff_id)
        chain.append(parent)
    return chain


def image_record(
    image_id: str, document: ImageDocument, *, size: int, parent: str = "", manifest: Descriptor | None, index: str = ""
) -> Image:
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
        config=document.config or Config(),
        diff_ids=document.rootfs.diff_ids,
        chain_ids=chain_ids(document.rootfs.diff_ids),
        history=document.history,
        size=size,
        parent=parent,
        manifest=manifest.digest if manifest else "",
        manifest_media_type=manifest.media_type if manifest else "",
        manifest_size=manifest.size if manifest else 0,
        index=index,
    )


async def make_image(blobs: BlobStore, document: ImageDocument, layers: list[Layer], parent: str = "") -> Image:
    """Write the configuration and a manifest over layers that the store has, and return the record (not yet stored)."""
    config = msgspec.json.encode(document)
    image_id = await blobs.put(config)
    body = msgspec.json.encode(
        {
            "schemaVersion": 2,
            "mediaType": DOCKER_MANIFEST,
            "config": {"mediaType": DOCKER_CONFIG, "size": len(config), "digest": image_id},
            "layers": [
                {"mediaType": layer.media_type, "size": layer.blob_size, "digest": layer.blob} for layer in layers
            ],
        }
    )
    manifest = Descriptor(media_type=DOCKER_MANIFEST, digest=await blobs.put(body), size=len(body))
    size = sum(layer.size for layer in layers)
    return image_record(image_id, document, size=size, parent=parent, manifest=manifest)
