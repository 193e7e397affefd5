"""Failures and the lines that they come from."""

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.rules import Span
from husk.builder.graph.graph import Graph, Location, SourceFile
from husk.builder.graph.operations import Exec, ExecMount, Operation, ProcessSpec, Source
from husk.builder.jobs.failure import BuildFailed, find, of_dockerfile, of_vertex
from husk.builder.jobs.status_log import VertexTold
from husk.builder.sources import given
from husk.errors import NotFound

FILE = SourceFile("Dockerfile", b"FROM x\nRUN false\n")


def test_an_error_of_a_dockerfile_has_its_lines() -> None:
    failed = of_dockerfile(DockerfileError("unknown instruction: FORM", Span(1, 1), unreadable=True), FILE)
    assert failed.message == "dockerfile parse error on line 1: unknown instruction: FORM"
    assert (failed.source, failed.locations) == (FILE, [Location(0, 1, 1)])
    assert of_dockerfile(DockerfileError("no stages"), FILE).locations == []


def test_an_error_of_a_step_has_its_vertex_and_lines() -> None:
    graph = Graph([FILE])
    edge = graph.add(Operation(Source("local://x")), name="RUN false", locations=[Location(0, 2, 2)])
    told = [VertexTold(vertex=graph[edge.digest]), VertexTold(vertex=graph[edge.digest], error="exit code: 1")]
    failed = of_vertex(NotFound("exit code: 1"), told, [Graph(), graph])
    assert isinstance(failed, BuildFailed)
    assert (failed.message, failed.vertex) == ("exit code: 1", edge.digest)
    assert (failed.source, failed.locations) == (FILE, [Location(0, 2, 2)])


def test_a_place_in_a_file_that_is_not_there_is_no_place() -> None:
    graph = Graph()
    edge = graph.add(Operation(Source("local://x")), locations=[Location(3, 2, 2)])
    failed = of_vertex(NotFound("e"), [VertexTold(vertex=graph[edge.digest], error="e")], [graph])
    assert isinstance(failed, BuildFailed)
    assert (failed.vertex, failed.source, failed.locations) == (edge.digest, None, [])


def test_an_error_of_no_vertex_stays_as_it_is() -> None:
    error = NotFound("gone")
    assert of_vertex(error, [], []) is error
    known = BuildFailed("known")
    assert of_vertex(known, [], []) is known


GRAPH = Graph()
BASE = GRAPH.add(Operation(Source("docker-image://busybox")))
PROCESS = ProcessSpec(args=["false"], env=[], cwd="/")
RUN = GRAPH.add(Operation(Exec(process=PROCESS, mounts=[ExecMount(target="/", input=0, output=0)]), [BASE]))


def test_what_it_was_given_and_what_it_has_left():
    error = BuildFailed("bad", vertex=RUN.digest)
    error.left = ["diff:a", ""]
    failed = find(error, [Graph(), GRAPH])
    assert failed is not None
    assert failed.inputs == [(GRAPH, BASE)]
    first, second = failed.outputs
    assert second is None
    assert first is not None
    graph, edge = first
    assert graph[edge.digest].operation.body == given.source_of("diff:a")


def test_errors_about_something_else():
    assert find(NotFound("x"), [GRAPH]) is None
    assert find(BuildFailed("bad", vertex=BASE.digest), [GRAPH]) is None
    assert find(BuildFailed("bad", vertex="unknown"), [GRAPH]) is None
