"""The operations of a build that make layers of its result: those on the way down from it to where it begins.

What else a build makes is copied from, or mounted, and is no layer of an image.
"""

from collections.abc import Iterator

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import NONE, Edge, Exec, Files, Merge, Operation


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
