"""The reason why a build failed, with its place in a file, so that a client can show the lines.

A process that has failed, as a client needs to know it to run others where it was.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.rules import Warning
from husk.builder.graph.graph import Graph, Location, SourceFile
from husk.builder.graph.operations import Edge, Exec, Operation
from husk.builder.jobs.status_log import Told, VertexTold
from husk.builder.sources import given
from husk.errors import HuskError, NotImplementedYet

Made = tuple[Graph, Edge]


class BuildFailed(HuskError):
    """The failure of a build, with the vertex and lines that it comes from, where they are known."""

    def __init__(
        self, message: str, *, vertex: str = "", source: SourceFile | None = None, locations: Iterable[Location] = ()
    ) -> None:
        super().__init__(message)
        self.vertex = vertex
        self.source = source
        self.locations = list(locations)
        self.warnings: Sequence[Warning] = ()  # of the file that could not be read
        self.left: list[str] = []  # by a step that failed: stacks, by the numbers of its outputs


class UnknownQuestion(NotImplementedYet):
    """A client asks a frontend for something that it does not know; the client may do without."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unsupported request {name}")
        self.name = name


class MissingCapability(NotImplementedYet):
    """A client needs something of a frontend that it cannot do."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unsupported frontend capability {name}")
        self.name = name


def of_dockerfile(error: DockerfileError, source: SourceFile) -> BuildFailed:
    """An error in a Dockerfile, with its lines."""
    lines = [Location(0, error.span.start, error.span.end)] if error.span else []
    failed = BuildFailed(str(error), source=source, locations=lines)
    failed.warnings = error.warnings
    return failed


def of_vertex(error: HuskError, told: Iterable[Told], graphs: Iterable[Graph]) -> HuskError:
    """The same error with the vertex that failed so, if one did: what a build told has it."""
    if isinstance(error, BuildFailed):
        return error
    failed = next((one.vertex for one in told if isinstance(one, VertexTold) and one.error == error.message), None)
    if failed is None:
        return error
    files = next((graph.files for graph in graphs if failed.digest in graph), [])
    place = next((one for one in failed.locations if one.file < len(files)), None)
    return BuildFailed(
        error.message,
        vertex=failed.digest,
        source=files[place.file] if place else None,
        locations=[one for one in failed.locations if place and one.file == place.file],
    )


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
