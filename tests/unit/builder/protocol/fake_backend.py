"""A builder for tests of the protocol: real jobs and a real solver, with doubles of what does the work."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

from husk.builder.cache.prune import Item
from husk.builder.frontend.gateway import Bridge
from husk.builder.graph.graph import Definition
from husk.builder.graph.operations import Source
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.protocol.backend import BuildWorker, FileStat
from husk.builder.protocol.definitions import Definitions
from husk.builder.protocol.server import BuildkitServer
from husk.builder.solve import BuildRequest
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.builder.sources.request_bodies import RequestBodies
from husk.config import CacheRule
from husk.engine.model.filters import Filters
from husk.errors import NotFound
from husk.registry.manifest import Platform
from husk.rpc.grpc.connection import Bytes, Connection
from husk.rpc.protobuf import Message
from tests.support.parsing import Here
from tests.unit.builder.jobs.test_jobs import Bench
from tests.unit.rpc.grpc.pairs import pipes

T = TypeVar("T", bound=Message)

ITEM = Item(
    id="r1",
    parents=["r0"],
    type="regular",
    description="step",
    in_use=True,
    shared=False,
    size=5,
    created=10**9,
    last_used=2 * 10**9,
    uses=3,
)


class KeptInMemory:
    """The store of builds that have ended."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}

    async def load(self) -> list[bytes]:
        return [files["record"] for files in self.files.values()]

    async def save(self, ref: str, files: Mapping[str, bytes], /) -> None:
        self.files.setdefault(ref, {}).update(files)

    async def read(self, ref: str, file: str, /) -> bytes | None:
        return self.files.get(ref, {}).get(file)

    async def remove(self, ref: str, /) -> None:
        self.files.pop(ref, None)


class FakeBackend:
    def __init__(self) -> None:
        self._sessions = Sessions()
        self.bench = Bench()
        self.builds: list[BuildRequest] = []
        self.questions: list[object] = []
        self.kept: Any = KeptInMemory()
        self.bodies = RequestBodies()
        self.files = {"/etc/os-release": b"NAME=x\n"}

    @property
    def sessions(self) -> Sessions:
        return self._sessions

    @property
    def kept_builds(self) -> KeptBuilds:
        kept: KeptBuilds = self.kept
        return kept

    async def definition(self, data: bytes, /) -> Definition:
        return await Definitions(Here()).read(data)

    def offer_body(self, chunks: AsyncIterator[bytes], /) -> AbstractContextManager[str]:
        return self.bodies.offer(chunks)

    async def build(self, request: BuildRequest, /) -> Mapping[str, str]:
        self.builds.append(request)
        job = await self.bench.jobs.begin(request.id, None)
        try:
            result = await (job.solve(request.question) if request.question else job.given())
            stacks = await asyncio.gather(*(ref.stack() for ref in result.all))
            return {"stacks": " ".join(stacks), **{name: value.decode() for name, value in result.metadata.items()}}
        finally:
            await self.bench.jobs.end(job)

    async def job(self, id: str, /) -> Job:
        return await self.bench.jobs.get(id, patience=1)

    async def resolve_image(
        self, job: Job, reference: str, platform: Platform | None, mode: str, shown_as: str, /
    ) -> DescribedImage:
        self.questions.append((reference, str(platform), mode))
        return DescribedImage(f"{reference}@sha256:1", "sha256:1", b"{}")

    async def resolve_layout(
        self, job: Job, source: Source, platform: Platform | None, shown_as: str, /
    ) -> DescribedImage:
        self.questions.append((source.identifier, source.attributes, str(platform)))
        return DescribedImage("x@sha256:1", "sha256:1", b"{}")

    async def resolve_git(self, job: Job, source: Source, shown_as: str, /) -> Resolved:
        return Resolved("refs/tags/v1", "a" * 40, "b" * 40)

    async def resolve_file(self, job: Job, source: Source, shown_as: str, /) -> ResolvedFile:
        return ResolvedFile("sha256:1", "file", "Sat, 03 Feb 2001 04:05:06 GMT")

    async def read_file(self, ref: Ref, path: str, offset: int, length: int, /) -> bytes:
        if path not in self.files:
            raise NotFound(f"{path} does not exist")
        data = self.files[path][offset:]
        return data[:length] if length else data

    async def read_directory(self, ref: Ref, path: str, pattern: str, /) -> Sequence[FileStat]:
        self.questions.append((path, pattern))
        return [FileStat(path="os-release", mode=0o100644, size=7)]

    async def stat(self, ref: Ref, path: str, /) -> FileStat:
        return FileStat(path=path, mode=0o41777, modified=5)

    def serve_frontends(self, bridge: Bridge, /) -> None:
        self.bridge = bridge

    def workers(self) -> Sequence[BuildWorker]:
        rules = [CacheRule(types=("source.local",), unused_for="48h", keep=7)]
        return [BuildWorker(id="w", labels={"a": "b"}, platforms=[Platform("amd64", "linux")], rules=rules)]

    async def cached(self, filters: Filters, /) -> Sequence[Item]:
        self.questions.append(filters.get("type"))
        return [ITEM]

    async def prune(self, filters: Filters, /, *, all: bool, keep: int) -> Sequence[Item]:
        self.questions.append((filters.get("until"), all, keep))
        return [ITEM]


async def attach(below: Bytes, headers: Mapping[str, Sequence[str]], sessions: Sessions) -> None:
    """A session that is asked how it is once, and then kept."""
    async with Connection(below, client=True) as connection:
        await connection.unary("/grpc.health.v1.Health/Check", b"")
        await connection.wait_closed()


class Caller:
    """A client of the services."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def control(self, method: str, message: Message, answer: type[T]) -> T:
        data = await self.connection.unary(f"/moby.buildkit.v1.Control/{method}", message.encode())
        return answer.decode(data)

    async def gateway(self, method: str, message: Message, answer: type[T], build: str = "b") -> T:
        path = f"/moby.buildkit.v1.frontend.LLBBridge/{method}"
        data = await self.connection.unary(path, message.encode(), {"buildkit-controlapi-buildid": [build]})
        return answer.decode(data)

    async def many(self, method: str, message: Message, answer: type[T]) -> list[T]:
        async with await self.connection.call(f"/moby.buildkit.v1.Control/{method}") as stream:
            await stream.send(message.encode())
            await stream.end()
            answers = []
            while (data := await stream.recv()) is not None:
                answers.append(answer.decode(data))
            return answers


@asynccontextmanager
async def calling(backend: FakeBackend) -> AsyncIterator[Caller]:
    one, other = pipes()
    serving = asyncio.ensure_future(BuildkitServer(backend, attach).serve(other))  # noqa: TID251
    try:
        async with Connection(one, client=True) as client:
            yield Caller(client)
    finally:
        await serving
