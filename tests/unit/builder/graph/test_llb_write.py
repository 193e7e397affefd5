"""Graphs are written so that they can be read back, and named by the digests of what is sent."""

from husk.builder.graph import llb_read, llb_write, ops
from husk.builder.graph.graph import Graph, SourceFile
from husk.builder.graph.llb_read import digest_of
from husk.builder.graph.operations import Operation, Source
from tests.unit.builder.protocol.graphs import everything


def test_what_is_written_is_read_as_it_was() -> None:
    graph, edge = everything()
    sent = llb_write.definition(graph, edge)
    read = llb_read.definition(ops.Definition.decode(sent.encode()))
    assert [vertex.name for vertex in read.graph] == [vertex.name for vertex in graph]
    assert [vertex.operation.body for vertex in read.graph] == [vertex.operation.body for vertex in graph]
    assert [vertex.operation.platform for vertex in read.graph] == [vertex.operation.platform for vertex in graph]
    assert [vertex.locations for vertex in read.graph] == [vertex.locations for vertex in graph]
    assert [vertex.ignore_cache for vertex in read.graph] == [vertex.ignore_cache for vertex in graph]
    assert read.graph.files == graph.files
    assert read.edge is not None and read.graph[read.edge.digest].name == "build"


def test_digests_are_those_of_what_is_sent() -> None:
    graph, edge = everything()
    sent = llb_write.definition(graph, edge)
    assert set(sent.metadata) == {digest_of(data) for data in sent.definition}
    # Written a second time from what was read, nothing changes any more.
    read = llb_read.definition(sent)
    again = llb_write.definition(read.graph, read.edge)
    assert again.definition == sent.definition


def test_nothing_is_written_as_nothing() -> None:
    assert llb_write.definition(Graph(), None) == ops.Definition()


def test_files_say_how_they_came() -> None:
    loaded = [Operation(Source("git://host/x.git")), Operation(Source("local://dockerfile", {"k": "v"}))]
    told = llb_write.source_info(SourceFile("Dockerfile", b"FROM x", loaded=loaded))
    read = llb_read.definition(ops.Definition.decode(told.definition or b""))
    assert [vertex.operation for vertex in read.graph] == loaded[1:], "what leads to the last one"
    assert llb_write.source_info(SourceFile("main.x", b"", "mine", definition=b"theirs")).definition == b"theirs"
    assert llb_write.source_info(SourceFile("main.x", b"")).definition is None


def test_places_and_files_of_frontends_are_kept_as_they_were() -> None:
    place = ops.Location(0, [ops.Range(ops.Position(3, 1), ops.Position(4, 9))])
    (read,) = llb_read.locations(place)
    assert llb_write.location(read) == place
    info = ops.SourceInfo("main.x", b"data", b"theirs", "mine")
    assert llb_write.source_info(llb_read.source_file(info)) == info
