"""The cache of builds, with a real store of records and a double of the diffs."""

import random

import pytest

from husk.builder.cache.cache import BuildCache
from husk.builder.solver.interfaces import Record
from husk.engine.images.store import Pins
from husk.storage.state.store import StateStore


class Diffs:
    def __init__(self, **sizes):
        self.sizes = {f"diff:{name}": size for name, size in sizes.items()}
        self.layers = {"layer:sha256:base"}
        self.removed = []

    def has(self, element):
        return element in self.sizes or element in self.layers

    def size(self, element):
        return self.sizes.get(element, 0)

    def all(self):
        return list(self.sizes)

    async def remove(self, elements):
        for element in elements:
            del self.sizes[element]
            self.removed.append(element)


class Layers:
    def __init__(self, *all):
        self.all = set(all)
        self.released = []

    async def add(self, chain_ids):
        self.all.update(chain_ids)

    async def release(self, chain_ids):
        self.released += chain_ids
        self.all.difference_update(chain_ids)


@pytest.fixture
def state(tmp_path):
    store = StateStore.open(tmp_path / "state.db")
    yield store
    store.close()


@pytest.fixture
def diffs():
    return Diffs(a=10, b=20)


@pytest.fixture
def pins():
    return Pins()


@pytest.fixture
def layers():
    return Layers()


@pytest.fixture
async def cache(state, diffs, pins, layers):
    # Those that no record names are removed at a start.
    sizes, diffs.sizes = diffs.sizes, {}
    cache = await BuildCache.open(state, diffs, pins, layers)
    diffs.sizes = sizes
    return cache


BELOW = Record("below", ["layer:sha256:base diff:a"], ["diff:a"], "mount / from exec make")
ABOVE = Record("above", ["layer:sha256:base diff:a diff:b"], ["diff:b"])


async def test_a_record_is_found_by_each_of_its_keys(cache):
    await cache.remember(["k1", "k2"], BELOW)
    await cache.remember(["k3"], BELOW)
    assert [await cache.find(key) for key in ("k1", "k2", "k3", "k4")] == [BELOW, BELOW, BELOW, None]


async def test_a_record_has_so_many_keys_and_no_more(cache):
    for number in range(200):
        await cache.remember([f"k{number}"], BELOW)
    assert [bool(await cache.find(f"k{number}")) for number in (0, 7, 8, 99, 100, 199)] == [
        True, True, False, False, True, True,
    ]  # fmt: skip


async def test_a_record_is_not_found_while_a_layer_of_its_image_is_away(cache, diffs):
    await cache.remember(["k"], BELOW)
    diffs.layers.clear()
    assert await cache.find("k") is None
    diffs.layers.add("layer:sha256:base")
    assert await cache.find("k") == BELOW


async def test_the_next_daemon_finds_it(cache, state, diffs, pins, layers):
    await cache.remember(["k"], BELOW)
    await cache.remember(["l"], ABOVE)
    await state.settle()  # what is written later is behind it
    again = await BuildCache.open(state, diffs, pins, layers)
    assert await again.find("k") == BELOW
    assert diffs.removed == []


async def test_a_record_whose_diff_is_lost_goes_at_the_start(cache, state, diffs, pins, layers):
    await cache.remember(["k"], BELOW)
    await cache.remember(["l"], ABOVE)
    await state.settle()
    del diffs.sizes["diff:a"]
    again = await BuildCache.open(state, diffs, pins, layers)
    assert list(again) == []
    assert diffs.removed == ["diff:b"], "no record names it any more"
    assert state.load("build-record") == {}


async def test_a_diff_without_a_record_goes_at_the_start(state, diffs, pins, layers):
    await BuildCache.open(state, diffs, pins, layers)
    assert sorted(diffs.removed) == ["diff:a", "diff:b"]


async def test_what_is_held_pins_its_layers_and_stays(cache, pins):
    await cache.remember(["k"], BELOW)
    (kept,) = cache
    cache.hold(BELOW)
    assert "sha256:base" in pins
    assert cache.in_use(kept)
    assert await cache.remove(kept.id) is None
    cache.release(BELOW)
    assert "sha256:base" not in pins
    assert await cache.remove(kept.id) == 10
    assert await cache.find("k") is None


async def test_a_diff_that_another_record_names_stays(cache, diffs):
    await cache.remember(["k"], BELOW)
    await cache.remember(["l"], ABOVE)
    await cache.remove("below")
    assert diffs.removed == []
    assert await cache.find("l") == ABOVE


async def test_what_it_tells(cache):
    await cache.remember(["k"], BELOW)
    await cache.remember(["l"], ABOVE)
    above = next(kept for kept in cache if kept.id == "above")
    assert cache.parents(above) == ["below"]
    assert cache.size(above) == 20
    assert cache.description_of("diff:a") == "mount / from exec make"
    assert cache.made_at("diff:b") == above.created
    assert cache.made_at("diff:c") is None


