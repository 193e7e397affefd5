"""Entries of the cache that go, and their order."""

import asyncio

import pytest
from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.cache import prune
from husk.builder.cache.cache import BuildCache
from husk.builder.cache.prune import CachePruner
from husk.builder.solver.interfaces import Record
from husk.config import CacheRule
from husk.engine.images.store import Pins
from husk.engine.model.clock import now_ns
from husk.engine.model.filters import Filters
from husk.errors import Conflict, InvalidParameter
from husk.storage.state.store import StateStore
from tests.unit.builder.cache.test_cache import Diffs, Layers

HOUR = 3600 * 10**9


@pytest.fixture
def diffs():
    return Diffs()


@pytest.fixture
async def cache(tmp_path, diffs):
    """Two chains: a ← b ← c, and the mirror of a context."""
    store = StateStore.open(tmp_path / "state.db")
    cache = await BuildCache.open(store, diffs, Pins(), Layers())
    # Those that no record names are removed at a start.
    diffs.sizes |= Diffs(a=100, b=10, c=1, m=1000).sizes
    await cache.remember(["a"], Record("a", ["diff:a"], ["diff:a"], "mount / from exec make"))
    await cache.remember(["b"], Record("b", ["diff:a diff:b"], ["diff:b"]))
    await cache.remember(["c"], Record("c", ["diff:a diff:b diff:c"], ["diff:c"]))
    await cache.remember(["m"], Record("m", ["diff:m"], ["diff:m"], "local source for context", "source.local"))
    for kept, hours in zip(cache, (1, 2, 3, 4), strict=True):
        kept.last_used = now_ns() - hours * HOUR
    yield cache
    store.close()


class Mounts:
    """No cache mounts, unless a test adds one."""

    def __init__(self):
        self.there = []
        self.busy = False

    async def items(self):
        return list(self.there)

    async def remove(self, name):
        if self.busy:
            raise Conflict("in use")
        self.there = []
        return 5


@pytest.fixture
def mounts():
    return Mounts()


@pytest.fixture
def pruner(cache, mounts):
    return CachePruner(cache, mounts, lambda: {"diff:c"})


def ids(pruned):
    return [item.id for item in pruned.items]


async def test_all_goes_from_the_outside(pruner):
    pruned = await pruner.prune(Filters(), all=True)
    assert ids(pruned) == ["m", "c", "b", "a"]
    assert pruned.freed == 1111


async def test_without_all_what_images_share_stays_with_what_it_lies_on(pruner):
    assert ids(await pruner.prune(Filters(), all=False)) == ["m"]


async def test_as_much_as_is_to_be_kept_stays(pruner, cache):
    assert ids(await pruner.prune(Filters(), all=True, keep=110)) == ["m", "c"]
    assert {kept.id for kept in cache} == {"a", "b"}


async def test_what_is_in_use_stays(pruner, cache):
    cache.hold(Record("b", []))
    assert ids(await pruner.prune(Filters(), all=True)) == ["m", "c"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"id": ["b"]}, ["b"]),
        ({"type": ["source.local"]}, ["m"]),
        ({"description": ["make"]}, ["a"]),
        ({"until": ["210m"]}, ["m"]),
        ({"unused-for": ["210m"]}, ["m"]),
        ({"shared": ["true"]}, ["c"]),
        ({"private": ["true"]}, ["a", "b", "m"]),
        ({"inuse": ["true"]}, []),
        ({"mutable": ["true"]}, ["m"]),
        ({"parent": ["b"]}, ["c"]),
    ],
)
async def test_filters(pruner, filters, found):
    assert sorted(item.id for item in await pruner.items(Filters(filters))) == found


@pytest.mark.parametrize("filters", [{"until": ["x"]}, {"type": ["a", "b"]}, {"inuse": ["perhaps"]}])
async def test_bad_filters_are_refused(pruner, filters):
    with pytest.raises(InvalidParameter):
        await pruner.items(Filters(filters))


