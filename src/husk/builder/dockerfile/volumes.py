"""Volumes of an image while it is built by the rules of the classic builder: places that steps may write to in vain."""

import posixpath

from husk.builder.dockerfile.errors import Span
from husk.builder.dockerfile.state import StageState, locations
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import NONE, Edge, FileAction, Files, MakeDirectory, Operation


def prepared(graph: Graph, state: StageState, span: Span) -> tuple[Edge | None, list[str]]:
    """The file system of a stage with a directory for each of its volumes, and their paths; outer ones come first."""
    paths = sorted({posixpath.normpath("/" + path.lstrip("/")) for path in state.config.volumes or ()} - {"/"})
    if not paths:
        return state.root, []
    actions = []
    for number, path in enumerate(paths):
        before = (0 if state.root else NONE) if number == 0 else len([state.root] if state.root else []) + number - 1
        made = MakeDirectory(path=path, mode=0o755, make_parents=True)
        actions.append(FileAction(action=made, input=before, output=0 if number + 1 == len(paths) else NONE))
    operation = Operation(Files(actions), [state.root] if state.root else [], state.platform)
    return graph.add(operation, name=f"[internal] volumes {' '.join(paths)}", locations=locations(span)), paths
