"""Statements about results, with doubles of what asks sources and of what scans."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.attest.attester import Attester
from husk.builder.attest.slsa import PREDICATE_V02, Captured, Material
from husk.builder.attest.wanted import Provenance, Sbom, WantedAttestations
from husk.builder.graph.graph import Definition
from husk.builder.graph.operations import Source
from husk.builder.jobs.results import Predicate, Question, Result
from husk.registry.manifest import Descriptor
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
