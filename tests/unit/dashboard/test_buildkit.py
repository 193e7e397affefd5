import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from husk.api.http import h2c
from husk.api.http.request import Request
from husk.api.http.response import Answer, Unanswered
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.common import Timestamp
from husk.client.client import Client
from husk.dashboard.buildkit import BuildKit
from husk.errors import NotFound, NotImplementedYet
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import NOT_FOUND, GrpcError
from husk.rpc.grpc.stream import ServerStream
from tests.support.fake_engine import FakeEngine

OLD = control.BuildHistoryRecord(ref="old", created_at=Timestamp(1), completed_at=Timestamp(3))
NEW = control.BuildHistoryRecord(ref="new", created_at=Timestamp(5))


@pytest.fixture
def asked(engine: FakeEngine) -> list[tuple[str, bytes]]:
    """The questions to a builder that has two builds, of which the new one is under way."""
    found: list[tuple[str, bytes]] = []

    async def serve(stream: ServerStream) -> None:
        message = await stream.recv()
        assert message is not None
        name = stream.path.rpartition("/")[2]
        found.append((name, message))
        if name == "ListenBuildHistory":
            wanted = control.BuildHistoryRequest.decode(message).ref
            for record in (OLD, NEW):
                if wanted in ("", record.ref):
                    await stream.send(control.BuildHistoryEvent(control.BUILD_COMPLETE, record).encode())
        elif name == "Status":
            vertex = control.Vertex(digest="d", name="RUN make")
            await stream.send(control.StatusResponse(vertexes=[vertex]).encode())
            if control.StatusRequest.decode(message).ref == "new":
                await stream.recv()  # the client has ended: nothing comes, and the build goes on
                await asyncio.Event().wait()
        elif control.UpdateBuildHistoryRequest.decode(message).ref == "old":
            await stream.send(b"")
        else:
            raise GrpcError(NOT_FOUND, "no such build")

    engine.answers("POST", "/grpc", upgraded(serve))
    return found


def upgraded(serve: Callable[[ServerStream], Awaitable[None]]) -> Callable[[Request], Awaitable[Answer]]:
    async def answer(request: Request) -> Answer:
        async with GrpcConnection(h2c.upgrade(request), handler=serve) as connection:
            await connection.wait_closed()
        return Unanswered()

    return answer


@pytest.fixture
async def buildkit(client: Client) -> AsyncIterator[BuildKit]:
    yield BuildKit(client)


async def test_builds_come_with_the_newest_first(buildkit: BuildKit, asked: list[tuple[str, bytes]]) -> None:
    assert [each.ref for each in await buildkit.builds()] == ["new", "old"]
    assert (await buildkit.build("old")).ref == "old"
    with pytest.raises(NotFound, match="no such build: other"):
        await buildkit.build("other")


async def test_a_build_tells_what_its_steps_did(buildkit: BuildKit, asked: list[tuple[str, bytes]]) -> None:
    for ref, ended in (("old", True), ("new", False)):
        [told] = await buildkit.told_by(ref, ended=ended)
        assert told.vertexes[0].name == "RUN make"


async def test_a_record_is_forgotten(buildkit: BuildKit, asked: list[tuple[str, bytes]]) -> None:
    await buildkit.forget("old")
    assert control.UpdateBuildHistoryRequest.decode(asked[-1][1]).delete
    with pytest.raises(NotFound, match="no such build"):
        await buildkit.forget("gone")


async def test_an_engine_without_such_a_builder(buildkit: BuildKit) -> None:
    with pytest.raises(NotImplementedYet, match="tells nothing of its builds"):
        await buildkit.builds()
