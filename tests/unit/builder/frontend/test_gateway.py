"""Frontends that are images, with doubles of the container and of what answers their calls."""

import asyncio
import os
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.builder.frontend.gateway import LIMITS, GatewayFrontend, GatewayLimits, check_capabilities, exec_of
from husk.builder.graph.graph import Definition
from husk.builder.jobs.failure import BuildFailed, MissingCapability
from husk.builder.jobs.results import Question, Result
from husk.engine.model.container_config import ContainerConfig
from husk.errors import InvalidParameter, NotImplementedYet
from tests.unit.builder.frontend.test_dockerfile_frontend import Images
from tests.unit.builder.jobs.test_jobs import Bench as Jobs
from tests.unit.builder.solver.solving import chain


class Container:
    """Runs a frontend that is a function; its streams are real pipes."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self.bodies: list[Any] = []
        self.inputs: list[Any] = []

    @asynccontextmanager
    async def held(self, body: Any, inputs: Any, session: Any, platform: Any = None) -> Any:
        self.bodies.append(body)
        self.inputs.append(inputs)
        yield self

    def talk(self, process: Any, streams: Any) -> Any:
        self._streams = streams
        return self

    async def run(self) -> int:
        return await self._work(self._streams)


class Bridge:
    def __init__(self, job_given: Any = None, hangs_up: bool = False) -> None:
        self.environment = {"BUILDKIT_WORKERS": "[]"}
        self._given = job_given
        self._hangs_up = hangs_up
        self.jobs: list[Any] = []

    async def serve(self, streams: Any, job: Any) -> None:
        self.jobs.append(job)
        if self._given:
            self._given(job)
        if not self._hangs_up:
            await streams.read()


async def ends(streams: Any) -> int:
    streams.begin()
    await asyncio.sleep(0.01)
    return 0


async def complains(streams: Any) -> int:
    os.write(streams.stderr, b"oh no\n")
    streams.begin()
    return 3


async def hangs(streams: Any) -> int:
    await asyncio.sleep(1000)
    return 0


class Bench:
    def __init__(self, work: Any, bridge: Any, file: str = "FROM busybox", limits: GatewayLimits = LIMITS) -> None:
        self.container = Container(work)
        images: Any = Images()
        steps: Any = self.container
        self.frontend = GatewayFrontend(images, steps, limits)
        self.frontend.bridge = bridge
        self.jobs = Jobs(file, frontends=lambda: self.frontend)

    async def solve(self, question: Question | None = None, **attributes: str) -> Any:
        job = await self.jobs.jobs.begin("one", None)
        question = question or Question(frontend="gateway.v0", attributes={"source": "front", **attributes})
        try:
            return await job.solve(question)
        finally:
            await self.jobs.jobs.end(job)


def gives_a_ref(job: Any) -> None:
    ref = job.definition(Definition(*chain("make")))
    job.keep(job.definition(Definition(*chain("other"))))
    job.give(Result(ref=ref, metadata={"a": b"b"}))


async def test_its_result_is_the_builds_and_its_options_are_in_its_environment():
    bench = Bench(ends, Bridge(gives_a_ref))
    result = await bench.solve(a="b")
    assert result.metadata == {"a": b"b"}
    (body,) = bench.container.bodies
    assert "BUILDKIT_FRONTEND_OPT_0=source=front" in body.process.env
    assert "BUILDKIT_FRONTEND_OPT_1=a=b" in body.process.env
    assert body.process.env[-2:] == ["BUILDKIT_SESSION_ID=", "BUILDKIT_WORKERS=[]"]
    assert len(bench.container.inputs[0]) == 1


async def test_a_file_that_asks_for_it_is_read_by_it():
    bench = Bench(ends, Bridge(lambda job: job.give(Result(metadata={"x": b""}))), "# syntax=front a b\nrubbish")
    assert (await bench.solve(Question(frontend="dockerfile.v0"))).metadata == {"x": b""}
    assert "BUILDKIT_FRONTEND_OPT_1=cmdline=front a b" in bench.container.bodies[0].process.env
    bench = Bench(complains, Bridge(), "# syntax=front\nrubbish")
    with pytest.raises(BuildFailed, match="exit code: 3: oh no") as failed:
        await bench.solve(Question(frontend="dockerfile.v0"))
    assert failed.value.locations[0].start == 1


@pytest.mark.parametrize(
    ("work", "bridge", "message"),
    [
        (ends, Bridge(), "ended without a result"),
        (complains, Bridge(), "failed: exit code: 3: oh no"),
        (complains, Bridge(lambda job: job.fail(InvalidParameter("its own words"))), "its own words"),
        (hangs, Bridge(hangs_up=True), "hung up without a result"),
    ],
)
async def test_what_goes_wrong(work, bridge, message):
    with pytest.raises(InvalidParameter, match=message):
        await Bench(work, bridge, limits=GatewayLimits(short_patience=0.05)).solve()


async def test_one_that_does_not_leave_after_its_result_is_left():
    bench = Bench(hangs, Bridge(gives_a_ref), limits=GatewayLimits(patience=0.05))
    assert (await bench.solve()).ref is not None


async def test_what_is_refused():
    with pytest.raises(InvalidParameter, match="no source"):
        await Bench(ends, Bridge()).solve(Question(frontend="gateway.v0"))
    with pytest.raises(NotImplementedYet):
        await Bench(ends, None).solve()
    with pytest.raises(InvalidParameter, match="more than 0"):
        await Bench(ends, Bridge(), limits=GatewayLimits(deepest=0)).solve()


def test_labels_of_the_image():
    labels = {"moby.buildkit.frontend.network.none": "true", "moby.buildkit.frontend.caps": "a, moby.x"}
    config = ContainerConfig(labels=labels, entrypoint=["/bin/f", "x"], env=["A=b"], working_dir="/w")
    body = exec_of(config, {"B": "c"})
    assert (body.network, body.process.args, body.process.cwd) == ("none", ["/bin/f", "x"], "/w")
    assert body.process.env == ["A=b", "B=c"]
    plain = exec_of(ContainerConfig(), {})
    assert (plain.network, plain.process.args) == ("sandbox", ["/run"])
    check_capabilities(labels, Question(attributes={"frontend.caps": "moby.x+forward"}))
    with pytest.raises(MissingCapability, match="capability other"):
        check_capabilities(labels, Question(attributes={"frontend.caps": "other"}))
    with pytest.raises(MissingCapability, match="capability moby"):
        check_capabilities(None, Question(inputs={"x": Definition(*chain("make"))}))
