"""Statements of others about an image: only about its own platform, only of the wanted types, only what is here."""

import json

import pytest

from husk.engine.images.attestations import IN_TOTO, attestations_of
from husk.engine.images.index import ATTESTATION, ImageIndex, IndexEntry
from husk.errors import SystemFault
from tests.support.but import but
from tests.support.machine import FOREIGN
from tests.support.registry import digest_of, make_image, tar_of
from tests.support.shelf import Shelf

OWN = make_image([tar_of({"base": b"1"})])
OTHER = make_image([tar_of({"top": b"2"})], architecture=FOREIGN)
SBOM, PROVENANCE = "https://spdx.dev/Document", "https://slsa.dev/provenance/v1"


async def attach(
    shelf: Shelf, index: ImageIndex, about: str, *statements: tuple[str, bytes], here: bool = True
) -> ImageIndex:
    """The index with an attestation manifest with these statements, and a layer of another kind among them."""
    layers = [
        {"mediaType": IN_TOTO, "digest": await shelf.blobs.put(body), "size": len(body),
         "annotations": {"in-toto.io/predicate-type": predicate}}
        for predicate, body in statements
    ] + [{"mediaType": "text/plain", "digest": digest_of(b"x"), "size": 1}]  # fmt: skip
    config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(b"{}"), "size": 2}
    manifest = json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode()
    blobs = [digest_of(body) for _, body in statements] if here else []
    digest = await shelf.blobs.put(manifest)
    entry = IndexEntry(digest=digest, size=len(manifest), kind=ATTESTATION, about=about, blobs=blobs)
    return but(index, manifests=[*index.manifests, entry])


async def test_statements_about_the_platform_that_was_asked_for(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    index = await attach(shelf, index, OWN.digest, (SBOM, b'{"a": 1}'), (PROVENANCE, b'{"b": 2}'))
    index = await attach(shelf, index, OTHER.digest, (SBOM, b'{"c": 3}'))
    index = await attach(shelf, index, OWN.digest, (SBOM, b'{"d": 4}'), here=False)
    image = shelf.catalog.find("app:1")
    found = await attestations_of(image, index, (), False, shelf.store)
    assert [(one.predicate_type, one.statement) for one in found] == [(SBOM, None), (PROVENANCE, None)]
    (sbom,) = await attestations_of(image, index, [SBOM], True, shelf.store)
    assert (sbom.statement, sbom.descriptor.digest) == (b'{"a": 1}', digest_of(b'{"a": 1}'))
    assert await attestations_of(image, index, ["https://else.where"], True, shelf.store) == []


async def test_an_image_without_an_index_has_none(shelf: Shelf) -> None:
    assert await attestations_of(await shelf.add(OWN, "app:1"), None, (), True, shelf.store) == []


async def test_a_statement_that_would_break_the_answer_is_an_error(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    index = await attach(shelf, index, OWN.digest, (SBOM, b"\xff no json"))
    image = shelf.catalog.find("app:1")
    assert len(await attestations_of(image, index, (), False, shelf.store)) == 1
    with pytest.raises(SystemFault, match="is no JSON"):
        await attestations_of(image, index, (), True, shelf.store)
