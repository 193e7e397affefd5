"""The content of an image, as others can take it over: the bytes that came, or an equal manifest over what is here."""

import json

import pytest

from husk.engine.images.content import content_of, descriptors_of, held_by, index_content, member_content
from husk.errors import NotFound
from tests.support.but import but
from tests.support.machine import FOREIGN
from tests.support.registry import compress, make_image, tar_of
from tests.support.shelf import Shelf

BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"2"})
OWN, OTHER = make_image([BASE]), make_image([TOP], architecture=FOREIGN)
GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"


async def test_a_manifest_that_came_stays_as_it_is(shelf: Shelf) -> None:
    content = await content_of(await shelf.add(OWN, "app:1"), shelf.store)
    assert (content.manifest, content.media_type, content.own) == (OWN.manifest, OWN.media_type, False)
    assert content.config == OWN.blobs[OWN.config_digest]
    assert [one.digest for one in descriptors_of(content)] == OWN.layer_digests


async def test_a_layer_that_came_earlier_in_another_compression_gets_a_manifest_of_its_own(shelf: Shelf) -> None:
    image = await shelf.add(make_image([BASE], compression="zstd"), "app:1")
    await shelf.put_layer(compress(BASE, "gzip"), GZIP)
    content = await content_of(image, shelf.store)
    assert content.own and [one.digest for one in descriptors_of(content)] == OWN.layer_digests


async def test_layers_that_were_packed_for_a_manifest_are_its_own(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    await shelf.put_layer(BASE, "application/vnd.oci.image.layer.v1.tar")
    assert (await content_of(image, shelf.store)).own
    image = but(image, packed=[await shelf.blobs.put(compress(BASE, "gzip"))])
    content = await content_of(image, shelf.store)
    assert (content.manifest, content.own) == (OWN.manifest, False)
    assert [(layer.blob, layer.media_type) for layer in content.layers] == [(OWN.layer_digests[0], GZIP)]
    await shelf.blobs.remove(image.packed[0])
    assert (await content_of(image, shelf.store)).own


@pytest.mark.parametrize("left", [b"", b'{"schemaVersion": 1}'])
async def test_a_manifest_that_is_lost_or_damaged_is_composed_anew(shelf: Shelf, left: bytes) -> None:
    image = await shelf.add(OWN, "app:1")
    await shelf.blobs.remove(OWN.digest)
    if left:
        shelf.blobs.path(OWN.digest).write_bytes(left)
    content = await content_of(image, shelf.store)
    assert content.own and json.loads(content.manifest)["config"]["digest"] == image.id


async def test_an_image_with_a_layer_missing_cannot_be_taken_over(shelf: Shelf) -> None:
    image = await shelf.add(make_image([BASE, TOP]), "app:1")
    await shelf.layers.remove(image.chain_ids[0])
    with pytest.raises(NotFound, match=r"a layer of image sha256:.* is missing"):
        await content_of(image, shelf.store)


async def test_a_member_of_an_index_is_exactly_what_the_index_names_or_nothing(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    image, entry = shelf.catalog.find("app:1"), index.manifests[0]
    content = await member_content(image, entry, shelf.store)
    assert content is not None and content.manifest == OWN.manifest and not content.own
    await shelf.put_layer(BASE, "application/vnd.oci.image.layer.v1.tar")
    assert await member_content(image, entry, shelf.store) is None
    await shelf.blobs.remove(OWN.digest)
    assert await member_content(image, entry, shelf.store) is None


async def test_an_index_has_the_images_that_are_here_and_what_is_attached_to_it(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1", here=[OWN])
    own, other = index.manifests
    index = but(index, manifests=[own, but(other, blobs=[await shelf.blobs.put(b"statement")])])
    await shelf.blobs.put(OTHER.manifest)
    whole = await index_content(index, shelf.store)
    assert whole is not None and [content.image.id for _, content in whole.images] == [OWN.config_digest]
    (attached,) = whole.attached
    assert (attached.manifest, list(attached.blobs.values())) == (OTHER.manifest, [b"statement"])
    await shelf.blobs.remove(OWN.digest)
    assert await index_content(index, shelf.store) is None


async def test_whoever_reads_an_image_holds_all_platforms_of_its_index(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    image = shelf.catalog.find("app:1")
    chain, content = held_by(image, index, shelf.store)
    assert set(chain) == set(shelf.layers.records)
    assert {index.digest, OWN.digest, OTHER.digest, OWN.config_digest, OTHER.config_digest} <= set(content)
    assert held_by(image, None, shelf.store) == (image.chain_ids, [image.id, image.manifest])
