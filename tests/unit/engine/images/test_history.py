"""`docker history`: which step added what, and which of them are images."""

from husk.engine.images.catalog import ImageCatalog
from husk.engine.images.history import UNKNOWN, history_of
from husk.engine.model.image import HistoryEntry, Image
from husk.registry.reference import parse
from husk.storage.layers.store import Layer
from tests.support.but import but
from tests.unit.engine.records import image

LAYERS = {"base": 10, "top": 5}


def layer(chain: str) -> Layer | None:
    return Layer(chain, chain, "", chain, LAYERS[chain], "", 0, "") if chain in LAYERS else None


async def put(catalog: ImageCatalog, name: str, chain: list[str], steps: list[HistoryEntry], parent: str = "") -> Image:
    one = but(image(name, parent=parent), chain_ids=chain, history=steps)
    await catalog.add(one, parse(f"{name}:1"))
    return one


FIRST, EMPTY, LAST = (
    HistoryEntry(created_by="ADD x"),
    HistoryEntry(created_by="ENV A=1", empty_layer=True),
    HistoryEntry(comment="c"),
)


async def test_the_newest_step_is_first_and_empty_ones_add_nothing(catalog: ImageCatalog) -> None:
    one = await put(catalog, "one", ["base", "top"], [FIRST, EMPTY, LAST])
    steps = history_of(one, catalog, layer)
    assert [(step.created_by, step.comment, step.size) for step in steps] == [
        ("", "c", 5), ("ENV A=1", "", 0), ("ADD x", "", 10),
    ]  # fmt: skip
    assert [step.id for step in steps] == [one.id, UNKNOWN, UNKNOWN]


async def test_steps_are_images_as_far_as_parents_are_known(catalog: ImageCatalog) -> None:
    base = await put(catalog, "base", ["base"], [FIRST])
    top = await put(catalog, "top", ["base", "top"], [FIRST, LAST], parent=base.id)
    steps = history_of(top, catalog, layer)
    assert [(step.id, step.tags) for step in steps] == [(top.id, ["top:1"]), (base.id, ["base:1"])]


async def test_a_parent_is_the_newest_step_that_it_has_itself(catalog: ImageCatalog) -> None:
    base = await put(catalog, "base", ["base"], [FIRST])
    top = await put(catalog, "top", ["base", "top"], [FIRST, EMPTY, LAST], parent=base.id)
    assert [step.id for step in history_of(top, catalog, layer)] == [top.id, UNKNOWN, base.id]


async def test_parents_that_cannot_be_end_the_search(catalog: ImageCatalog) -> None:
    one = await put(catalog, "one", ["base"], [FIRST])
    one = but(one, parent=one.id)
    await catalog.add(one)
    assert [step.id for step in history_of(one, catalog, layer)] == [one.id]
    none = await put(catalog, "none", ["base"], [], parent=one.id)
    assert history_of(none, catalog, layer) == []


async def test_more_steps_than_layers_are_shown_all_the_same(catalog: ImageCatalog) -> None:
    one = await put(catalog, "one", ["base"], [FIRST, LAST])
    assert [step.size for step in history_of(one, catalog, layer)] == [0, 10]
