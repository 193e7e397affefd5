"""A damaged store mended: what is done for each verdict, what is said of it, and that nothing of a user is deleted."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from husk.engine import repair as module
from husk.engine.checkup import Examination
from husk.engine.images.check import ImageFindings
from husk.engine.model.volume import Volume
from husk.engine.repair import _Mender, repair
from husk.errors import SystemFault
from husk.registry.reference import parse
from husk.storage.check import Problem
from husk.storage.layers.ingest import Unpacked
from husk.storage.layers.store import Layer, LayerStore
from husk.storage.state.store import Change, StateStore
from tests.support.registry import make_image, tar_of
from tests.support.shelf import Shelf
from tests.unit.engine.records import container

BASE, TOP = tar_of({"base": b"1"}), tar_of({"top": b"2"})
AMD, ARM = make_image([BASE]), make_image([TOP], architecture="arm64")


@pytest.fixture
def shelf(tmp_path: Path, state: StateStore) -> Shelf:
    return Shelf(tmp_path, state)


async def mend(shelf: Shelf, **verdict: object) -> list[str]:
    mender = _Mender(shelf.state, shelf.blobs, cast(LayerStore, shelf.layers))
    found = Examination(verdict=ImageFindings(**verdict))  # type: ignore[arg-type]
    told = await mender.mend(found)
    shelf.catalog = mender._catalog
    return told


async def test_records_that_cannot_be_read_are_forgotten_or_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("husk.runtime.assembly.root.ContainerRoot.unmount", lambda self: None)
    state = StateStore.open(tmp_path / "state.db")
    bad = [("image", "i"), ("container", "c"), ("volume", "v")]
    await state.commit(*(Change(kind, key, b"[odd]") for kind, key in bad))
    state.close()
    (tmp_path / "containers/c/diff").mkdir(parents=True)
    (tmp_path / "containers/c/diff/file").write_text("the user's")
    (tmp_path / ".check-x").mkdir()
    told = await repair(tmp_path, Examination(unreadable=bad, scratch=[".check-x"]))
    state = StateStore.open(tmp_path / "state.db")
    assert state.load("image") == {} and state.load("container") == {}
    fresh = msgspec.json.decode(state.load("volume")["v"], type=Volume)
    state.close()
    assert fresh.name == "v" and "volume v is kept with all its files; its labels and options are lost" in told
    assert (tmp_path / "lost/container-c.json").read_bytes() == b"[odd]"
    assert [path.read_text() for path in tmp_path.glob("lost/container-c-*/diff/file")] == ["the user's"]
    assert not (tmp_path / ".check-x").exists()


async def test_what_cannot_be_put_aside_keeps_its_record(tmp_path: Path) -> None:
    state = StateStore.open(tmp_path / "state.db")
    await state.commit(Change("network", "n", b"[odd]"))
    state.close()
    (tmp_path / "lost").write_text("a file in the way")
    told = await repair(tmp_path, Examination(unreadable=[("network", "n")]))
    assert told[0].startswith("could not put aside the network n")
    state = StateStore.open(tmp_path / "state.db")
    assert list(state.load("network")) == ["n"]
    state.close()


async def test_loose_names_and_wrong_layers_are_forgotten(tmp_path: Path) -> None:
    state = StateStore.open(tmp_path / "state.db")
    await state.commit(Change("layer", "sha256:x", b"{}"), Change("image-name", "docker.io/library/a:1", b"sha256:y"))
    state.close()
    verdict = ImageFindings(wrong_layers=["sha256:x"], loose_names=["docker.io/library/a:1"])
    told = await repair(tmp_path, Examination(verdict=verdict))
    assert told == ["forgot layer sha256:x", "forgot the name docker.io/library/a:1"]


async def test_a_lost_manifest_is_composed_again(shelf: Shelf) -> None:
    image = await shelf.add(AMD, "app:1")
    shelf.blobs.path(AMD.digest).write_bytes(b"damaged")
    told = await mend(shelf, recompose=[image.id, image.id], damaged_blobs=[AMD.digest])
    assert told == [f"composed the manifest of image {image.id} again"]
    mended = shelf.catalog.find("app:1")
    assert mended.manifest != AMD.digest and shelf.blobs.size(mended.manifest) == mended.manifest_size


async def test_a_manifest_over_layers_that_are_missing_cannot_be(shelf: Shelf) -> None:
    image = await shelf.add(AMD, "app:1")
    await shelf.layers.remove(image.chain_ids[0])
    assert (await mend(shelf, recompose=[image.id]))[0].endswith("again: a layer is missing")


async def test_a_broken_image_goes_with_the_words_that_bring_it_back(shelf: Shelf) -> None:
    pulled = await shelf.add(AMD, "app:1", f"app@{AMD.digest}")
    built = await shelf.add(ARM, "own:1")
    told = await mend(shelf, broken_images={pulled.id: "its configuration is damaged", built.id: "a layer is gone"})
    assert len(shelf.catalog) == 0 and shelf.layers.records == {}
    assert "for its configuration is damaged: docker pull docker.io/library/app:1 brings it back" in told[0]
    assert "(docker.io/library/own:1), for a layer is gone: load, import or commit it again" in told[1]


async def test_one_platform_goes_and_an_index_becomes_single_images(shelf: Shelf) -> None:
    index = await shelf.add_index([AMD, ARM], "app:1")
    assert await mend(shelf, lost_members=[ARM.config_digest]) == [
        f"forgot {ARM.config_digest}, the image of one platform"
    ]
    assert await mend(shelf, dissolve=[index.digest, "sha256:gone"]) == [
        f"made single images of the image index {index.digest}"
    ]
    assert shelf.catalog.target(parse("app:1")) == AMD.config_digest


async def test_layers_are_unpacked_again_from_the_base_up(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    image = await shelf.add(make_image([BASE, TOP]), "app:1")
    order: list[str] = []

    async def unpack_again(layers: object, blobs: object, layer: Layer) -> None:
        order.append(layer.chain_id)
        if layer.parent:
            raise SystemFault("the disk is full")

    monkeypatch.setattr(module, "unpack_again", unpack_again)
    told = await mend(shelf, unpack=[*reversed(image.chain_ids), "sha256:gone"])
    assert order == image.chain_ids
    assert told[0].startswith("unpacked layer") and told[1].endswith("again: the disk is full")


class Packing:
    """The layer's directory packed again; `diff` is what comes out."""

    def __init__(self, shelf: Shelf, diff: str) -> None:
        self.renewed: list[str] = []
        self._shelf, self._diff = shelf, diff
        layers = shelf.layers
        layers.path = lambda layer: Path("/layers")  # type: ignore[attr-defined]
        layers.ingest_diff = self.ingest_diff  # type: ignore[attr-defined]
        layers.renew = self.renew  # type: ignore[attr-defined]

    async def ingest_diff(self, path: Path) -> Unpacked:
        blob = self._shelf.blobs.make_temporary()
        return Unpacked("sha256:b", 1, self._diff, 1, "", "", blob, False)

    async def renew(self, chain: str, unpacked: Unpacked) -> None:
        self.renewed.append(chain)


