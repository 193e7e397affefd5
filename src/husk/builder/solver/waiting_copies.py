"""The copies of a build that wait for a directory of a client: their layer may be packed while the files still come.

It must be the whole directory that is copied, as it is, and by one copy alone: then it is known what the layer will be
from what the client tells of its files.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct

from husk.builder.graph.graph import Graph, Vertex
from husk.builder.graph.operations import Edge, Files, Source
from husk.builder.store.ahead import AheadTar, Below
from husk.builder.store.file_actions import NONE, Copy, FileAction, can_be_told

_SCHEME = "local://"


class WaitingCopy(Struct, frozen=True):
    """The digest of its vertex, what it does, and on top of what (None: of nothing)."""

    digest: str
    action: FileAction
    below: Edge | None


class Packer(Protocol):
    def ahead(self, action: FileAction, below: Below) -> AheadTar: ...


FindBelow = Callable[[Edge | None], Awaitable[str | None]]


class WaitingCopies:
    """The waiting copies of one build, with what is packed for them."""

    def __init__(self, graph: Graph, packer: Packer) -> None:
        self._graph = graph
        self._packer = packer
        self._tars: dict[str, AheadTar] = {}
        self._copies: Mapping[str, WaitingCopy] | None = None

    def ahead(self, vertex: Vertex, layered: frozenset[str], below: FindBelow) -> AheadTar | None:
        """Give, for a source that is about to come, the tar of the copy that waits for it, and then for that copy the
        same. `below` finds the file system of an edge."""
        if self._copies is None:
            self._copies = waiting_copies(self._graph, layered)
        if (copy := self._copies.get(vertex.digest)) is not None:
            edge = copy.below
            self._tars[copy.digest] = tar = self._packer.ahead(copy.action, lambda: below(edge))
            return tar
        return self._tars.get(vertex.digest)

    async def found(self, copy: Vertex) -> None:
        """The cache has what it makes: nothing of it has to be packed."""
        if copy.digest in self._tars:
            await self._tars[copy.digest].close()

    async def close(self) -> None:
        for tar in self._tars.values():
            await tar.close()
        self._tars.clear()


def waiting_copies(graph: Graph, layered: frozenset[str]) -> Mapping[str, WaitingCopy]:
    """By the digests of the sources that they wait for: those that are alone in that among what makes layers."""
    found: dict[str, WaitingCopy] = {}
    several: set[str] = set()
    for vertex in graph:
        if vertex.digest not in layered or (source := _source_of(vertex)) is None:
            continue
        body = graph[source.digest].operation.body
        if not isinstance(body, Source) or not body.identifier.startswith(_SCHEME):
            continue
        if source.digest in found:
            several.add(source.digest)
        step, inputs = _only_action(vertex), vertex.operation.inputs
        below = None if step.input == NONE else inputs[step.input]
        found[source.digest] = WaitingCopy(vertex.digest, step, below)
    return {digest: copy for digest, copy in found.items() if digest not in several}


def _source_of(vertex: Vertex) -> Edge | None:
    """Return the source that a vertex copies, if it does nothing but copy a whole directory; else None."""
    body, inputs = vertex.operation.body, vertex.operation.inputs
    if not isinstance(body, Files) or not can_be_told(body.actions):
        return None
    step = _only_action(vertex)
    known = range(len(inputs))
    if not isinstance(step.action, Copy) or not _is_plain(step.action) or step.input not in (NONE, *known):
        return None
    return inputs[step.second_input] if step.second_input in known else None


def _only_action(vertex: Vertex) -> FileAction:
    body = vertex.operation.body
    assert isinstance(body, Files)
    return body.actions[0]


def _is_plain(copy: Copy) -> bool:
    """Return True if a copy takes all of a directory, and its files look like those that they are copied from."""
    other_look = copy.user or copy.group or copy.mode is not None or copy.symbolic_mode
    return copy.source == "/" and copy.contents_only and not other_look
