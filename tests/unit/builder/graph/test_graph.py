import pytest

from husk.builder.graph.graph import LONGEST_NAME, Graph, GraphLimits, layered
from husk.builder.graph.operations import (
    Diff,
    Edge,
    Exec,
    ExecMount,
    Files,
    Merge,
    Operation,
    ProcessSpec,
    Source,
    digest_of,
)
from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory
from husk.errors import InvalidParameter


def source(name):
    return Operation(Source(f"docker-image://{name}"))


def test_the_same_operation_is_one_vertex():
    graph = Graph()
    assert graph.add(source("a"), name="first") == graph.add(source("a"), name="again")
    assert [vertex.name for vertex in graph] == ["first"]


def test_digests_tell_operations_apart():
    a, b = Edge(digest_of(source("a"))), Edge(digest_of(source("b")))
    operations = [
        source("a"),
        source("b"),
        Operation(Merge(), [a, b]),
        Operation(Merge(), [b, a]),
        Operation(Diff(0, 1), [a, b]),
    ]
    assert len({digest_of(operation) for operation in operations}) == len(operations)
    assert digest_of(Operation(Source("x", {"a": "1", "b": "2"}))) == digest_of(
        Operation(Source("x", {"b": "2", "a": "1"}))
    )


def test_inputs_come_first():
    graph = Graph()
    with pytest.raises(InvalidParameter, match="an input that is not in the build"):
        graph.add(Operation(Merge(), [Edge("sha256:0")]))
    assert len(graph) == 0


def test_only_what_is_needed():
    graph = Graph()
    a, b, c = (graph.add(source(name)) for name in "abc")
    merged = graph.add(Operation(Merge(), [a, c]))
    graph.add(Operation(Merge(), [a, b]))
    assert [vertex.digest for vertex in graph.needed_for(merged)] == [a.digest, c.digest, merged.digest]
    assert merged.digest in graph
    assert graph[a.digest].operation == source("a")


def test_a_graph_has_so_many_operations_and_inputs():
    limits = GraphLimits(operations=6, inputs=5, inputs_of_one=3)
    graph = Graph(limits=limits)
    a = graph.add(source("a"))
    with pytest.raises(InvalidParameter, match="one of more than 3"):
        graph.add(Operation(Merge(), [a] * 4))
    graph = Graph(limits=limits)
    a = graph.add(source("a"))
    graph.add(Operation(Merge(), [a] * 3))
    with pytest.raises(InvalidParameter, match="more than 5 inputs"):
        graph.add(Operation(Diff(0, 1), [a] * 3))
    graph = Graph(limits=limits)
    for number in range(6):
        graph.add(source(str(number)))
    graph.add(source("5"))
    with pytest.raises(InvalidParameter, match="more than 6 operations"):
        graph.add(source("6"))


def test_sources_have_identifiers_of_a_length_that_somebody_means():
    graph = Graph()
    graph.add(Operation(Source("stack://" + " ".join(["layer:" + "0" * 71] * 480))))
    for identifier in ("https://x/" + "y" * 16_384, "stack://" + "y" * 65_536):
        with pytest.raises(InvalidParameter, match="letters at most"):
            graph.add(Operation(Source(identifier)))
    assert len(graph) == 1


def test_a_long_name_is_cut():
    graph = Graph()
    edge = graph.add(source("a"), name="x" * 100_000)
    assert graph[edge.digest].name == "x" * LONGEST_NAME + "..."


def layered_source(graph: Graph, name: str) -> Edge:
    return graph.add(Operation(Source(f"local://{name}")))


def copy(graph: Graph, below: Edge, files: Edge) -> Edge:
    action = FileAction(action=Copy(source="/", destination="/x"), input=0, second_input=1, output=0)
    return graph.add(Operation(Files([action]), [below, files]))


def test_what_is_copied_from_is_no_layer():
    graph = Graph()
    base, context = layered_source(graph, "base"), layered_source(graph, "context")
    result = copy(graph, base, context)
    assert layered(graph, result) == {base.digest, result.digest}


def test_a_process_has_its_root_below_it_and_no_other_mount():
    graph = Graph()
    base, context = layered_source(graph, "base"), layered_source(graph, "context")
    below = copy(graph, base, context)
    mounts = [ExecMount(target="/", input=0, output=0), ExecMount(target="/m", input=1)]
    process = Exec(process=ProcessSpec(args=["true"]), mounts=mounts)
    result = graph.add(Operation(process, [below, context]))
    assert layered(graph, result) == {base.digest, below.digest, result.digest}


def test_all_that_is_merged_are_layers():
    graph = Graph()
    base, context = layered_source(graph, "base"), layered_source(graph, "context")
    action = FileAction(action=Copy(source="/", destination="/x"), second_input=0, output=0)
    linked = graph.add(Operation(Files([action]), [context]))
    result = graph.add(Operation(Merge(), [base, linked]))
    assert layered(graph, result) == {base.digest, linked.digest, result.digest}


def test_actions_that_follow_each_other():
    graph = Graph()
    base, context = layered_source(graph, "base"), layered_source(graph, "context")
    actions = [
        FileAction(action=MakeDirectory(path="/x", mode=0o755), input=0),
        FileAction(action=Copy(source="/", destination="/x"), input=2, second_input=1, output=0),
    ]
    result = graph.add(Operation(Files(actions), [base, context]))
    assert layered(graph, result) == {base.digest, result.digest}
