"""A process that has failed, as a client needs to know it to run others where it was. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Exec, Operation
from husk.builder.jobs.failure import BuildFailed
from husk.builder.sources import given
from husk.errors import HuskError

Made = tuple[Graph, Edge]
"""An edge of a graph: something that can be made, or is there."""


class FailedStep(Struct, frozen=True):
    body: Exec
    inputs: list[str]  # ids of refs
    outputs: list[str] = []  # the same of what it has left, where that is here: empty where it is not


class FailedProcess(Struct, frozen=True):
    """A process that failed: its inputs, and the outputs that it has left."""

    body: Exec
    inputs: list[Made]
    outputs: list[Made | None]


def find(error: HuskError, graphs: Iterable[Graph]) -> FailedProcess | None:
    """The process that an error is about, if it is about one."""
    if not isinstance(error, BuildFailed):
        return None
    graph = next((one for one in graphs if error.vertex in one), None)
    if graph is None or not isinstance(body := graph[error.vertex].operation.body, Exec):
        return None
    inputs = [(graph, edge) for edge in graph[error.vertex].operation.inputs]
    return FailedProcess(body, inputs, [_there(stack) if stack else None for stack in error.left])


def _there(stack: str) -> Made:
    graph = Graph()
    return graph, graph.add(Operation(given.source_of(stack)), name="[internal] what a failed step has left")
