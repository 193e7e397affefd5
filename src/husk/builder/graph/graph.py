"""A build's operations with what is shown of them, and how they hang together.

Everything that a graph has was put there by `add`, inputs first: so it has no cycles, and a list of its vertices in the
order of their addition can be carried out from front to back.

The operations of a build that make layers of its result: those on the way down from it to where it begins.

What else a build makes is copied from, or mounted, and is no layer of an image.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, TypedDict, Unpack

from msgspec import Struct

from husk.builder.graph import schemes
from husk.builder.graph.operations import Edge, Exec, Files, Merge, Operation, Source, digest_of
from husk.builder.store.ahead import AheadTar
from husk.builder.store.file_actions import NONE
from husk.errors import InvalidParameter

# What one definition or Dockerfile may make: whoever goes through all of it holds everybody else for a moment.
MOST_OPERATIONS = 5_000
MOST_INPUTS, MOST_INPUTS_OF_ONE = 20_000, 1_000
LONGEST_NAME = 16_384


class Location(Struct, frozen=True):
    """Lines of a file that a vertex comes from, counted from one, and letters in them, where a frontend tells these."""

    file: int
    start: int
    end: int
    first_letter: int = 0
    last_letter: int = 0


class SourceFile(Struct, frozen=True):
    """A file that a graph was made from, and how it came: by our operations, inputs first, or in a frontend's words."""

    name: str
    content: bytes
    language: str = "Dockerfile"
    loaded: list[Operation] = []
    definition: bytes = b""


class VertexLook(TypedDict, total=False):
    """The looks of a vertex for clients, and the way that it is to be carried out."""

    name: str
    description: dict[str, str]
    ignore_cache: bool
    group: str
    locations: list[Location]


class Vertex(Struct, frozen=True, kw_only=True):
    digest: str
    operation: Operation
    name: str = ""
    description: dict[str, str] = {}
    ignore_cache: bool = False
    group: str = ""  # vertices of one group are shown as one
    locations: list[Location] = []
    layered: bool = False  # what it makes is to be a layer of an image
    followed: bool = True  # others of its build may come behind it
    ahead: AheadTar | None = None  # what is packed while files come, for those who bring them and who copy them


class GraphLimits(NamedTuple):
    """Limits of one graph."""

    operations: int = MOST_OPERATIONS
    inputs: int = MOST_INPUTS
    inputs_of_one: int = MOST_INPUTS_OF_ONE


LIMITS = GraphLimits()


class KnownVertices:
    """All that one build has been told of, in any number of graphs. What is the same is kept once, and all of it has a
    limit: frontends ask as often as they like, and what they got is kept until the build ends."""

    MOST = 5 * MOST_OPERATIONS
    MOST_BYTES = 1 << 30  # of definitions as they came, and of what was made of them and of Dockerfiles

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._count = 0
        self._bytes = 0
        self._vertices: dict[str, Vertex] = {}

    def came(self, size: int) -> None:
        """Count a definition that is about to be read, or operations that were."""
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise InvalidParameter(f"the definitions of a build have {self._most_bytes >> 20} MiB at most")

    def shared(self, vertex: Vertex) -> Vertex:
        """The same vertex, known already if it can be. InvalidParameter for too many."""
        known = self._vertices.setdefault(vertex.digest, vertex)
        if known is not vertex and known == vertex:
            return known
        self._count += 1
        if self._count > self._most:
            raise InvalidParameter(f"a build has {self._most} operations at most")
        return vertex


class Graph:
    def __init__(self, files: list[SourceFile] | None = None, limits: GraphLimits = LIMITS) -> None:
        self._limits = limits
        self._vertices: dict[str, Vertex] = {}
        self._inputs = 0
        self.weight = 0  # about as many bytes as its operations take, if they were read and are not counted yet
        self.files = files or []

    def __len__(self) -> int:
        return len(self._vertices)

    def __iter__(self) -> Iterator[Vertex]:
        """Inputs come before what takes them."""
        return iter(self._vertices.values())

    def __getitem__(self, digest: str) -> Vertex:
        return self._vertices[digest]

    def __contains__(self, digest: str) -> bool:
        return digest in self._vertices

    def add(self, operation: Operation, **shown: Unpack[VertexLook]) -> Edge:
        """Add an operation, and get its first output. The same operation a second time is the same vertex."""
        digest = digest_of(operation)
        self.add_as(digest, operation, **shown)
        return Edge(digest)

    def add_as(self, digest: str, operation: Operation, **shown: Unpack[VertexLook]) -> None:
        """The same with the digest by which somebody else knows it. InvalidParameter for more than there may be."""
        for edge in operation.inputs:
            if edge.digest not in self._vertices:
                raise InvalidParameter(f"the operation {digest} has an input that is not in the build: {edge.digest}")
        if digest in self._vertices:
            return
        if isinstance(operation.body, Source):
            schemes.check_length(operation.body)
        count = len(operation.inputs)
        self._inputs += count
        most = self._limits
        if len(self) >= most.operations:
            raise InvalidParameter(f"a build of more than {most.operations} operations")
        if count > most.inputs_of_one or self._inputs > most.inputs:
            limits = f"{most.inputs} inputs, or one of more than {most.inputs_of_one}"
            raise InvalidParameter(f"a build whose operations have more than {limits}")
        if len(shown.get("name", "")) > LONGEST_NAME:
            shown["name"] = shown["name"][:LONGEST_NAME] + "..."
        self._vertices[digest] = Vertex(digest=digest, operation=operation, **shown)

    def added_since(self, count: int) -> list[Vertex]:
        """Return the vertices that were added when there were `count` of them already, the first one first."""
        return list(islice(reversed(self._vertices.values()), len(self) - count))[::-1]

    def share(self, known: KnownVertices) -> None:
        """Take vertices that others know, where they are the same as ours. InvalidParameter for too many."""
        weight, self.weight = self.weight, 0
        known.came(weight)
        self._vertices = {digest: known.shared(vertex) for digest, vertex in self._vertices.items()}

    def needed_for(self, *results: Edge) -> list[Vertex]:
        """Return the vertices that have to be done for these results, inputs first."""
        wanted = {edge.digest for edge in results}
        for vertex in reversed(self._vertices.values()):
            if vertex.digest in wanted:
                wanted.update(edge.digest for edge in vertex.operation.inputs)
        return [vertex for vertex in self if vertex.digest in wanted]


class Definition(Struct, frozen=True):
    """An edge of a graph that is to be made, or nothing."""

    graph: Graph
    edge: Edge | None


def layered(graph: Graph, result: Edge) -> frozenset[str]:
    """The digests of their vertices."""
    found: set[str] = set()
    waiting = [result]
    while waiting:
        edge = waiting.pop()
        if edge.digest in found:
            continue
        found.add(edge.digest)
        operation = graph[edge.digest].operation
        waiting += [operation.inputs[number] for number in _below(operation, edge.output)]
    return frozenset(found)


def _below(operation: Operation, output: int) -> Iterator[int]:
    """The inputs whose layers an output has below its own."""
    count = len(operation.inputs)
    match operation.body:
        case Exec(mounts=mounts):
            yield from (mount.input for mount in mounts if mount.output == output and 0 <= mount.input < count)
        case Files(actions=actions):
            number = next((number for number, one in enumerate(actions) if one.output == output), NONE)
            while number != NONE:
                before = actions[number].input
                if 0 <= before < count:
                    yield before
                number = before - count if count <= before < count + number else NONE
        case Merge():
            yield from range(count)
