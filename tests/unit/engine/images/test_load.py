"""`docker load`: which images an archive gives, under which names, and what stays of one that is wrong."""

import asyncio
import json
import lzma
import tarfile
from collections.abc import AsyncIterator, Mapping

import pytest

from husk.aio.tasks import Tasks
from husk.engine.images.load import Loader
from husk.engine.images.make import chain_ids
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Platform
from tests.support.archives import member, write
from tests.support.but import but
from tests.support.machine import ARCHITECTURE, FOREIGN
from tests.support.registry import Image, compress, digest_of, make_image, make_index, tar_of
from tests.support.shelf import Shelf

BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"2"})


def path(digest: str) -> str:
    return "blobs/sha256/" + digest.removeprefix("sha256:")


def layout(*images: Image, name: str = "") -> dict[str, bytes]:
    """The files of an OCI layout: one image, or an index over several."""
    files = {path(digest): blob for image in images for digest, blob in image.blobs.items()}
    files |= {path(image.digest): image.manifest for image in images}
    body, media_type = (images[0].manifest, images[0].media_type) if len(images) == 1 else make_index(images)
    files[path(digest_of(body))] = body
    entry = {"mediaType": media_type, "digest": digest_of(body), "size": len(body)}
    if name:
        entry["annotations"] = {"io.containerd.image.name": name}
    return files | {"index.json": json.dumps({"manifests": [entry]}).encode()}


def docker(config: bytes, layers: Mapping[str, bytes], *tags: str, **more: str) -> dict[str, bytes]:
    """The files of Docker's own format, its list last, as old versions wrote it."""
    listed = [{"Config": "c.json", "RepoTags": list(tags), "Layers": list(layers), **more}]
    return {**layers, "c.json": config, "manifest.json": json.dumps(listed).encode()}


def config_of(image: Image) -> bytes:
    return image.blobs[image.config_digest]


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 1000):
        yield data[at : at + 1000]


async def load(shelf: Shelf, files: Mapping[str, bytes], *platforms: Platform, quiet: bool = False) -> None:
    try:
        await Loader(shelf.store).load(pieces(tar_of(files)), platforms, quiet, shelf.told.append)
    finally:
        assert shelf.layers.staged == set(), "layers that nobody took are still on the disk"
        assert not any(digest in shelf.store.pins for digest in (*shelf.layers.records, *shelf.blobs.all()))


async def test_an_archive_brings_its_image_byte_for_byte(shelf: Shelf) -> None:
    made = make_image([BASE, TOP])
    await load(shelf, layout(made, name="docker.io/library/app:1"))
    image = shelf.catalog.find("app:1")
    assert (image.id, image.manifest) == (made.config_digest, made.digest)
    assert image.chain_ids == chain_ids([digest_of(BASE), digest_of(TOP)])
    assert await shelf.blobs.read(made.digest) == made.manifest
    assert shelf.lines == "Loaded image: app:1\n"
    assert [(event.action, event.actor_id) for event in shelf.happened] == [("load", image.id)]


async def test_a_compressed_archive_is_read_as_well(shelf: Shelf) -> None:
    archive = compress(tar_of(layout(make_image([BASE]), name="a:1")), "gzip")
    await Loader(shelf.store).load(pieces(archive), (), True, shelf.told.append)
    assert len(shelf.catalog) == 1


async def test_progress_is_for_those_who_want_it(shelf: Shelf) -> None:
    big = tar_of({"big": bytes(4000)})
    await load(shelf, layout(make_image([big], compression="none"), name="a:1"), quiet=True)
    assert shelf.statuses == [] and shelf.lines == "Loaded image: a:1\n"
    await load(shelf, layout(make_image([tar_of({"x": bytes(4000)})], compression="none")))
    assert set(shelf.statuses) == {"Loading layer"}


async def test_an_image_without_a_name_is_told_by_its_id(shelf: Shelf) -> None:
    made = make_image([BASE])
    await load(shelf, layout(made))
    assert shelf.lines == f"Loaded image ID: {made.config_digest}\n"


