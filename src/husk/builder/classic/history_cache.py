"""Images that serve as a cache of the classic builder (`--cache-from`): by their history, as dockerd reads it.

An image whose first layers are those of the base, and whose history tells the same instructions in the same order, has
the results of these instructions as its layers. What a command has made is taken from there. What is copied is copied
anew, for that costs little; the next command is taken only if the copied files look the same as in the image.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.graph import stacks
from husk.builder.graph.graph import Graph, Vertex
from husk.builder.graph.operations import Edge, Exec, Files, Merge, Source
from husk.builder.solver.execution import described
from husk.builder.solver.interfaces import Record, Watcher
from husk.builder.store.file_actions import NONE, Copy, Selection
from husk.engine.images.make import chain_ids
from husk.engine.model.image import HistoryEntry, ImageConfig
from husk.text.patterns import pattern

# How dockerd's classic builder writes what needs no command.
_NO_COMMAND = pattern(r"^/bin/sh -c #\(nop\)\s+")
# Which files were copied is told in several ways; whether they are the same is seen from the files.
_COPIED = pattern(r"^(COPY|ADD) .*")


class Contents(Protocol):
    async def content_digest(self, output: str, selections: Sequence[Selection], /) -> str: ...


class _Candidate(Struct, frozen=True):
    """An image, and how many of the steps of this build it has made."""

    layers: list[str]  # elements of a stack
    steps: int


class HistoryCache:
    """The layers of images as a cache for the stage that a build makes; the interface `Elsewhere`."""

    def __init__(self, contents: Contents, is_whole: Callable[[Record], bool]) -> None:
        self._contents = contents
        self._is_whole = is_whole
        self._steps: list[Vertex] = []
        self._base = 0
        self._candidates: list[_Candidate] = []

    def prepare(self, graph: Graph, root: Edge, image: ImageConfig, others: Sequence[ImageConfig]) -> None:
        """`image` is what the build makes, with the layers of its base alone; `others` may serve as a cache."""
        self._steps = steps_below(graph, root)
        base = image.rootfs.diff_ids
        self._base = len(base)
        for other in others:
            layers = other.rootfs.diff_ids
            if layers[: len(base)] == base and len(layers) == sum(not step.empty_layer for step in other.history):
                steps = shared_steps(image.history, other.history, len(base))
                if steps := min(steps, len(self._steps)):
                    self._candidates.append(_Candidate(stacks.elements(stacks.of_layers(chain_ids(layers))), steps))

    async def find(
        self, vertex: Vertex, records: Sequence[Record], key: str, known: Record | None, watcher: Watcher
    ) -> Record | None:
        number = next((number for number, step in enumerate(self._steps) if step.digest == vertex.digest), None)
        body = vertex.operation.body
        if number is None or not isinstance(body, Exec) or len(records) != 1 or not self._is_whole(records[0]):
            return None
        below = records[0].outputs[vertex.operation.inputs[0].output]
        for candidate in self._candidates:
            if number < candidate.steps and await self._is_made_from(candidate, number, below):
                stack = " ".join(candidate.layers[: self._base + number + 1])
                id = known.id if known else hashlib.sha256(f"image {key}".encode()).hexdigest()[:25]
                return Record(id, [stack], description=described(vertex))
        return None

    async def fetch(self, record: Record, watcher: Watcher) -> bool:
        return True  # images that are here are all that is asked

    async def close(self) -> None:
        pass

    async def _is_made_from(self, candidate: _Candidate, number: int, below: str) -> bool:
        """Return True if a step begins with the same files in the image as it does here."""
        theirs, ours = candidate.layers[: self._base + number], stacks.elements(below)
        if len(theirs) != len(ours) or theirs[: self._base] != ours[: self._base]:
            return False
        chosen: list[Selection] = []
        for step, their, our in zip(self._steps, theirs[self._base :], ours[self._base :], strict=False):
            if their == our:
                continue
            if not isinstance(step.operation.body, Files):
                return False
            actions = [one.action for one in step.operation.body.actions]
            chosen += [Selection(path=one.destination) for one in actions if isinstance(one, Copy)]
        if not chosen:
            return True
        digests = [await self._contents.content_digest(stack, chosen) for stack in (below, " ".join(theirs))]
        return digests[0] == digests[1]


def steps_below(graph: Graph, root: Edge) -> list[Vertex]:
    """Return the vertices that make the layers of a stage, the first one first; without the source below them."""
    found: list[Vertex] = []
    edge: Edge | None = root
    while edge is not None:
        vertex = graph[edge.digest]
        number = _root_input(vertex)
        if not isinstance(vertex.operation.body, Source):
            found.append(vertex)
        edge = vertex.operation.inputs[number] if 0 <= number < len(vertex.operation.inputs) else None
    return found[::-1]


def _root_input(vertex: Vertex) -> int:
    match vertex.operation.body:
        case Exec(mounts=mounts):
            return next((mount.input for mount in mounts if mount.target == "/"), NONE)
        case Files(actions):
            return actions[0].input if actions else NONE
        case Merge():
            return 0
        case _:
            return NONE


def shared_steps(ours: Sequence[HistoryEntry], theirs: Sequence[HistoryEntry], base: int) -> int:
    """Count the layers after those of the base that are made by the same instructions in both."""
    layers = 0
    for our, their in zip(ours, theirs, strict=False):
        if our.empty_layer != their.empty_layer or instruction(our) != instruction(their):
            break
        layers += not our.empty_layer
    return max(0, layers - base)


def instruction(step: HistoryEntry) -> str:
    """An instruction as all builders of Docker's would write it."""
    text = _NO_COMMAND.sub("", step.created_by).removesuffix("# buildkit").strip()
    return _COPIED.sub(r"\1", text.removeprefix("RUN "))
