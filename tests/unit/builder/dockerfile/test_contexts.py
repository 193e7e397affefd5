from typing import Any

from husk.builder.dockerfile.contexts import CONTEXT_NAME, add
from husk.builder.dockerfile.options import RemoteContext
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Files, Source

SOURCE = Source("https://example.com/x")


def test_a_source_is_all_of_it():
    for context in (SOURCE, RemoteContext(SOURCE)):
        graph = Graph()
        edge = add(graph, context)
        assert (len(graph), graph[edge.digest].name) == (1, CONTEXT_NAME)
        assert add(graph, context) == edge


def test_an_archive_is_unpacked_and_a_directory_taken():
    graph = Graph()
    add(graph, RemoteContext(SOURCE, "shown", archive="context", directory="sub"))
    source, unpacked, taken = graph
    assert source.name == "shown"
    assert isinstance(unpacked.operation.body, Files)
    assert isinstance(taken.operation.body, Files)
    copies: Any = [body.actions[0].action for body in (unpacked.operation.body, taken.operation.body)]
    first, second = copies
    assert (first.source, first.unpack, first.destination) == ("/context", True, "/")
    assert (second.source, second.contents_only, second.unpack) == ("/sub", True, False)
