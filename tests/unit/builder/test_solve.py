"""A build by BuildKit's protocol from its question to what was exported, with doubles of what does the work."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.exporters.image import ImageExport
from husk.builder.frontend.dockerfile_frontend import DockerfileFrontend
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.graph.graph import Definition
from husk.builder.jobs.failure import BuildFailed
from husk.builder.jobs.jobs import Jobs
from husk.builder.jobs.results import Question, Result
from husk.builder.remote_cache.service import CacheService
from husk.builder.solve import BuildRequest, Export, Solves
from husk.builder.solver.interfaces import CacheSource
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.solver import Solver
from husk.errors import Conflict, InvalidParameter, NotImplementedYet, Unavailable
from tests.support.parsing import Here
from tests.unit.builder.frontend.test_dockerfile_frontend import Client, Images
from tests.unit.builder.solver.solving import Memory, Worker, chain, never_ending


class Exporter:
    def __init__(self):
        self.exported = []

    async def export(self, stack, document, names, *, epoch=None, clamp=None):
        self.exported.append((stack, document.config.cmd if document.config else None, [str(name) for name in names]))
        return SimpleNamespace(id="sha256:image")


class NothingToState:
    async def attest(self, job: Any, result: Any, wanted: Any) -> Any:
        return result


class Bench:
    def __init__(self, sessions: Sessions | None = None) -> None:
        self.worker: Any = Worker()
        memory: Any = Memory()
        self.memory = memory
        files: Any = Client(Dockerfile="FROM busybox\nCMD x")
        images: Any = Images()
        self.exporter = Exporter()
        exporters: list[Any] = [self.exporter]
        solver = Solver(self.worker, memory)
        self.sessions = sessions or Sessions()
        self.jobs = Jobs(solver, DockerfileFrontend(solver, files, images, images, Dockerfiles(Here())))
        nobody: Any = None
        image = ImageExport(exporters[0], nobody, nobody, nobody)
        caches: Any = CacheService(nobody, nobody, nobody, memory, nobody)
        attester: Any = NothingToState()
        exports = {"moby": image, "image": image}
        self.solves = Solves(self.jobs, self.sessions, exports, lambda: caches, attester, nobody)

    async def solve(self, question: Question | None, *exports: Export, session: str = "") -> dict[str, str]:
        return await self.solves.solve(BuildRequest(id="one", question=question, exports=exports, session=session))


DOCKERFILE = Question(frontend="dockerfile.v0")
IMAGE = Export("moby", {"name": "a,me/b:2"})


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_dockerfile_becomes_an_image(bench):
    told = await bench.solve(DOCKERFILE, IMAGE)
    names = ["docker.io/library/a:latest", "docker.io/me/b:2"]
    assert told == {
        "containerimage.config.digest": "sha256:image",
        "containerimage.digest": "sha256:image",
        "image.name": ",".join(names),
    }
    ((_, cmd, exported),) = bench.exporter.exported
    assert (cmd, exported) == (["/bin/sh", "-c", "x"], names)


async def test_what_is_not_exported_is_made_all_the_same(bench):
    assert await bench.solve(Question(definition=Definition(*chain("make")))) == {}
    assert bench.worker.ran == ["image", "make"]


async def test_the_export_is_part_of_the_progress(bench):
    solving = Tasks().spawn(bench.solve(DOCKERFILE, IMAGE), "solve", awaited=True)
    job = await bench.jobs.get("one")
    told = [each async for new in job.log.follow() for each in new]
    await solving
    steps = [each.status.id for each in told if hasattr(each, "status")]
    assert steps[-3:] == [
        "writing image sha256:image",
        "naming to docker.io/library/a:latest",
        "naming to docker.io/me/b:2",
    ]


async def test_a_client_that_works_itself(bench):
    solving = Tasks().spawn(bench.solve(None, IMAGE), "solve", awaited=True)
    job = await bench.jobs.get("one")
    result = await job.solve(DOCKERFILE)
    job.give(result)
    assert (await solving)["containerimage.digest"] == "sha256:image"


async def test_and_fails(bench):
    solving = Tasks().spawn(bench.solve(None), "solve", awaited=True)
    (await bench.jobs.get("one")).fail(InvalidParameter("no"))
    with pytest.raises(InvalidParameter, match="no"):
        await solving


async def test_a_result_without_anything_in_it(bench):
    solving = Tasks().spawn(bench.solve(None, Export("image")), "solve", awaited=True)
    (await bench.jobs.get("one")).give(Result())
    await solving
    assert bench.exporter.exported == [("", None, [])]


async def test_one_id_is_one_build_at_a_time(bench):
    solving = Tasks().spawn(bench.solve(None), "solve", awaited=True)
    job = await bench.jobs.get("one")
    with pytest.raises(Conflict):
        await bench.solve(DOCKERFILE)
    job.give(Result())
    await solving
    await bench.solve(DOCKERFILE)


async def test_what_makes_no_sense_is_told_before_anything_is_built(bench):
    with pytest.raises(InvalidParameter, match="non-bool value"):
        await bench.solve(DOCKERFILE, IMAGE, Export("image", {"store": "perhaps"}))
    assert bench.worker.ran == bench.exporter.exported == []


async def test_an_exporter_that_there_is_not(bench):
    with pytest.raises(NotImplementedYet):
        await bench.solve(DOCKERFILE, Export("containerd"))


async def test_a_push_needs_a_name(bench):
    with pytest.raises(InvalidParameter, match="tag is needed"):
        await bench.solve(DOCKERFILE, Export("image", {"push": "true"}))


async def test_a_session_that_never_comes():
    class Empty(Sessions):
        async def get(self, id, *, patience=0.0):
            raise Unavailable(f"no active session for {id}")

    with pytest.raises(Unavailable):
        await Bench(Empty()).solve(DOCKERFILE, session="gone")


async def test_a_step_that_fails_is_told_with_its_vertex(bench):
    async def run(vertex, inputs, watcher):
        raise InvalidParameter("exit code: 1")

    bench.worker.run = run
    graph, edge = chain("make")
    with pytest.raises(BuildFailed, match="exit code: 1") as caught:
        await bench.solve(Question(definition=Definition(graph, edge)))
    assert graph[caught.value.vertex].name == "image"


async def test_a_cache_that_cannot_be_written_is_refused_before_anything_is_made(bench):
    request = BuildRequest(id="one", question=DOCKERFILE, cache_exports=[CacheSource("s3")])
    with pytest.raises(NotImplementedYet, match="s3"):
        await bench.solves.solve(request)
    assert bench.worker.ran == []


async def test_a_client_that_hangs_up_leaves_nothing_however_often_it_is_cancelled():
    """A connection that ends cancels its calls, and again when it is closed."""
    for turns in range(1, 12):
        bench = Bench()
        begun = never_ending(bench.worker, "b")
        question = Question(definition=Definition(*chain("a", "b")))
        solving = Tasks().spawn(bench.solve(question), "solve", awaited=True)
        await begun.wait()
        assert bench.memory.held
        for _ in range(turns):
            solving.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([solving])
        assert bench.memory.held == [], f"cancelled {turns} times"
        assert asyncio.all_tasks() == {asyncio.current_task()}
