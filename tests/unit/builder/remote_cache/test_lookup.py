"""Entries of caches elsewhere for a build."""

from typing import Any

import pytest

from husk.builder.graph.graph import Graph
from husk.builder.graph.op_digests import op_key
from husk.builder.graph.operations import Exec, ExecMount, Files, Operation, ProcessSpec, Source
from husk.builder.remote_cache.export import ChainLink, Chains
from husk.builder.remote_cache.lookup import RemoteCaches, outputs_of
from husk.builder.remote_cache.records import ImportedCache, RemoteLayer
from husk.builder.solver.interfaces import Record
from husk.builder.store.file_actions import Copy, FileAction
from husk.engine.images.make import chain_ids
from husk.errors import NotFound
from husk.registry.manifest import Descriptor

LAYERS = {name: RemoteLayer(Descriptor(digest=name, size=1), f"sha256:{name}", 7) for name in ("a", "b")}
NO_BLOBS: Any = None
HERE = Record("here", ["diff:context"])
NOT_HERE = Record("base", [], absent=True)


class Executor:
    def __init__(self):
        self.digests = ["files"]
        self.asked = 0

    async def portable_source_keys(self, operation, watcher):
        return ["image"] if "image" in operation.body.identifier else []

    async def portable_digests(self, output, selections):
        self.asked += 1
        if not self.digests:
            raise NotFound("no such file")
        return self.digests


class Loader:
    def __init__(self):
        self.loaded = []
        self.fails = False

    async def load(self, layers, blobs, watcher):
        if self.fails:
            raise NotFound("gone")
        self.loaded.append([layer.diff_id for layer in layers])


class Watcher:
    session = None

    def __init__(self):
        self.said = b""

    def log(self, data, *, stderr=False):
        self.said += data

    def status(self, status):
        pass


GRAPH = Graph()
BASE = GRAPH.add(Operation(Source("docker-image://image")))
CONTEXT = GRAPH.add(Operation(Source("local://context")))
COPIED = GRAPH.add(
    Operation(
        Files([FileAction(action=Copy(source="/a", destination="/b"), input=0, second_input=1, output=0)]),
        [BASE, CONTEXT],
    )
)
RAN = GRAPH.add(
    Operation(Exec(process=ProcessSpec(args=["make"]), mounts=[ExecMount(target="/", input=0, output=0)]), [COPIED])
)


@pytest.fixture
def executor():
    return Executor()


@pytest.fixture
def loader():
    return Loader()


@pytest.fixture
def caches(executor, loader):
    copy, run = op_key(GRAPH[COPIED.digest].operation), op_key(GRAPH[RAN.digest].operation)
    assert copy and run
    chains = Chains()
    copied = chains.operation(
        copy.digest, 0, [[ChainLink(chains.source("image"))], [ChainLink(chains.content("files"))]]
    )
    ran = chains.operation(run.digest, 0, [[ChainLink(copied, run.inputs[0].selector)]])
    chains.result(ran, [layer.descriptor for layer in LAYERS.values()], "2026-01-01T00:00:00Z")

    async def read():
        return [ImportedCache(chains.document(), LAYERS, NO_BLOBS)]

    return RemoteCaches(read, executor, lambda record: record is HERE, loader)


async def find(caches, edge, *records, key="key", known=None):
    return await caches.find(GRAPH[edge.digest], records, key, known, Watcher())


async def test_a_step_is_found_by_what_its_inputs_are_and_nothing_is_fetched(caches, loader):
    assert (await find(caches, BASE)).absent
    assert await find(caches, CONTEXT) is None
    assert (await find(caches, COPIED, NOT_HERE, HERE)).absent
    record = await find(caches, RAN, NOT_HERE)
    stack = " ".join(f"layer:{chain}" for chain in chain_ids(["sha256:a", "sha256:b"]))
    assert record.outputs == [stack]
    assert record.made == stack.split()
    assert set(record.times.values()) == {7}
    assert loader.loaded == []
    assert await caches.fetch(record, Watcher())
    assert loader.loaded == [["sha256:a", "sha256:b"]]


async def test_files_that_are_not_here_tell_nothing(caches, executor):
    await find(caches, BASE)
    assert await find(caches, COPIED, NOT_HERE, NOT_HERE) is None
    assert executor.asked == 0
    executor.digests = []
    assert await find(caches, COPIED, NOT_HERE, HERE) is None
    executor.digests = ["other"]
    assert await find(caches, COPIED, NOT_HERE, HERE) is None
    assert await find(caches, RAN, NOT_HERE) is None


async def test_a_record_keeps_its_name(caches):
    one, same, other = [await find(caches, BASE, key=key) for key in ("key", "key", "other")]
    assert one.id == same.id != other.id
    assert (await find(caches, BASE, known=HERE)).id == "here"


async def test_what_cannot_be_fetched_is_told_and_made(caches, loader):
    await find(caches, BASE)
    await find(caches, COPIED, NOT_HERE, HERE)
    record = await find(caches, RAN, NOT_HERE)
    loader.fails = True
    watcher = Watcher()
    assert not await caches.fetch(record, watcher)
    assert b"gone" in watcher.said
    assert not await caches.fetch(HERE, watcher)


def test_which_outputs_a_vertex_has():
    assert [outputs_of(vertex) for vertex in GRAPH] == [[0]] * 4
