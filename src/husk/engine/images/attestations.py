"""In-toto statements of others about an image, which its index names beside the platforms that it has."""

from collections.abc import Collection

import msgspec

from husk.engine.images.index import ATTESTATION, ImageIndex
from husk.engine.images.store import ImageStore
from husk.engine.model.image import Image
from husk.errors import SystemFault
from husk.registry.manifest import Descriptor, referenced
from husk.text.documents import MalformedDocument, decode

IN_TOTO = "application/vnd.in-toto+json"
PREDICATE = "in-toto.io/predicate-type"


class Attestation(msgspec.Struct, frozen=True):
    """One statement: where it is, of which type, and (if it was asked for) what it says."""

    descriptor: Descriptor
    predicate_type: str
    statement: bytes | None


async def attestations_of(
    image: Image, index: ImageIndex | None, types: Collection[str], with_statements: bool, store: ImageStore
) -> list[Attestation]:
    """The statements about one platform that are here; with `types` only those."""
    if index is None:
        return []
    manifests = {member.digest for member in index.manifests if member.image == image.id}
    found = []
    for member in index.manifests:
        if member.kind != ATTESTATION or member.about not in manifests or not member.here:
            continue
        for descriptor in referenced(await store.blobs.read(member.digest)):
            predicate = (descriptor.annotations or {}).get(PREDICATE, "")
            if descriptor.media_type == IN_TOTO and (not types or predicate in types):
                statement = await _statement(descriptor, store) if with_statements else None
                found.append(Attestation(descriptor, predicate, statement))
    return found


async def _statement(descriptor: Descriptor, store: ImageStore) -> bytes:
    """The statement as it came, which goes into an answer that must stay JSON."""
    body = await store.blobs.read(descriptor.digest)
    try:
        decode(body)
    except MalformedDocument as error:
        raise SystemFault(f"the attestation {descriptor.digest} is no JSON: {error}") from error
    return body
