"""Statements about results, with doubles of what asks sources and of what scans."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.attest.attester import Attester, source_of, steps_of
from husk.builder.attest.slsa import PREDICATE_V02, Captured, Material
from husk.builder.attest.wanted import Provenance, Sbom, WantedAttestations
from husk.builder.graph.graph import Definition, Graph, Location, SourceFile
from husk.builder.graph.operations import (
    CacheMount,
    Diff,
    Edge,
    Exec,
    ExecMount,
    Files,
    Merge,
    Operation,
    ProcessSpec,
    SecretMount,
    Source,
    SshMount,
    TmpfsMount,
)
from husk.builder.jobs.results import Predicate, Question, Result
from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory, MakeFile, Owner, Remove, Symlink
from husk.registry.manifest import Descriptor, Platform
from tests.unit.builder.jobs.test_jobs import Bench
from tests.unit.builder.solver.solving import chain

SBOM = Predicate(type="sbom", body=b"{}")


class Doubles:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def of(self, operations: Any, session: Any) -> Captured:
        self.asked = [one.body.identifier for one in operations if isinstance(one.body, Source)]
        return Captured(materials=[Material("pkg:docker/busybox@latest", "sha256:aa")])

    async def scan(self, job: Any, platform: str, ref: Any, wanted: Any) -> list[Predicate]:
        return [SBOM]


@pytest.fixture
async def job():
    bench = Bench()
    job = await bench.jobs.begin("one", None)
    yield job
    await bench.jobs.end(job)


@pytest.fixture
def doubles() -> Any:
    return Doubles()


def attester(doubles: Any) -> Attester:
    return Attester(doubles, lambda: doubles)


QUESTION = Question(frontend="dockerfile.v0", attributes={"build-arg:A": "1"}, evaluate=True)


async def test_a_history_has_everything_though_nobody_asks(job, doubles):
    result = await job.solve(QUESTION)
    stated = await attester(doubles).attest(job, result, WantedAttestations())
    assert not any(stated.predicates.values())
    ((kept,),) = job.predicates.values()
    assert kept.type == PREDICATE_V02
    said = json.loads(kept.body)
    assert said["invocation"]["parameters"]["args"] == {"build-arg:A": "1"}
    assert said["materials"][0]["digest"] == {"sha256": "aa"}
    source = said["metadata"]["https://mobyproject.org/buildkit@v1#metadata"]["source"]
    assert source["infos"][0]["filename"] == "Dockerfile"
    assert source["infos"][0]["llbDefinition"]
    # The base image, the Dockerfile and what is ignored.
    assert {"local://dockerfile", "local://context"} < set(doubles.asked)


async def test_what_is_asked_for(job, doubles):
    result = await job.solve(QUESTION)
    wanted = WantedAttestations(provenance=Provenance(everything=False, inline_only=True), sbom=Sbom())
    ((first, second),) = (await attester(doubles).attest(job, result, wanted)).predicates.values()
    assert first is SBOM
    assert second.inline_only
    assert "buildConfig" not in json.loads(second.body)
    assert second.completed is None
    ((_, sbom),) = job.predicates.values()
    assert sbom is SBOM


async def test_layers_are_told_when_they_go_out(job, doubles):
    result = await job.solve(Question(definition=Definition(*chain("make")), evaluate=True))
    result.ref.build = known_as("layer:a", "layer:a diff:b", "diff:other", stack="layer:a diff:b diff:c")(result.ref)
    ((stated,),) = (
        await attester(doubles).attest(job, result, WantedAttestations(provenance=Provenance()))
    ).predicates.values()
    layers = [Descriptor(media_type="m", digest=f"sha256:{one}", size=1) for one in "abc"]
    assert stated.completed is not None
    metadata = json.loads(stated.completed(layers))["metadata"]["https://mobyproject.org/buildkit@v1#metadata"]
    told = {name: [one["digest"][-1] for one in chain] for name, (chain,) in metadata["layers"].items()}
    assert told == {"step0:0": ["a"], "step0:1": ["a", "b"], "step1:0": ["a"], "step1:1": ["a", "b"]}
    assert "layers" not in json.loads(stated.body)["metadata"]["https://mobyproject.org/buildkit@v1#metadata"]


def known_as(*outputs: str, stack: str) -> Any:
    """A ref of which each step has these outputs."""

    def of(ref: Any) -> Any:
        record = SimpleNamespace(outputs=list(outputs))
        result = SimpleNamespace(outputs=[stack])

        async def build() -> Any:
            return SimpleNamespace(known=lambda digest: record, record=result)

        return build

    return of


async def test_no_result_no_statement(job, doubles):
    result = Result(metadata={"result.txt": b"x"})
    assert await attester(doubles).attest(job, result, WantedAttestations(sbom=Sbom())) is result
    assert job.predicates == {}


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
