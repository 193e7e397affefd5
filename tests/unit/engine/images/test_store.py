"""Parts of images that nobody needs: pins, users, and what is left of work that was cut off."""

from collections.abc import Callable, Iterable
from typing import cast

import pytest

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.store import ImageStore, Pins
from husk.engine.model.container import Container
from husk.engine.model.events import Events
from husk.storage.blobs import BlobStore
from husk.storage.layers.store import Layer, LayerStore
from tests.support.but import but
from tests.unit.engine.records import container, image


class FakeBlobs:
    def __init__(self) -> None:
        self.removed: list[str] = []
        self.kept: set[str] = set()

    async def remove(self, digest: str) -> None:
        self.removed.append(digest)

    async def sweep(self, kept: Iterable[str]) -> None:
        self.kept = set(kept)


class FakeLayers:
    def __init__(self, *chain: str) -> None:
        self.chain = list(chain)

    def all(self) -> list[Layer]:
        return [Layer(one, one, "", one, 0, f"blob of {one}", 0, "") for one in self.chain]

    def owns(self, blob: str) -> bool:
        return blob in self.blobs()

    def blobs(self) -> set[str]:
        return {layer.blob for layer in self.all()}

    async def remove(self, chain: str, needed: Callable[[str], bool]) -> bool:
        if chain not in self.chain or needed(chain):
            return False
        self.chain.remove(chain)
        return True


class Shelf:
    def __init__(self, catalog: ImageCatalog) -> None:
        self.blobs, self.layers = FakeBlobs(), FakeLayers("a", "b", "c")
        self.containers: list[Container] = []
        self.unreadable: set[str] = set()
        self.store = ImageStore(
            catalog,
            cast(BlobStore, self.blobs),
            cast(LayerStore, self.layers),
            containers=lambda: self.containers,
            events=Events(),
            unreadable=lambda: self.unreadable,
        )


@pytest.fixture
def shelf(catalog: ImageCatalog) -> Shelf:
    return Shelf(catalog)


async def test_a_pin_holds_as_often_as_it_was_set() -> None:
    pins = Pins()
    async with pins.hold(["a"]):
        async with pins.hold(["a", "b"]):
            assert "a" in pins and "b" in pins
        assert "a" in pins and "b" not in pins
    assert "a" not in pins
    pins.drop(["a"])
    pins.add(["a"])
    assert "a" in pins, "what was dropped too often owes nothing"


async def test_layers_go_from_the_top_and_only_if_nobody_uses_them(shelf: Shelf) -> None:
    shelf.containers = [container(layers=["a"])]
    assert await shelf.store.release(["a", "b", "c"]) == ["c", "b"]
    assert shelf.layers.chain == ["a"]


async def test_a_pinned_layer_stays(shelf: Shelf) -> None:
    async with shelf.store.pins.hold(["b"]):
        assert await shelf.store.release(["b", "c"]) == ["c"]


async def test_content_goes_unless_a_record_or_a_pin_names_it(shelf: Shelf, catalog: ImageCatalog) -> None:
    one = image("one")
    await catalog.add(one)
    async with shelf.store.pins.hold(["pinned"]):
        await shelf.store.release([], [one.manifest, "pinned", "loose", ""])
    assert shelf.blobs.removed == ["loose"]


async def test_a_start_sweeps_what_no_image_and_no_container_has(shelf: Shelf, catalog: ImageCatalog) -> None:
    one = but(image("one"), chain_ids=["a"])
    await catalog.add(one)
    shelf.containers = [container(layers=["b"])]
    await shelf.store.collect()
    assert shelf.layers.chain == ["a", "b"]
    assert shelf.blobs.kept >= {one.id, one.manifest, "blob of a", "blob of b"}
    assert "blob of c" not in shelf.blobs.kept


async def test_while_records_cannot_be_read_everything_stays(shelf: Shelf) -> None:
    shelf.unreadable = {"x"}
    assert await shelf.store.release(["a"], ["loose"]) == []
    await shelf.store.collect()
    assert shelf.layers.chain == ["a", "b", "c"] and shelf.blobs.removed == [] and shelf.blobs.kept == set()