async def test_a_name_moves_and_the_client_hears_of_it(shelf: Shelf) -> None:
    old = await shelf.add(make_image([BASE]), "app:1")
    await load(shelf, layout(make_image([TOP]), name="docker.io/library/app:1"))
    assert shelf.catalog.find("app:1").id != old.id
    assert f"The image app:1 already exists, renaming the old one with ID {old.id} to empty string" in shelf.lines
    await load(shelf, layout(make_image([TOP]), name="docker.io/library/app:1"))
    assert shelf.lines.count("already exists") == 1


async def test_dockers_format_with_links_to_equal_layers(shelf: Shelf) -> None:
    made = make_image([BASE, BASE])
    files = docker(config_of(made), {"one/layer.tar": BASE, "two/layer.tar": b""}, "app:1")
    members = [(member(name), body) for name, body in files.items() if name != "two/layer.tar"]
    members.insert(1, (member("two/layer.tar", type=b"2", linkname="../one/layer.tar"), b""))
    await Loader(shelf.store).load(pieces(write(*members)), (), False, shelf.told.append)
    image = shelf.catalog.find("app:1")
    assert len(set(image.chain_ids)) == 2 and shelf.layers.staged == set()


async def test_links_in_a_circle_name_no_layer(shelf: Shelf) -> None:
    files = docker(config_of(make_image([BASE])), {"one": b""}, "app:1")
    members = [(member(name), body) for name, body in files.items() if name != "one"]
    members += [(member("one", type=b"2", linkname="two"), b""), (member("two", type=b"2", linkname="one"), b"")]
    with pytest.raises(NotFound, match="the archive does not have the layer one"):
        await Loader(shelf.store).load(pieces(write(*members)), (), False, shelf.told.append)


async def test_a_layer_in_a_compression_that_registries_do_not_know_is_kept_plain(shelf: Shelf) -> None:
    await load(shelf, docker(config_of(make_image([BASE])), {"l.tar.xz": lzma.compress(BASE)}, "app:1"))
    (layer,) = shelf.layers.all()
    assert (layer.blob, layer.media_type) == (digest_of(BASE), "application/vnd.docker.image.rootfs.diff.tar")


async def test_what_is_here_already_stays_as_a_registry_knows_it(shelf: Shelf) -> None:
    made = make_image([BASE])
    known = await shelf.add(made, "app:1")
    known = but(known, parent="sha256:parent")
    await shelf.catalog.add(known)
    await load(shelf, docker(config_of(made), {"l.tar": BASE}, "app:2"))
    assert shelf.catalog.find("app:2") == known


async def test_documents_that_were_lost_come_back(shelf: Shelf) -> None:
    made = make_image([BASE])
    known = await shelf.add(made, "app:1")
    for digest in (made.digest, made.config_digest):
        await shelf.blobs.remove(digest)
    await load(shelf, layout(made, name="app:1"))
    assert await shelf.blobs.read(made.digest) == made.manifest
    assert await shelf.blobs.read(made.config_digest) == config_of(made)
    assert shelf.catalog.find("app:1").manifest == known.manifest


async def test_an_image_whose_manifest_is_lost_gets_one_over_what_is_here(shelf: Shelf) -> None:
    made = make_image([BASE])
    known = await shelf.add(made, "app:1")
    await shelf.catalog.add(but(known, last_tagged="2026-01-01T00:00:00Z"))
    await shelf.blobs.remove(made.digest)
    await load(shelf, docker(config_of(made), {"l.tar": BASE}, "app:1"))
    image = shelf.catalog.find("app:1")
    assert image.last_tagged == "2026-01-01T00:00:00Z" and shelf.blobs.has(image.manifest)


async def test_a_damaged_layer_is_made_anew(shelf: Shelf) -> None:
    made = make_image([BASE])
    image = await shelf.add(made, "app:1")
    shelf.layers.damaged.update(image.chain_ids)
    await load(shelf, layout(made, name="app:1"))
    assert shelf.layers.damaged == set()