async def test_uses_are_counted_and_kept(cache, state, diffs, pins, layers):
    await cache.remember(["k"], BELOW)
    cache.hold(BELOW)
    cache.release(BELOW)
    cache.save_uses([BELOW])
    await state.settle()
    (kept,) = await BuildCache.open(state, diffs, pins, layers)
    assert kept.uses == 1


async def test_what_was_given_to_one_build_is_forgotten_with_it(cache, diffs):
    await cache.remember(["k"], BELOW)
    await cache.remember(["c"], Record("context", ["diff:b"], ["diff:b"], "local source for context", "source.local"))
    await cache.forget("diff:b")
    assert [kept.id for kept in cache] == ["below"]
    assert diffs.removed == ["diff:b"]
    await cache.forget("diff:b")


async def test_what_was_given_and_never_used_goes_too(cache, diffs):
    await cache.forget("diff:b")
    assert diffs.removed == ["diff:b"]


async def test_a_diff_that_nobody_uses_is_given_up_and_stays(cache, diffs):
    await cache.remember(["k"], BELOW)
    assert await cache.give_up("diff:a")
    assert await cache.find("k") is None
    assert diffs.removed == []
    assert not await cache.give_up("diff:a")


async def test_a_diff_that_is_used_or_that_others_lie_on_is_not_given_up(cache):
    await cache.remember(["k"], BELOW)
    cache.hold(BELOW)
    assert not await cache.give_up("diff:a")
    cache.release(BELOW)
    await cache.remember(["l"], ABOVE)
    assert not await cache.give_up("diff:a")
    assert await cache.find("k") == BELOW


FETCHED = Record("fetched", ["layer:sha256:base"], ["layer:sha256:base"], times={"layer:sha256:base": 5})


async def test_layers_that_were_fetched_for_a_record_stay_as_long_as_it(cache, layers):
    await cache.remember(["fetched"], FETCHED)
    assert layers.all == {"sha256:base"}
    assert cache.made_at("layer:sha256:base") == cache.created(FETCHED) == 5
    await cache.remember(["above"], Record("above", ["layer:sha256:base diff:a"], ["diff:a"]))
    assert [kept.id for kept in cache if cache.is_leaf(kept)] == ["above"]
    await cache.remove("above")
    assert layers.released == []
    await cache.remove("fetched")
    assert layers.released == ["sha256:base"]


async def test_layers_that_no_record_names_are_let_go_of_at_start(state, diffs, pins, layers):
    layers.all = {"sha256:nobodys"}
    await BuildCache.open(state, diffs, pins, layers)
    assert layers.released == ["sha256:nobodys"]


async def test_a_record_that_is_not_here_is_known_and_not_found(cache, layers):
    gone = Record("gone", ["layer:sha256:gone"], ["layer:sha256:gone"])
    await cache.remember(["gone"], gone)
    await cache.remember(["absent"], Record("absent", [], absent=True))
    assert await cache.find("gone") is await cache.find("absent") is None
    assert cache.know("gone") is gone
    assert not cache.is_whole(gone)
    assert layers.all == set()
    made = Record("gone", ["diff:a"], ["diff:a"])
    await cache.remember(["gone"], made)
    assert await cache.find("gone") is made
    assert cache.created(Record("never seen", [])) is None


async def test_what_is_counted_is_what_a_look_through_all_would_find(cache, diffs):
    """Records come, are made again with other diffs, bring what others brought, and go; layers come and go."""

    def check():
        below = {parent for kept in cache for parent in cache.parents(kept)}
        assert cache.total() == sum(cache.size(kept) for kept in cache)
        assert {kept.id for kept in cache if not cache.is_leaf(kept)} == below
        assert cache.count == len(list(cache))

    chance = random.Random(1)
    diffs.size = lambda element: diffs.sizes.get(element, 7)
    for number in range(400):
        stack = [*chance.sample(sorted(diffs.sizes), min(2, len(diffs.sizes))), "layer:sha256:base"]
        made = [f"diff:{number}", *chance.choices(stack, k=chance.randrange(2))]
        diffs.sizes[f"diff:{number}"] = number
        await cache.remember([f"{number}"], Record(f"{chance.randrange(40)}", [" ".join([*stack, *made])], made))
        check()
        diffs.layers ^= {"layer:sha256:base"} if not chance.randrange(3) else set()
        leaves = [kept.id for kept in cache if cache.is_leaf(kept)]
        if leaves and not chance.randrange(3):
            await cache.remove(chance.choice(leaves))
        check()