@pytest.mark.parametrize("busy", [False, True])
async def test_cache_mounts_are_pruned_too(pruner, mounts, busy):
    item = (await pruner.items(Filters({"id": ["m"]})))[0]
    mounts.there = [structs.replace(item, id="mount", type="exec.cachemount", size=5)]
    mounts.busy = busy
    pruned = await pruner.prune(Filters({"type": ["exec.cachemount"]}), all=True)
    assert (ids(pruned), pruned.freed) == (([], 0) if busy else (["mount"], 5))


async def test_rules_are_applied_one_after_the_other(pruner):
    rules = [
        CacheRule(types=("source.local",), unused_for="1h"),
        CacheRule(unused_for="10h"),
        CacheRule(keep=110, all=True),
    ]
    assert ids(await pruner.collect(rules)) == ["m", "c"]


async def test_the_rules_of_a_daemon_keep_what_is_young_and_little(pruner):
    assert ids(await pruner.collect(prune.default_rules(1 << 30))) == []
    assert ids(await pruner.collect(prune.default_rules(100))) == ["m", "c", "b"]


async def test_what_is_less_than_all_rules_keep_is_not_looked_through(cache, mounts):
    def asked():
        raise AssertionError("the records are looked through")

    pruner = CachePruner(cache, mounts, asked)
    assert ids(await pruner.collect([CacheRule(keep=1111), CacheRule(keep=2000, all=True)])) == []
    with pytest.raises(AssertionError):
        await pruner.collect([CacheRule(keep=1110)])


async def test_of_many_records_as_few_are_looked_at_as_go(cache, diffs, mounts):
    """This follows every build."""
    many = 2000
    diffs.sizes |= {f"diff:{number}": 1 for number in range(many)}
    for number in range(many):
        await cache.remember([f"{number}"], Record(f"{number}", [f"diff:{number}"], [f"diff:{number}"]))
    looked_at, sized, asked = [], [], []
    size = diffs.size

    class Shared(frozenset):
        """No diff is shared; those that this is asked of are looked at."""

        def __contains__(self, diff):
            looked_at.append(diff)
            return False

    def note_size(element):
        sized.append(element)
        return size(element)

    def shared():
        asked.append("shared")
        return Shared()

    diffs.size = note_size
    pruner = CachePruner(cache, mounts, shared)
    total = cache.total()
    assert total == 1111 + many

    assert ids(await pruner.collect(prune.default_rules(1 << 30))) == []
    assert (looked_at, sized, asked) == ([], [], [])
    # More than rules keep, but nothing as old as they want it.
    assert ids(await pruner.collect([CacheRule(types=("source.local",), unused_for="48h", keep=1)])) == []
    assert (looked_at, sized, asked) == ([], [], [])
    assert ids(await pruner.collect([CacheRule(keep=total - 1001), CacheRule(keep=total - 1001, all=True)])) == [
        "m",
        "c",
    ]
    assert looked_at == ["diff:m", "diff:c"]
    assert asked == ["shared"]


async def test_others_have_their_turn_while_many_are_looked_at(cache, diffs, mounts):
    diffs.sizes |= {f"diff:{number}": 1 for number in range(500)}
    for number in range(500):
        await cache.remember([f"{number}"], Record(f"{number}", [f"diff:{number}"], [f"diff:{number}"]))
    pruner = CachePruner(cache, mounts, diffs.all)  # all are shared: none may go
    turns = 0
    pruning = Tasks().spawn(pruner.collect([CacheRule(keep=1)]), "collect", awaited=True)
    while not pruning.done():
        turns += 1
        await asyncio.sleep(0)
    assert ids(await pruning) == []
    assert turns >= 5


async def test_what_others_come_to_lie_on_meanwhile_stays(cache, diffs, mounts):
    """The mirror is the oldest; while it goes somebody builds on the next."""

    remove = diffs.remove

    async def and_build(elements):
        await remove(elements)
        if "diff:new" not in diffs.sizes:
            diffs.sizes["diff:new"] = 1
            await cache.remember(["n"], Record("n", ["diff:a diff:b diff:c diff:new"], ["diff:new"]))

    diffs.remove = and_build
    pruned = await CachePruner(cache, mounts, set).collect([CacheRule(keep=1, unused_for="1h")])
    assert ids(pruned) == ["m"]