async def test_a_layer_that_is_here_below_another_parent_is_made_from_its_blob(shelf: Shelf) -> None:
    await shelf.add(make_image([TOP]), "other:1")
    made = make_image([BASE, TOP])
    await load(shelf, layout(made, name="app:1"))
    assert all(chain in shelf.layers.records for chain in shelf.catalog.find("app:1").chain_ids)


async def test_an_index_comes_with_all_its_platforms_or_with_those_that_were_asked_for(shelf: Shelf) -> None:
    both = make_image([BASE]), make_image([TOP], architecture=FOREIGN)
    await load(shelf, layout(*both, name="docker.io/library/app:1"), Platform(FOREIGN, "linux"))
    index = shelf.catalog.look_up("app:1").image_index
    assert index is not None and index.images == [both[1].config_digest] and not index.complete
    await load(shelf, layout(*both, name="docker.io/library/app:1"))
    index = shelf.catalog.look_up("app:1").image_index
    assert index is not None and index.complete


async def test_a_platform_that_the_archive_does_not_have(shelf: Shelf) -> None:
    files = docker(config_of(make_image([BASE])), {"l.tar": BASE}, "app:1")
    refused = rf"requested platform \(linux/{FOREIGN}\) not found: the image is for linux/{ARCHITECTURE}"
    with pytest.raises(NotFound, match=refused):
        await load(shelf, files, Platform(FOREIGN, "linux"))
    assert len(shelf.catalog) == 0 and shelf.layers.records == {}


async def test_the_images_of_a_build_keep_their_parents(shelf: Shelf) -> None:
    below, above = make_image([BASE]), make_image([BASE, TOP])
    listed = [
        {"Config": path(below.config_digest), "Layers": [path(below.layer_digests[0])]},
        {"Config": path(above.config_digest), "Layers": [path(one) for one in above.layer_digests],
         "Parent": below.config_digest},
    ]  # fmt: skip
    files = {path(digest): blob for digest, blob in {**below.blobs, **above.blobs}.items()}
    await load(shelf, files | {"manifest.json": json.dumps(listed).encode()})
    image = shelf.catalog.get(above.config_digest)
    assert image is not None and image.parent == below.config_digest


async def test_a_parent_whose_history_disagrees_is_none(shelf: Shelf) -> None:
    other, above = make_image([TOP]), make_image([BASE, TOP, tar_of({})])
    listed = [
        {"Config": path(other.config_digest), "Layers": [path(other.layer_digests[0])]},
        {"Config": path(above.config_digest), "Layers": [path(one) for one in above.layer_digests],
         "Parent": other.config_digest},
    ]  # fmt: skip
    files = {path(digest): blob for digest, blob in {**other.blobs, **above.blobs}.items()}
    await load(shelf, files | {"manifest.json": json.dumps(listed).encode()})
    image = shelf.catalog.get(above.config_digest)
    assert image is not None and image.parent == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files, made: files.pop(path(made.config_digest)), "does not have the configuration"),
        (lambda files, made: files.pop(path(made.layer_digests[0])), "does not have the layer"),
        (lambda files, made: files.update({path(made.layer_digests[0]): compress(TOP, "gzip")}), "verification failed"),
        (lambda files, made: files.update({path(made.config_digest): b'{"os":"linux"}'}), "has the digest sha256:"),
        (lambda files, made: files.update({path(made.digest): made.manifest + b" "}), "has the digest sha256:"),
    ],
)
async def test_an_archive_with_a_file_missing_or_changed_leaves_nothing(
    shelf: Shelf, change: object, message: str
) -> None:
    made = make_image([BASE])
    files = layout(made, name="app:1")
    change(files, made)  # type: ignore[operator]
    with pytest.raises((InvalidParameter, NotFound), match=message):
        await load(shelf, files)
    assert (len(shelf.catalog), shelf.layers.records, shelf.happened) == (0, {}, [])


