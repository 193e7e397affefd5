"""The build context as operations: a source, an archive in it that is unpacked, one directory of all that."""

from husk.builder.dockerfile.options import RemoteContext
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Files, Operation, Source
from husk.builder.store.file_actions import NONE, Copy, FileAction

CONTEXT_NAME = "[internal] load build context"
_UNPACK_NAME = "[internal] unpack build context"


def add(graph: Graph, context: Source | RemoteContext) -> Edge:
    """Add a context to a graph, and return the edge that has its files."""
    if isinstance(context, Source):
        return graph.add(Operation(context), name=CONTEXT_NAME)
    edge = graph.add(Operation(context.source), name=context.name or CONTEXT_NAME)
    if context.archive:
        copy = Copy(source="/" + context.archive, destination="/", unpack=True)
        edge = _copied(graph, edge, copy)
    if context.directory:
        copy = Copy(source="/" + context.directory, destination="/", contents_only=True)
        edge = _copied(graph, edge, copy)
    return edge


def _copied(graph: Graph, edge: Edge, copy: Copy) -> Edge:
    action = FileAction(action=copy, input=NONE, second_input=0, output=0)
    return graph.add(Operation(Files([action]), [edge]), name=_UNPACK_NAME)
