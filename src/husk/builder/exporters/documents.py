"""The documents of an image that goes out: manifests and indexes. Pure.

Statements about an image, beside it in a manifest of their own: in-toto statements as its layers.
"""

import base64
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

from husk.builder.jobs.results import Predicate
from husk.engine.images.attestations import IN_TOTO, PREDICATE
from husk.engine.images.index import REFERENCE_DIGEST, REFERENCE_TYPE
from husk.engine.images.make import layer_type
from husk.registry.manifest import (
    DOCKER_CONFIG,
    DOCKER_LIST,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
    Platform,
)
from husk.registry.reference import Reference, digest_of

NOWHERE = Platform("unknown", "unknown")
_EMPTY = "application/vnd.oci.empty.v1+json"
_ARTIFACT = "application/vnd.docker.attestation.manifest.v1+json"
STATEMENT = "https://in-toto.io/Statement/v0.1"


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


class Attested(Struct, frozen=True):
    """The manifest of all statements about one image, and what it consists of."""

    manifest: ImageDocument
    descriptor: Descriptor
    blobs: list[ImageDocument]


def attest(
    about: Descriptor,
    platform: Platform,
    names: Sequence[Reference],
    predicates: Sequence[Predicate],
    *,
    artifact: bool = False,
) -> Attested:
    """`about` is the manifest of an image that has these names. An `artifact` says so, and names what it is about."""
    statements = [ImageDocument(IN_TOTO, statement(about, platform, names, one)) for one in predicates]
    layers = [
        msgspec.structs.replace(document.descriptor, annotations={PREDICATE: predicate.type})
        for document, predicate in zip(statements, predicates, strict=True)
    ]
    body: dict[str, object] = {"schemaVersion": 2, "mediaType": OCI_MANIFEST}
    if artifact:
        config = ImageDocument(_EMPTY, b"{}")
        described = msgspec.to_builtins(config.descriptor) | {"data": base64.b64encode(config.body).decode()}
        subject = Descriptor(media_type=about.media_type, digest=about.digest, size=about.size)
        body |= {"artifactType": _ARTIFACT, "config": described, "layers": layers, "subject": subject}
    else:
        config = ImageDocument(OCI_CONFIG, _config(layers))
        body |= {"config": config.descriptor, "layers": layers}
    manifest = ImageDocument(OCI_MANIFEST, msgspec.json.format(msgspec.json.encode(body), indent=2))
    descriptor = msgspec.structs.replace(
        manifest.descriptor,
        platform=NOWHERE,
        annotations={REFERENCE_TYPE: "attestation-manifest", REFERENCE_DIGEST: about.digest},
    )
    return Attested(manifest, descriptor, [config, *statements])


def statement(about: Descriptor, platform: Platform, names: Sequence[Reference], predicate: Predicate) -> bytes:
    algorithm, _, value = about.digest.partition(":")
    subjects = [{"name": package_url(name, platform), "digest": {algorithm: value}} for name in names]
    return msgspec.json.encode(
        {
            "_type": STATEMENT,
            "predicateType": predicate.type,
            "subject": subjects or [{"name": "_", "digest": {algorithm: value}}],
            "predicate": msgspec.Raw(predicate.body),
        }
    )


def package_url(name: Reference, platform: Platform) -> str:
    """An image as package URLs name it: `pkg:docker/team/app@1.0?platform=linux%2Famd64`."""
    path = "/".join(quote(part, safe=":") for part in name.familiar_name.split("/"))
    return f"pkg:docker/{path}@{quote(name.tagged().tag)}?platform={quote(str(platform), safe='')}"


def _config(layers: Sequence[Descriptor]) -> bytes:
    root = {"type": "layers", "diff_ids": [layer.digest for layer in layers]}
    return msgspec.json.encode({"architecture": "unknown", "os": "unknown", "config": {}, "rootfs": root})
