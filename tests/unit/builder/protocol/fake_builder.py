"""A builder for tests of the protocol: real jobs and a real solver, with doubles of what does the work."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

from husk.builder.cache.prune import Item, PrunedCache
from husk.builder.frontend.gateway import Bridge
from husk.builder.frontend.reading.definitions import Definitions
from husk.builder.graph.operations import Source
from husk.builder.jobs.containers import Hold
from husk.builder.jobs.jobs import Job
from husk.builder.protocol.control import Control
from husk.builder.protocol.messages import control
from husk.builder.protocol.server import BuildkitServer
from husk.builder.protocol.worker import worker_record
from husk.builder.solve import BuildRequest
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.builder.sources.request_bodies import RequestBodies
from husk.config import CacheRule
from husk.engine.model.filters import Filters
from husk.errors import NotFound
from husk.registry.manifest import Platform
from husk.rpc.grpc.connection import Bytes, GrpcConnection
from husk.rpc.protobuf import Message
from husk.storage.workers.answers import FoundFile
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


def entry(name: str, mode: int, *, size: int = 0, mtime_ns: int = 0, link: str = "", major: int = 0) -> FoundFile:
    return FoundFile(name=name, mode=mode, uid=0, gid=0, size=size, mtime_ns=mtime_ns, link=link, major=major)


class KeptInMemory:
    """The store of builds that have ended."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.read_files: list[str] = []

    async def load(self) -> list[bytes]:
        return [files["record"] for files in self.files.values()]

    async def save(self, ref: str, files: Mapping[str, bytes], /) -> None:
        self.files.setdefault(ref, {}).update(files)

    async def read(self, ref: str, file: str, /) -> bytes | None:
        self.read_files.append(file)
        return self.files.get(ref, {}).get(file)

    async def remove(self, ref: str, /) -> None:
        self.files.pop(ref, None)


class FakeBuilder:
    def __init__(self, hold: Hold | None = None) -> None:
        self.sessions = Sessions()
        self.definitions = Definitions(Here())
        self.jobs = SimpleNamespace(get=self.job)
        self.bench = Bench(hold=hold)
        self.builds: list[BuildRequest] = []
        self.questions: list[object] = []
        self.kept: Any = KeptInMemory()
        self.bodies = RequestBodies()
        self.files = {"/etc/os-release": b"NAME=x\n"}

    async def solve(self, request: BuildRequest, /) -> Mapping[str, str]:
        self.builds.append(request)
        job = await self.bench.jobs.begin(request.id, None)
        try:
            result = await (job.solve(request.question) if request.question else job.given())
            stacks = await asyncio.gather(*(ref.stack() for ref in result.all))
            return {"stacks": " ".join(stacks), **{name: value.decode() for name, value in result.metadata.items()}}
        finally:
            await self.bench.jobs.end(job)

    async def job(self, id: str) -> Job:
        return await self.bench.jobs.get(id, patience=1)

    async def resolve_image(
        self, job: Job, reference: str, platform: Platform | None, *, pull: bool, shown_as: str
    ) -> DescribedImage:
        self.questions.append((reference, str(platform), pull))
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

    async def entries(self, ref: Ref, path: str, pattern: str, /) -> Sequence[FoundFile]:
        self.questions.append((path, pattern))
        return [entry("os-release", 0o100644, size=7)]

    async def stat(self, ref: Ref, path: str, /) -> FoundFile:
        return entry(path, 0o41777, mtime_ns=5)

    def understand(self, bridge: Bridge, /) -> None:
        self.bridge = bridge

    rules = (CacheRule(types=("source.local",), unused_for="48h", keep=7),)

    def platforms(self) -> list[Platform]:
        return [Platform("amd64", "linux")]

    async def items(self, filters: Filters, /) -> Sequence[Item]:
        self.questions.append(filters.get("type"))
        return [ITEM]

    async def prune(self, filters: Filters, /, *, all: bool, keep: int) -> PrunedCache:
        self.questions.append((filters.get("until"), all, keep))
        return PrunedCache(items=[ITEM])


async def attach(below: Bytes, headers: Mapping[str, Sequence[str]], sessions: Sessions) -> None:
    """A session that is asked how it is once, and then kept."""
    async with GrpcConnection(below, client=True) as connection:
        await connection.unary("/grpc.health.v1.Health/Check", b"")
        await connection.wait_closed()


class Caller:
    """A client of the services."""

    def __init__(self, connection: GrpcConnection) -> None:
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


def described(builder: FakeBuilder) -> control.WorkerRecord:
    of: Any = builder
    return worker_record(of, "w", ["172.17.0.1", "fd00::1"])


def serving_server(builder: FakeBuilder) -> BuildkitServer:
    of: Any = builder
    return BuildkitServer(of, lambda: described(builder), attach)


def serving_control(builder: FakeBuilder) -> Control:
    of: Any = builder
    return Control(of, lambda: described(builder))


@asynccontextmanager
async def calling(builder: FakeBuilder) -> AsyncIterator[Caller]:
    one, other = pipes()
    serving = asyncio.ensure_future(serving_server(builder).serve(other))  # noqa: TID251
    try:
        async with GrpcConnection(one, client=True) as client:
            yield Caller(client)
    finally:
        await serving
