"""A copy of a whole directory of the client waits for that directory."""

from pathlib import Path
from typing import Any

import pytest

from husk.builder.graph.graph import Graph, layered
from husk.builder.graph.operations import Edge, Files, Operation, Source
from husk.builder.solver.waiting_copies import WaitingCopies, WaitingCopy, waiting_copies
from husk.builder.store.ahead import AheadTar, Below
from husk.builder.store.file_actions import NONE, Copy, FileAction, Owner
from tests.support.work import lines_run


def source(graph: Graph, name: str) -> Edge:
    return graph.add(Operation(Source(name)))


def copy(graph: Graph, below: Edge, files: Edge, **words: Any) -> Edge:
    options = {"source": "/", "destination": "/app/", "contents_only": True, **words}
    action = FileAction(action=Copy(**options), input=0, second_input=1, output=0)
    return graph.add(Operation(Files([action]), [below, files]))


def found(graph: Graph, result: Edge, context: Edge) -> WaitingCopy | None:
    return waiting_copies(graph, layered(graph, result)).get(context.digest)


class AheadOfAll:
    def ahead(self, action: FileAction, below: Below) -> AheadTar:
        return AheadTar(lambda: Path("/"), lambda time: nothing())


async def nobody(edge: Edge | None) -> str | None:
    return None


async def nothing() -> bytes | None:
    return None


def test_a_plain_copy():
    graph = Graph()
    base, context = source(graph, "docker-image://busybox"), source(graph, "local://context")
    result = copy(graph, base, context)
    waiting = found(graph, result, context)
    assert waiting is not None
    assert (waiting.digest, waiting.below) == (result.digest, base)
    assert found(graph, result, base) is None


def test_a_copy_onto_nothing():
    graph = Graph()
    context = source(graph, "local://context")
    action = Copy(source="/", destination="/", contents_only=True)
    files = Files([FileAction(action=action, input=NONE, second_input=0, output=0)])
    result = graph.add(Operation(files, [context]))
    waiting = found(graph, result, context)
    assert waiting is not None
    assert waiting.below is None


@pytest.mark.parametrize(
    "words",
    [
        {"source": "/file"},
        {"contents_only": False},
        {"mode": 0o700},
        {"symbolic_mode": "u+x"},
        {"user": Owner(number=1)},
        {"group": Owner(name="staff")},
        {"unpack": True},
        {"exclude": ["x"]},
        {"include": ["x"]},
        {"timestamp": 1},
    ],
)
def test_a_copy_that_is_not_plain(words: dict[str, Any]):
    graph = Graph()
    base, context = source(graph, "docker-image://busybox"), source(graph, "local://context")
    assert found(graph, copy(graph, base, context, **words), context) is None


def test_sources_of_other_kinds():
    graph = Graph()
    base, context = source(graph, "docker-image://busybox"), source(graph, "git://x")
    assert found(graph, copy(graph, base, context), context) is None


def test_several_copies():
    graph = Graph()
    base, context = source(graph, "docker-image://busybox"), source(graph, "local://context")
    result = copy(graph, copy(graph, base, context), context, destination="/other/")
    assert found(graph, result, context) is None


def test_many_copies_are_looked_through_once():
    def work(count: int) -> int:
        graph = Graph()
        result = source(graph, "docker-image://busybox")
        contexts = [source(graph, f"local://{number}") for number in range(count)]
        for number, context in enumerate(contexts):
            result = copy(graph, result, context, destination=f"/{number}/")
        known = layered(graph, result)
        waiting = WaitingCopies(graph, AheadOfAll())
        return lines_run(lambda: [waiting.ahead(graph[context.digest], known, nobody) for context in contexts])

    assert work(200) < 5 * work(50)


def test_a_copy_that_makes_no_layer():
    graph = Graph()
    base, context = source(graph, "docker-image://busybox"), source(graph, "local://context")
    stage = copy(graph, base, context)
    result = copy(graph, base, stage)
    assert found(graph, result, context) is None
