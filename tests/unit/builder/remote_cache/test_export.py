"""Knowledge of a build about its vertices goes into a cache."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.remote_cache.chains import Chains
from husk.builder.remote_cache.export import Collector
from husk.builder.solver.interfaces import Record
from husk.registry.manifest import Descriptor
from tests.unit.builder.remote_cache.test_lookup import BASE, CONTEXT, COPIED, GRAPH, RAN, Executor, Watcher

BASED, MADE = "layer:base", "layer:base diff:copied"
FINAL = f"{MADE} diff:ran"


class Build:
    def __init__(self):
        self.records = {
            BASE.digest: Record("base", [BASED]),
            CONTEXT.digest: Record("context", ["diff:context"]),
            COPIED.digest: Record("copied", [MADE]),
            RAN.digest: Record("ran", [FINAL]),
        }
        self.fetched = []

    def known(self, digest):
        return self.records.get(digest)

    async def fetch(self, vertex, watcher):
        self.fetched.append(vertex.digest)


class Facts:
    def __init__(self):
        self.missing = set()

    def is_whole(self, record):
        return record.id not in self.missing

    def created(self, record):
        return 0


class Ref:
    graph, edge = GRAPH, RAN

    def __init__(self, build):
        self._build = build

    async def build(self):
        return self._build

    async def stack(self):
        return FINAL


async def describe(stack):
    return [Descriptor(digest=element, size=1) for element in stack.split()]


@pytest.fixture
def facts():
    return Facts()


async def collect(facts, whole=False, build=None):
    chains = Chains()
    executor: Any = Executor()
    watcher: Any = Watcher()
    ref: Any = Ref(build or Build())
    await Collector(executor, facts, watcher, chains).collect(ref, describe, whole=whole)
    return chains.document()


async def test_records_and_the_layers_that_the_result_lies_on(facts):
    document = await collect(facts)
    assert [layer.blob for layer in document.layers] == FINAL.split()
    assert [len(record.results) for record in document.records] == [0, 0, 1, 1]
    assert [len(record.inputs) for record in document.records] == [0, 0, 2, 1]


async def test_what_is_beside_the_result_goes_with_all_alone(facts):
    build = Build()
    build.records[COPIED.digest] = Record("copied", ["layer:other"])
    assert "layer:other" not in [layer.blob for layer in (await collect(facts, build=build)).layers]
    assert "layer:other" in [layer.blob for layer in (await collect(facts, whole=True, build=build)).layers]


async def test_what_is_elsewhere_is_brought_here_for_all(facts):
    facts.missing = {"copied"}
    build = Build()
    assert len((await collect(facts, build=build)).records) == 4
    assert build.fetched == []
    await collect(facts, whole=True, build=build)
    assert build.fetched == [COPIED.digest]


async def test_an_input_without_a_name_leaves_all_above_it_out(facts):
    facts.missing = {"context"}
    assert [record.inputs for record in (await collect(facts)).records] == [[]]


async def test_nothing_at_all(facts):
    chains = Chains()
    nothing: Any = SimpleNamespace(edge=None, build=lambda: _none())
    unused: Any = None
    await Collector(unused, facts, unused, chains).collect(nothing, describe, whole=True)
    assert chains.document().records == []


async def _none():
    return None
