"""`docker save`: what an archive has in it, and that what somebody removes meanwhile stays until it is written."""

import io
import json
import tarfile
from contextlib import aclosing

import pytest

from husk.engine.images.load import Loader
from husk.engine.images.remove import ImageRemover
from husk.engine.images.save import Saver
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Platform
from tests.support.but import but
from tests.support.machine import ARCHITECTURE, FOREIGN
from tests.support.registry import digest_of, make_image, tar_of
from tests.support.shelf import Shelf
from tests.support.tars import files_of

BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"2"})
OWN, OTHER = make_image([BASE]), make_image([TOP], architecture=FOREIGN)


def path(digest: str) -> str:
    return "blobs/sha256/" + digest.removeprefix("sha256:")


async def save(shelf: Shelf, *names: str, platforms: tuple[Platform, ...] = ()) -> dict[str, bytes]:
    async with aclosing(Saver(shelf.store).save(names, platforms)) as pieces:
        return files_of(b"".join([piece async for piece in pieces]))


async def test_an_archive_has_the_image_as_a_registry_knows_it_in_both_formats(shelf: Shelf) -> None:
    made = make_image([BASE, TOP])
    await shelf.add(made, "app:1", "team/app:2")
    files = await save(shelf, "app:1", "team/app:2")
    assert {name: body for name, body in files.items() if name.startswith("blobs/")} == {
        path(made.digest): made.manifest,
        **{path(digest): blob for digest, blob in made.blobs.items()},
    }
    listed = json.loads(files["index.json"])["manifests"]
    assert [entry["digest"] for entry in listed] == [made.digest] * 2
    assert [entry["annotations"]["io.containerd.image.name"] for entry in listed] == [
        "docker.io/library/app:1", "docker.io/team/app:2",
    ]  # fmt: skip
    (entry,) = json.loads(files["manifest.json"])
    assert (entry["RepoTags"], entry["Config"]) == (["app:1", "team/app:2"], path(made.config_digest))
    assert entry["Layers"] == [path(digest) for digest in made.layer_digests]
    assert json.loads(files["repositories"])["app"] == {"1": made.layer_digests[-1].removeprefix("sha256:")}
    assert [event.action for event in shelf.happened] == ["save"]


async def test_the_documents_come_before_the_layers(shelf: Shelf) -> None:
    await shelf.add(OWN, "app:1")
    async with aclosing(Saver(shelf.store).save(["app:1"])) as pieces:
        archive = b"".join([piece async for piece in pieces])
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        names = opened.getnames()
    assert names[0] == "oci-layout" and names[-1] == path(OWN.layer_digests[0])


