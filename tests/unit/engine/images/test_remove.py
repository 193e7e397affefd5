"""Conditions of an image's removal, and what goes with it: dockerd's rules."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.remove import ImageRemover
from husk.engine.images.store import ImageStore, Pins
from husk.engine.model.container import Container
from husk.engine.model.events import Events
from husk.engine.model.image import Image
from husk.errors import Conflict, InvalidParameter, NotFound
from husk.registry.reference import parse
from husk.storage.blobs import BlobStore
from husk.storage.layers.store import LayerStore
from tests.support.but import but
from tests.unit.engine.records import container, digest, image


class FakeStore:
    """Blobs and layers by name only."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def owns(self, blob: str) -> bool:
        return blob in self.blobs()

    def blobs(self) -> set[str]:
        return set()

    async def remove(self, name: str, needed: Callable[[str], bool] = lambda name: False) -> bool:
        if needed(name):
            return False
        self.removed.append(name)
        return True


class Shelf:
    def __init__(self, catalog: ImageCatalog) -> None:
        self.catalog = catalog
        self.containers: list[Container] = []
        self.blobs, self.layers, self.pins = FakeStore(), FakeStore(), Pins()
        store = ImageStore(
            catalog,
            cast(BlobStore, self.blobs),
            cast(LayerStore, self.layers),
            containers=lambda: self.containers,
            events=Events(),
            pins=self.pins,
        )
        self.events = store.events
        self.remover = ImageRemover(store)

    async def put(self, name: str, *names: str, parent: str = "") -> Image:
        one = image(name, parent=parent)
        await self.catalog.add(one, *(parse(text) for text in names))
        return one

    async def remove(self, text: str, force: bool = False, noprune: bool = False) -> list[str]:
        return [r.untagged or r.deleted for r in await self.remover.remove(text, force, noprune)]

    async def refusal(self, text: str, force: bool = False) -> str:
        before = [(one.id, self.catalog.names(one)) for one in self.catalog]
        with pytest.raises(Conflict) as caught:
            await self.remove(text, force)
        assert [(one.id, self.catalog.names(one)) for one in self.catalog] == before
        return caught.value.message


@pytest.fixture
def shelf(catalog: ImageCatalog) -> Shelf:
    return Shelf(catalog)


def short(one: Image) -> str:
    return one.id.removeprefix("sha256:")[:12]


DIGEST = digest("in the registry")


@pytest.mark.parametrize("by_id", [False, True])
async def test_with_its_only_name_an_image_goes_with_all_it_has(shelf: Shelf, by_id: bool) -> None:
    box = await shelf.put("box", "box:1", f"box@{DIGEST}")
    removed = await shelf.remove(short(box) if by_id else "box:1")
    assert removed == ["box:1", f"box@{DIGEST}", box.id, *box.chain_ids]
    assert set(shelf.blobs.removed) == {box.id, box.manifest}
    assert shelf.layers.removed == box.chain_ids
    with pytest.raises(NotFound):
        shelf.catalog.find(box.id)


