"""The engine's builder as the services know it, with a double of the builder."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.cache.prune import Pruned
from husk.builder.graph import llb_write
from husk.builder.graph.operations import Source
from husk.builder.protocol.engine_backend import EngineBackend
from husk.builder.solve import BuildRequest, Export
from husk.builder.solver.interfaces import CacheSource
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.engine.model.filters import Filters
from husk.storage.workers.answers import Entry
from tests.support.parsing import Here
from tests.unit.builder.solver.solving import chain

REF: Any = "a ref"

JOB: Any = "a job"


class Builder:
    def __init__(self) -> None:
        self.sessions = "the sessions"
        self.rules = ("a rule",)
        self.parsers: Any = Here()
        self.platforms = lambda: ["a platform"]
        self.solved: Any = None
        self.asked: Any = None
        self.jobs = SimpleNamespace(get=self._job)

    async def _job(self, id: str) -> str:
        return f"job {id}"

    async def solve(self, request: Any) -> dict[str, str]:
        self.solved = request
        return {"containerimage.digest": "sha256:1"}

    async def resolve_image(self, *asked: Any, **more: Any) -> DescribedImage:
        self.asked = (*asked, more)
        return DescribedImage("docker.io/library/x:latest", "sha256:1", b"{}")

    async def resolve_git(self, *asked: Any) -> Resolved:
        return Resolved("refs/heads/main", "1", "1")

    async def resolve_file(self, *asked: Any) -> ResolvedFile:
        return ResolvedFile("sha256:1", "x")

    async def read_file(self, ref: Any, path: str, offset: int, length: int) -> bytes:
        return f"{path} {offset} {length}".encode()

    async def stat(self, ref: Any, path: str) -> Entry:
        return Entry(name="b\udcff", mode=0o100644, uid=1, gid=2, size=3, mtime_ns=4, link="", major=5, minor=6)

    async def entries(self, ref: Any, path: str, pattern: str) -> list[Entry]:
        return [await self.stat(ref, path)]

    async def items(self, filters: Any) -> list[str]:
        return ["an item"]

    async def prune(self, filters: Any, *, all: bool, keep: int) -> Pruned:
        self.asked = (all, keep)
        return Pruned()


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def backend(builder: Any) -> EngineBackend:
    return EngineBackend(builder, "engine", lambda: ("172.17.0.1", "fd00::1"))


async def test_a_definition(backend: EngineBackend) -> None:
    read = await backend.definition(llb_write.definition(*chain("a")).encode())
    assert [vertex.name for vertex in read.graph] == ["image", "a"]


async def test_a_build(backend: EngineBackend, builder: Builder) -> None:
    request = BuildRequest(id="one", session="s", exports=[Export("moby", {"name": "x"})])
    assert await backend.build(request) == {"containerimage.digest": "sha256:1"}
    assert (builder.solved.id, builder.solved.session, builder.solved.question) == ("one", "s", None)
    ((kind, attributes),) = [(export.kind, export.attributes) for export in builder.solved.exports]
    assert (kind, attributes) == ("moby", {"name": "x"})


async def test_caches_go_with_a_build(backend: EngineBackend, builder: Builder) -> None:
    await backend.build(
        BuildRequest(id="one", cache_exports=[CacheSource("registry")], cache_imports=[CacheSource("local")])
    )
    assert builder.solved is not None
    assert [one.kind for one in (*builder.solved.cache_exports, *builder.solved.cache_imports)] == ["registry", "local"]


async def test_files_of_a_result(backend: EngineBackend) -> None:
    (entry,) = await backend.read_directory(REF, "/a", "*")
    assert entry == await backend.stat(REF, "/a/b")
    assert (entry.path, entry.mode, entry.modified, entry.major) == ("b\ufffd", 0o100644, 4, 5)


async def test_questions_in_the_middle_of_a_build(backend: EngineBackend, builder: Builder) -> None:
    job: Any = await backend.job("one")
    assert job == "job one"
    image = await backend.resolve_image(JOB, "x", None, "pull", "shown")
    assert (image.digest, image.config) == ("sha256:1", b"{}")
    assert builder.asked == (JOB, "x", None, {"pull": True, "shown_as": "shown"})
    assert await backend.read_file(REF, "/a", 1, 2) == b"/a 1 2"
    assert (await backend.resolve_git(JOB, Source("git://x"), "")).id == "1"
    assert (await backend.resolve_file(JOB, Source("http://x"), "")).name == "x"


async def test_the_worker_and_its_cache(backend: EngineBackend, builder: Builder) -> None:
    (worker,) = backend.workers()
    rules: Any = worker.rules
    assert (worker.id, rules) == ("engine", ("a rule",))
    offered: Any = list(worker.platforms)
    assert offered == ["a platform"]
    assert "org.mobyproject.buildkit.worker.snapshotter" in worker.labels
    assert worker.labels["org.mobyproject.buildkit.worker.moby.host-gateway-ip"] == "172.17.0.1"
    cached: Any = await backend.cached(Filters())
    assert cached == ["an item"]
    await backend.prune(Filters(), all=True, keep=7)
    assert builder.asked == (True, 7)
    sessions: Any = backend.sessions
    assert sessions == "the sessions"
