"""Layers of a result are what lies below it, and not what is copied from or mounted."""

from husk.builder.graph.graph import Graph
from husk.builder.graph.layered import layered
from husk.builder.graph.operations import (
    Edge,
    Exec,
    ExecMount,
    FileAction,
    Files,
    Merge,
    Operation,
    ProcessSpec,
    Source,
)
from husk.builder.store.file_actions import Copy, MakeDirectory


def source(graph: Graph, name: str) -> Edge:
    return graph.add(Operation(Source(f"local://{name}")))


def copy(graph: Graph, below: Edge, files: Edge) -> Edge:
    action = FileAction(action=Copy(source="/", destination="/x"), input=0, second_input=1, output=0)
    return graph.add(Operation(Files([action]), [below, files]))


def test_what_is_copied_from_is_no_layer():
    graph = Graph()
    base, context = source(graph, "base"), source(graph, "context")
    result = copy(graph, base, context)
    assert layered(graph, result) == {base.digest, result.digest}


def test_a_process_has_its_root_below_it_and_no_other_mount():
    graph = Graph()
    base, context = source(graph, "base"), source(graph, "context")
    below = copy(graph, base, context)
    mounts = [ExecMount(target="/", input=0, output=0), ExecMount(target="/m", input=1)]
    process = Exec(process=ProcessSpec(args=["true"]), mounts=mounts)
    result = graph.add(Operation(process, [below, context]))
    assert layered(graph, result) == {base.digest, below.digest, result.digest}


def test_all_that_is_merged_are_layers():
    graph = Graph()
    base, context = source(graph, "base"), source(graph, "context")
    action = FileAction(action=Copy(source="/", destination="/x"), second_input=0, output=0)
    linked = graph.add(Operation(Files([action]), [context]))
    result = graph.add(Operation(Merge(), [base, linked]))
    assert layered(graph, result) == {base.digest, linked.digest, result.digest}


def test_actions_that_follow_each_other():
    graph = Graph()
    base, context = source(graph, "base"), source(graph, "context")
    actions = [
        FileAction(action=MakeDirectory(path="/x", mode=0o755), input=0),
        FileAction(action=Copy(source="/", destination="/x"), input=2, second_input=1, output=0),
    ]
    result = graph.add(Operation(Files(actions), [base, context]))
    assert layered(graph, result) == {base.digest, result.digest}
