"""The lines of `docker images --tree`: what of an image's manifests is here, and how much it takes."""

from husk.engine.images.index import ATTESTATION, IndexEntry
from husk.engine.images.manifests import manifests_of, target_of
from tests.support.but import but
from tests.support.machine import FOREIGN
from tests.support.registry import make_image, tar_of
from tests.support.shelf import Shelf
from tests.unit.engine.records import container

OWN = make_image([tar_of({"base": b"1"})] * 2)
OTHER = make_image([tar_of({"top": b"2"})], architecture=FOREIGN)


async def test_an_image_alone_has_one_manifest_its_own(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    shelf.containers = [container("of it", image=image.id), container("of another", image="sha256:x")]
    (facts,) = manifests_of(image, [], shelf.store)
    assert facts.descriptor.digest == OWN.digest == target_of(image, None).digest
    assert facts.available and facts.unpacked == image.size
    once = {digest: len(blob) for digest, blob in OWN.blobs.items()}
    assert facts.content == len(OWN.manifest) + sum(once.values()), "a layer that is there twice counts once"
    assert facts.containers == [shelf.containers[0].id]


async def test_an_index_shows_also_what_is_known_by_reference_only(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1", here=[OWN])
    statement = await shelf.blobs.put(b"statement")
    attestation = await shelf.blobs.put(b"its manifest")
    entry = IndexEntry(digest=attestation, size=12, kind=ATTESTATION, about=OWN.digest, blobs=[statement])
    index = but(index, manifests=[*index.manifests, entry])
    image = shelf.catalog.find("app:1")
    here, absent, attached = manifests_of(image, [index], shelf.store)
    assert (here.available, absent.available, attached.available) == (True, False, True)
    assert (absent.content, str(absent.platform)) == (0, f"linux/{FOREIGN}")
    assert (attached.content, attached.about) == (len(b"statement") + len(b"its manifest"), OWN.digest)
    assert target_of(image, index).digest == index.digest


async def test_an_image_with_a_name_of_its_own_comes_first_and_not_twice(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    image = shelf.catalog.find("app:1")
    await shelf.add(OWN, "alone:1")
    listed = manifests_of(image, [index], shelf.store)
    assert [facts.descriptor.digest for facts in listed] == [OWN.digest, OTHER.digest]


async def test_what_is_damaged_is_told_and_does_not_fail_the_list(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    await shelf.layers.remove(image.chain_ids[0])
    await shelf.blobs.remove(image.id)
    (facts,) = manifests_of(image, [], shelf.store)
    assert not facts.available
