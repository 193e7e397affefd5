"""Watchers of a build, and what others may know of its steps."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from husk.builder.graph.graph import Vertex
from husk.builder.graph.progress import Both, Status, public_name
from tests.unit.builder.solver.solving import chain


def vertex(name: str) -> Vertex:
    graph, edge = chain("make")
    return structs.replace(graph[edge.digest], name=name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("[2/3] RUN curl -H token=hunter2 x", "[2/3] RUN"),
        ("[build 4/7] COPY a b", "[build 4/7] COPY"),
        ("RUN make", "RUN"),
        ("/bin/sh -c curl -H token=hunter2", "exec"),
    ],
)
def test_a_step_is_told_without_its_command(name: str, told: str) -> None:
    assert public_name(vertex(name)) == told


class Watcher:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def started(self, vertex: Vertex) -> None:
        self.heard.append("started")

    def log(self, vertex: Vertex, data: bytes, *, stderr: bool) -> None:
        self.heard.append((data, stderr))

    def status(self, vertex: Vertex, status: Status) -> None:
        self.heard.append(status)

    def ended(
        self,
        vertex: Vertex,
        *,
        cached: bool = False,
        error: str = "",
        cancelled: bool = False,
        outputs: Sequence[str] = (),
    ) -> None:
        self.heard.append((cached, error, cancelled))


def test_two_hear_the_same() -> None:
    one, other = Watcher(), Watcher()
    both, step = Both(one, other), vertex("RUN make")
    both.started(step)
    both.log(step, b"x", stderr=True)
    both.status(step, Status(id="layer"))
    both.ended(step, error="no")
    assert one.heard == other.heard == ["started", (b"x", True), Status(id="layer"), (False, "no", False)]