async def test_layers_that_are_not_those_of_the_configuration(shelf: Shelf) -> None:
    files = docker(config_of(make_image([BASE])), {"l.tar": TOP}, "app:1")
    with pytest.raises(InvalidParameter, match=r"invalid diffID for layer l\.tar"):
        await load(shelf, files)
    with pytest.raises(InvalidParameter, match="layers length mismatch: expected 1, got 2"):
        await load(shelf, docker(config_of(make_image([BASE])), {"l.tar": BASE, "m.tar": TOP}, "app:1"))
    assert (len(shelf.catalog), shelf.layers.records) == (0, {})


async def test_a_second_image_that_fails_takes_only_its_own_with_it(shelf: Shelf) -> None:
    good, bad = make_image([BASE]), make_image([BASE, TOP])
    listed = [
        {"Config": path(good.config_digest), "RepoTags": ["good:1"], "Layers": [path(good.layer_digests[0])]},
        {"Config": path(bad.config_digest), "Layers": [path(bad.layer_digests[0]), "nowhere"]},
    ]
    files = {path(digest): blob for digest, blob in {**good.blobs, **bad.blobs}.items()}
    with pytest.raises(NotFound, match="does not have the layer nowhere"):
        await load(shelf, files | {"manifest.json": json.dumps(listed).encode()})
    assert list(shelf.layers.records) == shelf.catalog.find("good:1").chain_ids
    assert bad.config_digest not in shelf.blobs.all()


@pytest.mark.parametrize("archive", [b"", b"no tar at all" * 100, tar_of({"a": b"{}"}), tar_of({"x": b"1"})[:700]])
async def test_what_is_no_archive_of_images_is_refused(shelf: Shelf, archive: bytes) -> None:
    with pytest.raises(InvalidParameter):
        await Loader(shelf.store).load(pieces(archive), (), False, shelf.told.append)


async def test_documents_have_an_end(shelf: Shelf) -> None:
    loader, archive = Loader(shelf.store, 1000), tar_of({f"{number}.json": b"{" + bytes(400) for number in range(3)})
    with pytest.raises(InvalidParameter, match="more than 64 MiB of documents"):
        await loader.load(pieces(archive), (), False, shelf.told.append)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE])
async def test_names_of_files_and_links_have_an_end_too(shelf: Shelf, kind: bytes) -> None:
    data = b"{}" if kind == tarfile.REGTYPE else b""
    archive = write(*((member(f"{number}{'n' * 900}", type=kind, linkname="there"), data) for number in range(100)))
    with pytest.raises(InvalidParameter, match="more than 64 MiB of documents and names"):
        await Loader(shelf.store, 100_000).load(pieces(archive), (), False, shelf.told.append)


async def test_others_have_their_turn_between_the_entries_of_an_archive(shelf: Shelf) -> None:
    """A few bytes that a client has compressed are megabytes of entries at once."""
    archive, turns = write(*((member(f"{number}"), b"") for number in range(2000))), 0

    async def at_once() -> AsyncIterator[bytes]:
        yield archive

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    waiting = Tasks().spawn(others(), "others")
    with pytest.raises(InvalidParameter, match="no archive of images"):
        await Loader(shelf.store).load(at_once(), (), False, shelf.told.append)
    waiting.cancel()
    assert turns >= 7


async def test_a_client_that_goes_away_leaves_nothing(shelf: Shelf) -> None:
    archive = tar_of(layout(make_image([BASE, TOP]), name="app:1"))
    half = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield archive[: len(archive) // 2]
        half.set()
        await asyncio.Event().wait()

    loading = Tasks().spawn(Loader(shelf.store).load(stalling(), (), False, shelf.told.append), "load", awaited=True)
    await half.wait()
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert (len(shelf.catalog), shelf.layers.records, shelf.layers.staged) == (0, {}, set())