async def test_a_repository_means_its_tags_and_an_id_no_name(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1", "app:2")
    (entry,) = json.loads((await save(shelf, "app"))["manifest.json"])
    assert entry["RepoTags"] == ["app:1", "app:2"]
    files = await save(shelf, image.id)
    (entry,) = json.loads(files["manifest.json"])
    assert entry["RepoTags"] is None and "repositories" not in files
    (entry,) = json.loads((await save(shelf, image.id[7:20], "app:1"))["manifest.json"])
    assert entry["RepoTags"] == ["app:1"]


async def test_parents_are_named_where_they_come_along(shelf: Shelf) -> None:
    below, above = await shelf.add(OWN, "below:1"), await shelf.add(make_image([BASE, TOP]), "above:1")
    await shelf.catalog.add(but(above, parent=below.id))
    both = json.loads((await save(shelf, "below:1", "above:1"))["manifest.json"])
    assert [entry.get("Parent") for entry in both] == [None, below.id]
    (alone,) = json.loads((await save(shelf, "above:1"))["manifest.json"])
    assert "Parent" not in alone


async def test_an_index_goes_out_with_what_is_here(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    files = await save(shelf, "app:1")
    assert {path(index.digest), path(OWN.digest), path(OTHER.digest), path(OTHER.layer_digests[0])} <= files.keys()
    (listed,) = json.loads(files["index.json"])["manifests"]
    assert listed["digest"] == index.digest
    (entry,) = json.loads(files["manifest.json"])
    assert entry["Config"] == path(OWN.config_digest)


async def test_one_platform_goes_out_without_the_index(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    files = await save(shelf, "app:1", platforms=(Platform(FOREIGN, "linux"),))
    assert path(index.digest) not in files and path(OWN.digest) not in files
    (listed,) = json.loads(files["index.json"])["manifests"]
    assert (listed["digest"], listed["platform"]) == (OTHER.digest, {"architecture": FOREIGN, "os": "linux"})
    files = await save(shelf, "app:1", platforms=(Platform(FOREIGN, "linux"), Platform(ARCHITECTURE, "linux")))
    assert path(index.digest) in files


async def test_an_index_whose_image_is_here_in_another_form_is_saved_as_images(shelf: Shelf) -> None:
    index = await shelf.add_index([OWN, OTHER], "app:1")
    await shelf.blobs.remove(OTHER.digest)
    files = await save(shelf, "app:1")
    assert path(index.digest) not in files
    assert len(json.loads(files["index.json"])["manifests"]) == 2


async def test_a_platform_that_is_not_here(shelf: Shelf) -> None:
    await shelf.add_index([OWN, OTHER], "app:1", here=[OWN])
    refused = rf"app:1 was found but does not provide the specified platform \(linux/{FOREIGN}\)"
    with pytest.raises(NotFound, match=refused):
        await save(shelf, "app:1", platforms=(Platform(FOREIGN, "linux"),))


async def test_what_is_wrong_is_said_before_the_first_byte(shelf: Shelf) -> None:
    await shelf.add(OWN, "app:1")
    with pytest.raises(InvalidParameter, match="no image was named"):
        await save(shelf)
    with pytest.raises(NotFound, match="No such image: app:2"):
        await anext(Saver(shelf.store).save(["app:1", "app:2"]))
    assert shelf.happened == []


async def test_an_image_removed_meanwhile_is_still_written_and_then_goes(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    async with aclosing(Saver(shelf.store).save(["app:1"])) as pieces:
        parts = [await anext(pieces)]
        await ImageRemover(shelf.store).remove("app:1", False, False, ())
        assert shelf.catalog.get(image.id) is None and image.chain_ids[0] in shelf.layers.records
        parts += [piece async for piece in pieces]
    assert files_of(b"".join(parts))[path(OWN.layer_digests[0])] == OWN.blobs[OWN.layer_digests[0]]
    assert shelf.layers.records == {} and image.id not in shelf.blobs.all()


async def test_a_client_that_goes_away_holds_nothing(shelf: Shelf) -> None:
    image = await shelf.add(OWN, "app:1")
    async with aclosing(Saver(shelf.store).save(["app:1"])) as pieces:
        await anext(pieces)
    assert image.id not in shelf.store.pins and image.chain_ids[0] not in shelf.store.pins
    assert shelf.happened == []


async def test_what_was_saved_loads_again_as_it_was(shelf: Shelf, tmp_path: object) -> None:
    own = await shelf.put_layer(BASE, "application/vnd.docker.image.rootfs.diff.tar")
    index = await shelf.add_index([OWN, OTHER], "both:1")
    async with aclosing(Saver(shelf.store).save(["both:1"])) as pieces:
        archive = b"".join([piece async for piece in pieces])
    await ImageRemover(shelf.store).remove("both:1", True, False, ())
    assert len(shelf.catalog) == 0 and own.chain_id not in shelf.store.pins

    async def arriving() -> object:
        yield archive

    await Loader(shelf.store).load(arriving(), (), False, shelf.told.append)  # type: ignore[arg-type]
    assert shelf.catalog.look_up("both:1").image_index == index
    assert digest_of(await shelf.blobs.read(index.digest)) == index.digest
