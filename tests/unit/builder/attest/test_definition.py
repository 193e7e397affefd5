"""Graphs as provenance has them."""

import base64
import json
from typing import Any

from husk.builder.attest.definition import source_of, steps_of
from husk.builder.graph.graph import Graph, Location, SourceFile
from husk.builder.graph.operations import (
    CacheMount,
    Copy,
    Diff,
    Edge,
    Exec,
    ExecMount,
    FileAction,
    Files,
    MakeDirectory,
    MakeFile,
    Merge,
    Operation,
    Owner,
    ProcessSpec,
    Remove,
    SecretMount,
    Source,
    SshMount,
    Symlink,
    TmpfsMount,
)
from husk.registry.manifest import Platform

HERE = Platform("amd64", "linux")


def op(body, *inputs: Edge, platform: Platform | None = None):
    """Return one operation as it is written; all it takes is the first output of sources."""
    graph = Graph()
    edges = [graph.add(Operation(Source(f"local://{number}"))) for number in range(len(inputs))]
    steps = steps_of(graph, graph.add(Operation(body, edges, platform)))
    written = json.loads(json.dumps(steps.definition))
    return written[len(inputs)]["op"]["Op"]


def step(action, first, second, output):
    return FileAction(action=action, input=first, second_input=second, output=output)


def test_steps_are_numbered_inputs_first_and_the_result_is_the_last():
    graph = Graph()
    base = graph.add(Operation(Source("docker-image://x"), [], HERE))
    context = graph.add(Operation(Source("local://context", {"local.session": "s", "local.differ": "none"})))
    copied = graph.add(
        Operation(Files([step(Copy(source="/a", destination="/b"), 0, 1, 0)]), [base, context]),
        locations=[Location(0, 3, 4)],
    )
    steps = steps_of(graph, copied)
    assert [one["id"] for one in steps.definition] == ["step0", "step1", "step2", "step3"]
    first, second, third, last = steps.definition
    assert first["op"] == {
        "Op": {"source": {"identifier": "docker-image://x"}},
        "platform": {"Architecture": "amd64", "OS": "linux"},
        "constraints": {},
    }
    assert second["op"]["Op"]["source"]["attrs"] == {"local.differ": "none"}  # type: ignore[index]
    assert third["inputs"] == ["step0:0", "step1:0"]
    assert last == {"id": "step3", "op": {"Op": {}}, "inputs": ["step2:0"]}
    assert steps.names[copied.digest] == "step2"


def infos_of(source: Any) -> list[Any]:
    return list(source["infos"])


def test_the_source_tells_lines_and_how_it_came():
    graph = Graph([SourceFile("Dockerfile", b"FROM x")])
    edge = graph.add(Operation(Source("docker-image://x")), locations=[Location(0, 1, 1)])
    loaded = Operation(Source("local://dockerfile"))
    source = source_of(graph, steps_of(graph, edge), loaded)
    assert source["locations"] == {"step0": {"locations": [{"ranges": [{"start": {"line": 1}, "end": {"line": 1}}]}]}}
    info = infos_of(source)[0]
    assert (info["filename"], base64.b64decode(info["data"])) == ("Dockerfile", b"FROM x")
    assert info["llbDefinition"][0]["op"]["Op"]["source"]["identifier"] == "local://dockerfile"
    info = infos_of(source_of(graph, steps_of(graph, edge), None))[0]
    assert "llbDefinition" not in info


def test_processes():
    body = Exec(
        process=ProcessSpec(args=["a"], extra_hosts=[("h", "1.2.3.4")]),
        mounts=[
            ExecMount(target="/", input=0, output=0),
            ExecMount(target="/c", kind=CacheMount("id", "locked")),
            ExecMount(target="/t", kind=TmpfsMount(5)),
            ExecMount(target="/s", kind=SecretMount("key", optional=True)),
            ExecMount(target="/ssh", kind=SshMount("default")),
        ],
        network="none",
    )
    written = op(body, Edge("x"))["exec"]
    assert written["meta"] == {"args": ["a"], "cwd": "/", "extraHosts": [{"Host": "h", "IP": "1.2.3.4"}]}
    root, cache, memory, secret, agent = written["mounts"]
    assert root == {"dest": "/"}
    assert cache["cacheOpt"] == {"ID": "id", "sharing": 2}
    assert memory["TmpfsOpt"] == {"size": 5}
    assert secret["secretOpt"] == {"ID": "key", "mode": 0o400, "optional": True}
    assert agent["SSHOpt"] == {"ID": "default", "mode": 0o600}
    assert written["network"] == 2


def test_files():
    actions = [
        step(MakeFile(path="/f", mode=0o644, data=b"x", user=Owner(name="me", input=0)), 0, -1, -1),
        step(MakeDirectory(path="/d", mode=0o755, make_parents=True), 1, -1, -1),
        step(Symlink(target="/f", path="/l"), 2, -1, -1),
        step(Remove(path="/f", may_be_missing=True), 3, -1, 0),
    ]
    made, directory, link, removed = (one["Action"] for one in op(Files(actions), Edge("x"))["file"]["actions"])
    assert made["mkfile"]["owner"] == {"user": {"User": {"byName": {"name": "me"}}}}
    assert made["mkfile"]["data"] == base64.b64encode(b"x").decode()
    assert directory == {"mkdir": {"path": "/d", "mode": 0o755, "makeParents": True, "timestamp": -1}}
    assert link == {"symlink": {"oldpath": "/f", "newpath": "/l", "timestamp": -1}}
    assert removed == {"rm": {"path": "/f", "allowNotFound": True}}


def test_merges_and_differences():
    assert op(Merge(), Edge("x"), Edge("y")) == {"merge": {"inputs": [{}, {"input": 1}]}}
    assert op(Diff(-1, 0), Edge("x")) == {"diff": {"lower": {"input": -1}, "upper": {}}}
