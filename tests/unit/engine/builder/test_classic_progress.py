"""Lines of text in the order of the Dockerfile, however the steps end."""

import pytest

from husk.engine.builder.classic_progress import ClassicProgress
from husk.engine.builder.dockerfile.converted import ShownStep
from husk.engine.builder.graph import Graph, Location
from husk.engine.builder.operations import Exec, Mount, Operation, Process, Source
from husk.engine.builder.progress import LONGEST_LOG


class Told:
    """A build of a base, two steps that do not need each other, and a setting."""

    def __init__(self):
        graph = Graph()
        image = graph.add(Operation(Source("docker-image://busybox")), locations=[Location(0, 1, 1)])
        edges = [image, *(self._step(graph, line, image) for line in (2, 3))]
        self.vertices = [graph[edge.digest] for edge in edges]
        steps = [
            ShownStep(code, Location(0, line, line)) for line, code in enumerate(("FROM busybox", *"ab", "CMD c"), 1)
        ]
        self.text = ""
        self.progress = ClassicProgress(steps, self.vertices, self.write)
        self.progress.begin()

    @staticmethod
    def _step(graph, line, image):
        body = Exec(process=Process(args=[str(line)]), mounts=[Mount(target="/", input=0)])
        return graph.add(Operation(body, [image]), locations=[Location(0, line, line)])

    def write(self, text):
        self.text += text


@pytest.fixture
def told():
    return Told()


def test_the_first_step_is_told_at_once(told):
    assert told.text == "Step 1/4 : FROM busybox\n"


def test_what_a_step_says_waits_for_its_turn(told):
    image, a, b = told.vertices
    told.progress.ended(image)
    told.progress.log(b, b"from b\n", stderr=False)
    told.progress.ended(b)
    told.progress.log(a, b"from a\n", stderr=True)
    assert told.text == "Step 1/4 : FROM busybox\nStep 2/4 : a\nfrom a\n"
    told.progress.ended(a)
    assert told.text.endswith("from a\nStep 3/4 : b\nfrom b\nStep 4/4 : CMD c\n")


def test_a_step_from_the_cache_says_so(told):
    image, a, b = told.vertices
    for vertex in (image, a, b):
        told.progress.ended(vertex, cached=True)
    assert told.text.count(" ---> Using cache\n") == 2


def test_a_step_that_fails_is_the_last_one(told):
    image, a, _ = told.vertices
    told.progress.ended(image)
    told.progress.log(a, b"no\n", stderr=True)
    told.progress.ended(a, error="exit code: 1")
    assert told.text.endswith("Step 2/4 : a\nno\n")


def test_a_step_that_writes_without_end_is_cut_off(told):
    image, a, _ = told.vertices
    told.progress.ended(image)
    for _ in range(100):
        told.progress.log(a, b"y" * (LONGEST_LOG // 10), stderr=False)
    assert LONGEST_LOG < len(told.text) < LONGEST_LOG + 200
