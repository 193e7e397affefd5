"""Jobs, with doubles of what does the work."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.frontend.dockerfile_frontend import DockerfileFrontend
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.graph.graph import Definition, Location, SourceFile
from husk.builder.jobs.containers import Hold
from husk.builder.jobs.failure import BuildFailed
from husk.builder.jobs.jobs import LIMITS, ImageFrontends, Job, JobLimits, Jobs
from husk.builder.jobs.results import Question, Result
from husk.builder.jobs.status_log import WarningTold
from husk.builder.solver.solver import Solver
from husk.builder.steps.plan import StepFailed
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound
from tests.support.parsing import Here
from tests.unit.builder.frontend.test_dockerfile_frontend import Client, Images
from tests.unit.builder.solver.solving import Memory, Worker, chain, never_ending


class Bench:
    def __init__(
        self,
        dockerfile: str = "FROM busybox\nCMD x",
        limits: JobLimits = LIMITS,
        hold: Hold | None = None,
        frontends: Callable[[], ImageFrontends] | None = None,
    ) -> None:
        self.worker: Any = Worker()
        self.memory: Any = Memory()
        files: Any = Client(Dockerfile=dockerfile)
        self.files = files
        images: Any = Images()
        solver = Solver(self.worker, self.memory)
        frontend = DockerfileFrontend(solver, files, images, images, Dockerfiles(Here()))
        self.jobs = Jobs(solver, frontend, frontends, hold, limits=limits)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@asynccontextmanager
async def begun(bench: Bench) -> AsyncIterator[Job]:
    job = await bench.jobs.begin("one", None)
    yield job
    await bench.jobs.end(job)


@pytest.fixture
async def job(bench):
    async with begun(bench) as job:
        yield job


async def test_a_definition_becomes_a_ref_that_is_made_when_it_is_needed(bench, job):
    result = await job.solve(Question(definition=Definition(*chain("make"))))
    assert bench.worker.ran == []
    assert result.ref is not None
    id = job.keep(result.ref)
    assert job.ref(id) is result.ref
    assert await result.ref.stack() == "make(image())"


async def test_nobody_waits_for_a_job_that_has_ended(bench):
    job = await bench.jobs.begin("two", None)
    await bench.jobs.end(job)
    with pytest.raises(NotFound):
        await bench.jobs.get("two", patience=1000)
    job = await bench.jobs.begin("two", None)
    assert await bench.jobs.get("two") is job
    await bench.jobs.end(job)


async def test_who_waits_gets_a_job_that_has_ended_at_once(bench):
    tasks = Tasks()
    waiting = [tasks.spawn(bench.jobs.get("two"), "wait", awaited=True) for _ in range(2)]
    await asyncio.sleep(0)
    job = await bench.jobs.begin("two", None)
    await bench.jobs.end(job)
    assert await asyncio.gather(*waiting) == [job, job]


async def test_who_closes_a_job_and_is_cancelled_meanwhile_leaves_nothing():
    for turns in range(1, 12):
        bench = Bench()
        begun = never_ending(bench.worker, "b")
        job = (await bench.jobs.begin("two", None)).child({})
        await job.solve(Question(definition=Definition(*chain("a")), evaluate=True))
        endless = Question(definition=Definition(*chain("a", "b")), evaluate=True)
        solving = Tasks().spawn(job.solve(endless), "solve", awaited=True)
        await begun.wait()
        closing = Tasks().spawn(job.close(), "close", awaited=True)
        for _ in range(turns):
            await asyncio.sleep(0)
            closing.cancel()
        await asyncio.wait([closing, solving])
        assert bench.memory.held == [], f"cancelled {turns} times"
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_ref_knows_what_led_to_it(job):
    question = Question(frontend="dockerfile.v0")
    result = await job.solve(question)
    assert job.question_of(result.ref) is question


async def test_or_at_once(bench, job):
    await job.solve(Question(definition=Definition(*chain("make")), evaluate=True))
    assert bench.worker.ran == ["image", "make"]


async def test_a_dockerfile_is_solved_by_our_own_frontend(job):
    result = await job.solve(Question(frontend="dockerfile.v0"))
    assert json.loads(result.metadata["containerimage.config"])["config"]["Cmd"] == ["/bin/sh", "-c", "x"]
    (platform,) = json.loads(result.metadata["refs.platforms"])["Platforms"]
    assert platform["Platform"]["os"] == "linux"
    assert result.ref is not None


async def test_checks_of_the_dockerfile_are_told(job):
    await job.solve(Question(frontend="dockerfile.v0"))
    (warning,) = [told for told in job.log.told if isinstance(told, WarningTold)]
    assert warning.short.startswith(b"JSONArgsRecommended: ")
    assert warning.short.endswith(b"(line 2)")
    assert warning.source is not None
    assert (warning.locations[0].start, warning.source.name) == (2, "Dockerfile")
    assert warning.vertex == job.log.told[0].vertex.digest


async def test_several_platforms_have_refs_of_their_own(job):
    attributes = {"platform": "linux/amd64,linux/arm64", "build-arg:SOURCE_DATE_EPOCH": "7"}
    result = await job.solve(Question(frontend="dockerfile.v0", attributes=attributes))
    assert list(result.refs) == ["linux/amd64", "linux/arm64"]
    assert "containerimage.config/linux/arm64" in result.metadata
    assert result.metadata["source.date.epoch"] == b"7"


async def test_a_frontend_that_is_not_there(job):
    with pytest.raises(InvalidParameter, match="failed to find frontend: gopher"):
        await job.solve(Question(frontend="gopher"))


async def test_a_client_gives_the_result_itself(job):
    job.give(result := Result(metadata={"a": b"b"}))
    job.give(Result())
    assert await job.given() is result


async def test_or_says_that_it_failed(job):
    job.fail(InvalidParameter("no"))
    with pytest.raises(InvalidParameter, match="no"):
        await job.given()


async def test_what_it_held_is_let_go_of_at_its_end(bench):
    job = await bench.jobs.begin("one", None)
    await job.solve(Question(definition=Definition(*chain("make")), evaluate=True))
    assert bench.memory.held
    await bench.jobs.end(job)
    assert bench.memory.held == []
    told = [each async for new in job.log.follow() for each in new]
    assert told, "and who follows it hears the end"


async def test_one_that_is_asked_for_before_it_begins_is_waited_for(bench):
    asking = Tasks().spawn(bench.jobs.get("late"), "get", awaited=True)
    job = await bench.jobs.begin("late", None)
    assert await asking is job


async def test_ids(bench, job):
    with pytest.raises(Conflict):
        await bench.jobs.begin("one", None)
    with pytest.raises(InvalidParameter):
        await bench.jobs.begin("", None)
    with pytest.raises(NotFound):
        await bench.jobs.get("other", patience=0.01)
    with pytest.raises(NotFound):
        job.ref("x")


@pytest.mark.parametrize(
    ("flag", "name"), [("--network=host", "network.host"), ("--security=insecure", "security.insecure")]
)
async def test_a_build_gets_nothing_that_its_user_did_not_allow(bench, flag, name):
    bench.files.files["Dockerfile"] = f"FROM busybox\nRUN {flag} x".encode()
    job = await bench.jobs.begin("one", None)
    with pytest.raises(Forbidden, match=f"^{name} is not allowed$"):
        await job.solve(Question(frontend="dockerfile.v0"))
    await bench.jobs.end(job)
    job = await bench.jobs.begin("one", None, [name])
    assert (await job.solve(Question(frontend="dockerfile.v0"))).ref is not None
    await bench.jobs.end(job)


async def test_a_step_that_failed_can_be_looked_into(bench, job):
    bench.worker.fail.add("make")
    result = await job.solve(Question(definition=Definition(*chain("make"))))
    (vertex,) = [one for one in result.ref.graph if one.name == "make"]
    step = job.failed_step(BuildFailed("bad", vertex=vertex.digest))
    assert step.body == vertex.operation.body
    assert await job.ref(step.inputs[0]).stack() == "image()"
    assert step.outputs == []
    failed = StepFailed(["make"], 2)
    failed.left = ["image() diff:left", ""]
    job.log.started(vertex)
    job.log.ended(vertex, error=failed.message)
    first, second = job.failed_step(job.explained(failed)).outputs
    (there,) = job.ref(first).graph
    assert (there.operation.body.identifier, second) == ("stack://image() diff:left", "")
    (image,) = [one for one in result.ref.graph if one.name == "image"]
    assert job.failed_step(BuildFailed("bad", vertex=image.digest)) is None
    assert job.failed_step(NotFound("other")) is None


async def test_warnings_have_an_end():
    async with begun(Bench("FROM busybox\nMAINTAINER x\nCMD x", JobLimits(warnings=2))) as job:
        for _ in range(2):
            job.warn(WarningTold(vertex="", level=1, short=b"x"))
        with pytest.raises(InvalidParameter, match="2 warnings at most"):
            job.warn(WarningTold(vertex="", level=1, short=b"x"))
        assert len(job.log.told) == 2
        assert (await job.solve(Question(frontend="dockerfile.v0"))).ref is not None, "its own are left out"


async def test_and_they_have_an_end_in_bytes():
    async with begun(Bench(limits=JobLimits(warned=110))) as job:
        with pytest.raises(InvalidParameter, match="at most"):
            job.warn(WarningTold(vertex="", level=1, short=b"x" * 11))


@pytest.mark.parametrize(
    "large",
    [
        {"vertex": "x" * 100_000},
        {"locations": [Location(0, 1, 1)] * 1000},
        {"detail": [b""] * 1000},
        {"source": SourceFile("x" * 100_000, b"")},
    ],
)
async def test_all_of_a_warning_counts(large):
    async with begun(Bench(limits=JobLimits(warned=50_000))) as job:
        with pytest.raises(InvalidParameter, match="at most"):
            job.warn(WarningTold(**{"vertex": "", "level": 1, "short": b"x", **large}))


async def test_what_a_build_asks_for_again_is_kept_once_and_has_an_end():
    async with begun(Bench(limits=JobLimits(operations=5, refs=3))) as job:
        first, again = (job.definition(Definition(*chain("a", "b"))) for _ in range(2))
        assert first.graph is not again.graph
        assert all(one is other for one, other in zip(first.graph, again.graph, strict=True))
        job.definition(Definition(*chain("c")))  # and the image, which is known
        child = job.child({})
        child.definition(Definition(*chain("d")))
        with pytest.raises(InvalidParameter, match="5 operations at most"):
            child.definition(Definition(*chain("e")))
        with pytest.raises(InvalidParameter, match="3 results at most"):
            job.definition(Definition(*chain("a")))
        assert job.keep(first) == job.keep(first)


async def test_the_bytes_of_what_a_build_asks_for_have_an_end():
    async with begun(Bench(limits=JobLimits(operation_bytes=1 << 20))) as job:
        graph, edge = chain("f")
        graph.weight = 1 << 19
        for _ in range(3):
            job.definition(Definition(graph, edge))  # which counts once
        graph.weight = 1 << 20
        with pytest.raises(InvalidParameter, match="1 MiB at most"):
            job.definition(Definition(graph, edge))
        child = job.child({})
        with pytest.raises(InvalidParameter, match="1 MiB at most"):
            child.known.came(1)
        await child.close()