async def test_an_image_with_another_name_only_loses_this_one(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1", "box:2", f"box@{DIGEST}")
    assert await shelf.remove("box:1") == ["box:1"]
    assert shelf.catalog.find("box:2") is box
    assert shelf.catalog.find(f"box@{DIGEST}") is box


async def test_the_last_tag_of_a_repository_takes_its_digests_along(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1", f"box@{DIGEST}", "other:1")
    assert await shelf.remove("box:1") == ["box:1", f"box@{DIGEST}"]
    assert [name.familiar for name in shelf.catalog.names(box)] == ["other:1"]


async def test_a_digest_can_go_alone(shelf: Shelf) -> None:
    await shelf.put("box", "box:1", f"box@{DIGEST}")
    assert await shelf.remove(f"box@{DIGEST}") == [f"box@{DIGEST}"]


@pytest.mark.parametrize("names", [["a:1", "b:1"], ["a:1", "a:2"], ["a:1", f"b@{DIGEST}"]])
async def test_by_id_an_image_of_several_names_needs_force(shelf: Shelf, names: list[str]) -> None:
    box = await shelf.put("box", *names)
    assert await shelf.refusal(box.id) == (
        f"conflict: unable to delete {short(box)} (must be forced) - image is referenced in multiple repositories"
    )
    assert await shelf.remove(box.id, force=True) == [*names, box.id, *box.chain_ids]


async def test_an_image_without_names_goes_by_its_id(shelf: Shelf) -> None:
    box = await shelf.put("box")
    assert await shelf.remove(short(box)) == [box.id, *box.chain_ids]


async def test_a_container_keeps_the_last_name_of_its_image(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1", f"box@{DIGEST}")
    user = container(image=box.id, status="exited")
    shelf.containers = [user]
    assert await shelf.refusal("box:1") == (
        f'conflict: unable to remove repository reference "box:1" (must force) - container {user.id[:12]} '
        f"is using its referenced image {short(box)}"
    )
    assert await shelf.refusal(box.id) == (
        f"conflict: unable to delete {short(box)} (must be forced) - image is being used by stopped "
        f"container {user.id[:12]}"
    )


@pytest.mark.parametrize("by_id", [False, True])
async def test_force_takes_the_image_of_a_stopped_container_but_not_its_layers(shelf: Shelf, by_id: bool) -> None:
    box = await shelf.put("box", "box:1")
    shelf.containers = [container(image=box.id, status="exited", layers=box.chain_ids)]
    assert await shelf.remove(box.id if by_id else "box:1", force=True) == ["box:1", box.id]
    assert shelf.layers.removed == []


async def test_the_image_of_a_running_container_stays_whatever_the_force(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1")
    user = container(image=box.id, status="running")
    shelf.containers = [user]
    assert await shelf.refusal(box.id, force=True) == (
        f"conflict: unable to delete {short(box)} (cannot be forced) - image is being used by running "
        f"container {user.id[:12]}"
    )
    assert await shelf.remove("box:1", force=True) == ["box:1"]
    assert shelf.catalog.get(box.id) is box


async def test_an_image_that_others_build_on_stays(shelf: Shelf) -> None:
    base = await shelf.put("base", "base:1")
    await shelf.put("app", "app:1", parent=base.id)
    assert await shelf.refusal(base.id, force=True) == (
        f"conflict: unable to delete {short(base)} (cannot be forced) - image has dependent child images"
    )
    assert await shelf.remove("base:1") == ["base:1"]
    assert shelf.catalog.get(base.id) is base


async def test_parents_without_a_name_go_too_unless_asked_otherwise(shelf: Shelf) -> None:
    base = await shelf.put("base", "base:1")
    between = await shelf.put("between", parent=base.id)
    app = await shelf.put("app", "app:1", parent=between.id)
    assert await shelf.remove("app:1") == ["app:1", app.id, *app.chain_ids, between.id, *between.chain_ids]
    assert shelf.catalog.get(base.id) is base
    other = await shelf.put("between", parent=base.id)
    await shelf.put("app", "app:1", parent=other.id)
    await shelf.remove("app:1", noprune=True)
    assert shelf.catalog.get(other.id) is other


async def test_what_another_image_shares_is_kept(shelf: Shelf) -> None:
    first, second = await shelf.put("first", "first:1"), await shelf.put("second", "second:1")
    await shelf.catalog.add(but(second, chain_ids=first.chain_ids, manifest=first.manifest))
    assert await shelf.remove("first:1") == ["first:1", first.id]
    assert shelf.blobs.removed == [first.id]


async def test_layers_that_work_under_way_relies_on_are_kept(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1")
    async with shelf.pins.hold(box.chain_ids):
        assert await shelf.remove("box:1") == ["box:1", box.id]


@pytest.mark.parametrize("text", ["", " ", " \t\n "])
async def test_a_blank_name_is_refused(shelf: Shelf, text: str) -> None:
    with pytest.raises(InvalidParameter, match="image name cannot be blank"):
        await shelf.remove(text)


async def test_a_name_that_looks_like_an_id_is_a_name(shelf: Shelf) -> None:
    box = await shelf.put("box", "other:1")
    prefix = short(box)
    await shelf.catalog.add(box, parse(prefix + ":latest"))
    assert await shelf.remove(prefix) == [f"{prefix}:latest"]
    assert shelf.catalog.find("other:1") is box


async def test_what_went_is_an_event(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1")
    await shelf.remover.remove("box:1", False, False)
    told = [(e.action, e.actor_id) for e in shelf.events._history]
    assert told == [("untag", box.id), ("delete", box.id)]


async def test_two_who_each_remove_one_of_two_names_remove_the_image(shelf: Shelf) -> None:
    box = await shelf.put("box", "box:1", "box:2")
    both = await asyncio.gather(shelf.remove("box:1"), shelf.remove("box:2"))
    assert sorted(both[0] + both[1]) == sorted(["box:1", "box:2", box.id, *box.chain_ids])
    assert not list(shelf.catalog)


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_name_that_comes_while_an_image_goes_keeps_it(shelf: Shelf, by_id: bool) -> None:
    box = await shelf.put("box", "box:1")
    removed, _ = await asyncio.gather(
        shelf.remove(short(box) if by_id else "box:1"), shelf.catalog.add(box, parse("other:1"))
    )
    assert removed == ["box:1"]
    assert [str(name.familiar) for name in shelf.catalog.names(box)] == ["other:1"]
    assert not shelf.layers.removed and not shelf.blobs.removed
