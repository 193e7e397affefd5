"""`docker image prune`: which images go, and how much that frees."""

from collections.abc import Callable
from typing import cast

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.prune import Pruner
from husk.engine.images.remove import ImageRemover
from husk.engine.images.store import ImageStore
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.events import Event, Events
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image
from husk.registry.reference import parse
from husk.storage.blobs import BlobStore
from husk.storage.layers.store import Layer, LayerStore
from tests.support.but import but
from tests.unit.engine.records import container, image


class FakeBlobs:
    async def remove(self, digest: str) -> None:
        return None


class FakeLayers:
    """Every layer has ten bytes."""

    def __init__(self) -> None:
        self.chain: set[str] = set()

    def all(self) -> list[Layer]:
        return [Layer(one, one, "", one, 10, one, 0, "") for one in self.chain]

    def owns(self, blob: str) -> bool:
        return blob in self.blobs()

    def blobs(self) -> set[str]:
        return set()

    async def remove(self, chain: str, needed: Callable[[str], bool]) -> bool:
        if needed(chain):
            return False
        self.chain.discard(chain)
        return True


class Shelf:
    def __init__(self, catalog: ImageCatalog) -> None:
        self.catalog = catalog
        self.layers = FakeLayers()
        self.containers: list[Container] = []
        self.happened: list[Event] = []
        events = Events()
        events.observe(self.happened.append)
        store = ImageStore(
            catalog,
            cast(BlobStore, FakeBlobs()),
            cast(LayerStore, self.layers),
            containers=lambda: self.containers,
            events=events,
        )
        self.pruner = Pruner(store, ImageRemover(store))

    async def put(self, name: str, *names: str, parent: str = "", labels: dict[str, str] | None = None) -> Image:
        one = image(name, parent=parent, labels=labels)
        self.layers.chain.update(one.chain_ids)
        await self.catalog.add(one, *(parse(text) for text in names))
        return one

    async def prune(self, **filters: str) -> tuple[set[str], int]:
        """The images that are left, and the bytes that came free."""
        chosen = {key.replace("_not", "!"): [value] for key, value in filters.items()}
        pruned = await self.pruner.prune(Filters(chosen))
        return {one.id for one in self.catalog}, pruned.reclaimed


@pytest.fixture
def shelf(catalog: ImageCatalog) -> Shelf:
    return Shelf(catalog)


async def test_images_without_a_tag_go(shelf: Shelf) -> None:
    tagged = await shelf.put("tagged", "tagged:1")
    await shelf.put("loose")
    assert await shelf.prune() == ({tagged.id}, 10)
    assert shelf.happened[-1].action == "prune"


async def test_all_that_is_not_used_goes_when_asked_for(shelf: Shelf) -> None:
    used = await shelf.put("used", "used:1")
    await shelf.put("unused", "unused:1", "unused:2")
    shelf.containers = [container(image=used.id, layers=used.chain_ids)]
    assert await shelf.prune(dangling="false") == ({used.id}, 10)


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("named", "left"),
    [
        (["app:1"], ["app:1", f"app@{DIGEST}"]),
        (["other"], ["other:latest"]),
        (["app:2", "other:latest"], ["app:2", "other:latest", f"app@{DIGEST}"]),
        ([f"app:2@{DIGEST}"], ["app:2", f"app@{DIGEST}"]),
        ([f"app@{DIGEST}"], ["other:latest", f"app@{DIGEST}"]),
        (["0123456789ab"], ["other:latest"]),
        (["Nonsense::"], ["other:latest"]),
    ],
)
async def test_a_used_image_loses_the_names_that_no_container_was_made_from(
    shelf: Shelf, named: list[str], left: list[str]
) -> None:
    used = await shelf.put("used", "app:1", "app:2", "other:latest", f"app@{DIGEST}")
    users = [container(image=used.id, config=ContainerConfig(image=text)) for text in named]
    shelf.containers = users
    assert await shelf.prune() == ({used.id}, 0)
    assert len(shelf.catalog.names(used)) == 4
    await shelf.prune(dangling="false", label="none")
    assert len(shelf.catalog.names(used)) == 4
    assert await shelf.prune(dangling="false") == ({used.id}, 0)
    assert [name.familiar for name in shelf.catalog.names(used)] == left


async def test_what_a_container_mounts_keeps_its_name(shelf: Shelf) -> None:
    used = await shelf.put("used", "app:1", "app:2")
    user = container(image="sha256:other")
    user = but(user, mounts=[MountPoint(type="image", name="app:1", destination="/i", image_id=used.id)])
    shelf.containers = [user]
    await shelf.prune(dangling="false")
    assert [name.familiar for name in shelf.catalog.names(used)] == ["app:1"]


async def test_images_that_were_made_from_each_other_go_at_once(shelf: Shelf) -> None:
    base = await shelf.put("base", "base:1")
    child = await shelf.put("child", "child:1", parent=base.id)
    await shelf.put("grandchild", "grandchild:1", parent=child.id)
    assert await shelf.prune(dangling="false") == (set(), 30)


async def test_of_what_a_used_image_was_made_from_the_names_go(shelf: Shelf) -> None:
    base = await shelf.put("base", "base:1")
    child = await shelf.put("child", "child:1", parent=base.id)
    shelf.containers = [container(image=child.id, config=ContainerConfig(image="child:1"))]
    assert await shelf.prune(dangling="false") == ({base.id, child.id}, 0)
    assert shelf.catalog.names(base) == []
    shelf.containers = []
    assert await shelf.prune(dangling="false") == (set(), 20)


async def test_what_others_are_built_on_stays(shelf: Shelf) -> None:
    base = await shelf.put("base")
    child = await shelf.put("child", "child:1", parent=base.id)
    assert await shelf.prune() == ({base.id, child.id}, 0)


async def test_filters_choose(shelf: Shelf) -> None:
    kept = await shelf.put("kept", labels={"keep": "yes"})
    await shelf.put("going")
    assert await shelf.prune(label_not="keep") == ({kept.id}, 10)
    assert await shelf.prune(until="1970-01-01T00:00:00Z") == ({kept.id}, 0)
