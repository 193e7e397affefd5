"""By which keys the vertices of one build are known."""

from husk.builder.graph.graph import Graph
from husk.builder.solver.solver import Record
from husk.builder.solver.vertex_keys import VertexKeys
from tests.unit.builder.solver.solving import Memory, Worker, copy, source, step


class Silent:
    session = None

    def log(self, data, *, stderr=False): ...

    def status(self, status): ...


async def test_a_source_is_asked_once_for_a_build_what_it_is():
    worker, graph = Worker(), Graph()
    vertex = graph[source(graph, "image").digest]
    keys, others = VertexKeys(worker, Memory()), VertexKeys(worker, Memory())
    first = await keys.by_definition(vertex, [], Silent())
    worker.sources["image"] = "another by now"
    assert await keys.by_definition(vertex, [], Silent()) == first
    assert await others.by_definition(vertex, [], Silent()) != first


async def test_the_key_by_definition_goes_by_the_records_of_the_inputs():
    graph = Graph()
    vertex = graph[step(graph, "run", source(graph, "image")).digest]
    keys = VertexKeys(Worker(), Memory())
    one, same, other = (Record(id, [output]) for id, output in (("a", "x"), ("a", "y"), ("b", "x")))
    found = [await keys.by_definition(vertex, [record], Silent()) for record in (one, same, other)]
    assert found[0] == found[1] != found[2]


async def test_the_key_by_content_goes_by_the_files_that_are_copied():
    worker, graph = Worker(), Graph()
    vertex = graph[copy(graph, "copy", source(graph, "image"), source(graph, "context")).digest]
    keys, base = VertexKeys(worker, Memory()), Record("base", ["base"])
    worker.contents.update(first="alike", second="alike", third="different")
    found = [await keys.by_content(vertex, [base, Record(name, [name])]) for name in ("first", "second", "third")]
    assert found[0] == found[1] != found[2]
    assert await keys.by_content(vertex, [Record("another", ["base"]), Record("first", ["first"])]) != found[0]


async def test_there_is_no_key_by_content_without_the_files_or_where_none_matter():
    graph = Graph()
    base = source(graph, "image")
    copied, ran = (
        graph[copy(graph, "copy", base, source(graph, "context")).digest],
        graph[step(graph, "run", base).digest],
    )
    keys, here = VertexKeys(Worker(), Memory()), Record("here", ["here"])
    assert await keys.by_content(copied, [here, Record("away", ["away"], absent=True)]) == ""
    assert await keys.by_content(ran, [here]) == ""