async def test_a_lost_blob_is_packed_again_if_that_gives_the_same_bytes(shelf: Shelf) -> None:
    image = await shelf.add(AMD, "app:1")
    same = Packing(shelf, image.diff_ids[0])
    assert (await mend(shelf, pack=image.chain_ids))[0].startswith("packed layer") and same.renewed == image.chain_ids


@pytest.mark.parametrize(
    ("names", "used", "says"),
    [
        (("app:1",), False, "no registry is known to have it"),
        (("app:1", f"app@{AMD.digest}"), True, "a container needs it"),
        (("app:1", f"app@{AMD.digest}"), False, "removed the broken image"),
    ],
)
async def test_else_an_image_that_can_still_run_stays_unless_a_registry_has_it(
    shelf: Shelf, names: tuple[str, ...], used: bool, says: str
) -> None:
    image = await shelf.add(AMD, *names)
    if used:
        record = container("box", image=image.id, layers=image.chain_ids)
        await shelf.state.commit(Change("container", record.id, msgspec.json.encode(record)))
    Packing(shelf, "sha256:another")
    [told] = await mend(shelf, pack=image.chain_ids)
    assert says in told and (len(shelf.catalog) == 0) == ("removed" in says)


async def test_leftovers_are_counted_once(shelf: Shelf) -> None:
    await shelf.put_layer(BASE, "application/vnd.oci.image.layer.v1.tar")
    leftover = Problem("layer x", "nobody uses it", "--fix", damage=False, fixable=True)
    mender = _Mender(shelf.state, shelf.blobs, cast(LayerStore, shelf.layers))
    assert await mender.mend(Examination(problems=[leftover, leftover])) == ["removed 2 things that nothing uses"]
    assert shelf.layers.records == {}
