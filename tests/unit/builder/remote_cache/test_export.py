"""Knowledge of a build about its vertices goes into a cache."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.graph.op_digests import record_digest
from husk.builder.remote_cache import config
from husk.builder.remote_cache.export import ChainLink, Chains, Collector
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


CHAINS_BASE, MORE = Descriptor(digest="sha256:a", size=1), Descriptor(digest="sha256:b", size=2)


def test_records_with_their_inputs_and_layers():
    chains = Chains()
    base, files = chains.source("sha256:image"), chains.content("sha256:files")
    step = chains.operation("sha256:op", 0, [[ChainLink(base, "sha256:s")], [ChainLink(files)]])
    chains.result(step, [CHAINS_BASE, MORE], "2026-01-01T00:00:00Z")
    document = config.checked(chains.document())
    assert [layer.blob for layer in document.layers] == ["sha256:a", "sha256:b"]
    record = document.records[step]
    assert record.digest == record_digest("sha256:op", 0)
    assert [[(one.link, one.selector) for one in choices] for choices in record.inputs] == [
        [(0, "sha256:s")],
        [(1, "")],
    ]
    assert config.chain(document.layers, record.results[0].layer) == [0, 1]
    assert document.records[files].digest == record_digest("sha256:files", -1)


def test_the_same_twice_is_one():
    chains = Chains()
    base = chains.source("sha256:image")
    assert chains.source("sha256:image") == base
    one = chains.operation("sha256:op", 0, [[ChainLink(base), ChainLink(base)]])
    assert chains.operation("sha256:op", 0, [[ChainLink(base)]]) == one
    chains.result(one, [CHAINS_BASE], "")
    chains.result(chains.operation("sha256:other", 0, [[ChainLink(one)]]), [CHAINS_BASE, MORE], "")
    assert len(chains.document().layers) == 2
    chains.result(base, [], "")
    assert chains.document().records[base].results == []
