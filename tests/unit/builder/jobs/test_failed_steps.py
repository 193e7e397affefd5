"""Processes that have failed, found by the errors about them."""

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Exec, ExecMount, Operation, ProcessSpec, Source
from husk.builder.jobs.failed_steps import find
from husk.builder.jobs.failure import BuildFailed
from husk.builder.sources import given
from husk.errors import NotFound

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
