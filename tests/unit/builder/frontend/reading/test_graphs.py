from husk.builder.frontend.reading import graphs
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import (
    CacheMount,
    Diff,
    Exec,
    ExecMount,
    Files,
    Merge,
    NestedBuild,
    Operation,
    ProcessSpec,
    SecretMount,
    SecretVariable,
    Source,
    StepLimits,
    StepUlimit,
    TmpfsMount,
)
from husk.builder.store.file_actions import NONE, Copy, FileAction, MakeFile, Owner
from husk.registry.manifest import Platform


def test_what_has_gone_over_is_the_same():
    graph = Graph()
    source = graph.add(Operation(Source("local://context", {"a": "b"})), name="context")
    process = ProcessSpec(
        args=["x"],
        extra_hosts=[("a", "1.2.3.4")],
        ulimits=[StepUlimit("nofile", 1, 2)],
        proxy={"http_proxy": "p"},
        limits=StepLimits(memory=1, security=["x"]),
    )
    mounts = [
        ExecMount(target="/", input=0, output=0),
        ExecMount(target="/c", kind=CacheMount("id", "locked")),
        ExecMount(target="/t", kind=TmpfsMount(3)),
        ExecMount(target="/s", kind=SecretMount("s", uid=4)),
    ]
    run = Exec(process=process, mounts=mounts, network="host", insecure=True, secret_env=[SecretVariable("a", "A")])
    ran = graph.add(
        Operation(run, [source], Platform("arm64", "linux", "v8")),
        name="run",
        description={"d": "e"},
        ignore_cache=True,
        group="g",
        locations=[Location(0, 1, 2)],
    )
    copy = Copy(source="/", destination="/x", user=Owner(name="u", input=0), include=["*"], mode=0o644)
    actions = [
        FileAction(action=copy, input=0, second_input=1),
        FileAction(action=MakeFile(path="/f", mode=1, data=b"\xff\0"), input=2, output=0),
    ]
    made = graph.add(Operation(Files(actions), [ran, source]))
    merged = graph.add(Operation(Merge(), [ran, made]))
    graph.add(Operation(Diff(NONE, 0), [merged]))
    graph.add(Operation(NestedBuild(NONE, {"a": 0}, {"b": "c"}), [merged]))

    other = Graph()
    weights = [graphs.add(other, piece) for piece in graphs.pieces(graph)]
    assert list(other) == list(graph)
    assert (other.weight, graph.weight) == (sum(weights), 0)


def test_many_little_texts_weigh_more_than_they_are_written_in():
    graph, other = Graph(), Graph()
    graph.add(Operation(Exec(process=ProcessSpec(args=["x"], env=["a="] * 1000), mounts=[])))
    (piece,) = graphs.pieces(graph)
    assert graphs.add(other, piece) > 10 * len(piece)
