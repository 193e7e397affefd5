"""The documents of an image that goes out: manifests and indexes. Pure."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct, structs

from husk.engine.images.make import layer_type
from husk.registry.manifest import (
    DOCKER_CONFIG,
    DOCKER_LIST,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
)
from husk.registry.reference import digest_of


class ImageDocument(Struct, frozen=True):
    media_type: str
    body: bytes

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(media_type=self.media_type, digest=digest_of(self.body), size=len(self.body))


def config_document(body: bytes, *, oci: bool) -> ImageDocument:
    return ImageDocument(OCI_CONFIG if oci else DOCKER_CONFIG, body)


def manifest(
    config: ImageDocument, layers: Sequence[Descriptor], annotations: Mapping[str, str], *, oci: bool
) -> ImageDocument:
    """The two formats must not be mixed: layers get the media types of the one that is wanted."""
    media_type = OCI_MANIFEST if oci else DOCKER_MANIFEST
    described = [structs.replace(one, media_type=layer_type(one.media_type, oci), platform=None) for one in layers]
    return _document(media_type, {"config": config.descriptor, "layers": described}, annotations)


def index(manifests: Sequence[Descriptor], annotations: Mapping[str, str], *, oci: bool) -> ImageDocument:
    return _document(OCI_INDEX if oci else DOCKER_LIST, {"manifests": list(manifests)}, annotations)


def _document(media_type: str, content: Mapping[str, object], annotations: Mapping[str, str]) -> ImageDocument:
    body: dict[str, object] = {"schemaVersion": 2, "mediaType": media_type, **content}
    if annotations:
        body["annotations"] = dict(sorted(annotations.items()))
    return ImageDocument(media_type, msgspec.json.format(msgspec.json.encode(body), indent=2))
