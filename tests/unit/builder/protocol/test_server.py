"""The ways in, and a session within a call."""

import asyncio
import contextlib

import pytest

from husk.aio.tasks import Tasks
from husk.builder.protocol.messages.common import HealthCheckResponse
from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.serve import MOST
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import LARGEST_MESSAGE, ClientStream, ServerStream, framed
from tests.unit.builder.protocol.fake_builder import FakeBuilder, calling
from tests.unit.rpc.grpc.pairs import pipes


class Within:
    """The client's end of a session that goes through a call."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        try:
            message = await self._stream.recv()
        except GrpcError:
            return b""
        return BytesMessage.decode(message).data if message is not None else b""

    async def write(self, data: bytes) -> None:
        await self._stream.send(BytesMessage(data).encode())

    async def finish(self) -> None:
        self._stream.cancel()

    def abort(self) -> None:
        self._stream.cancel()


async def test_we_are_well() -> None:
    async with calling(FakeBuilder()) as client:
        answer = await client.connection.unary("/grpc.health.v1.Health/Check", b"")
        assert HealthCheckResponse.decode(answer).status == 1


async def test_a_session_may_go_through_a_call() -> None:
    asked = asyncio.Event()

    async def healthy(stream: ServerStream) -> None:
        await stream.recv()
        await stream.send(b"")
        asked.set()

    async with calling(FakeBuilder()) as client:
        headers = {"x-docker-expose-session-uuid": ["s"]}
        stream = await client.connection.call("/moby.buildkit.v1.Control/Session", headers)
        async with GrpcConnection(Within(stream), handler=healthy):
            await asked.wait()


async def test_bytes_that_are_no_messages_end_the_session_and_not_the_connection() -> None:
    async with calling(FakeBuilder()) as client:
        stream = await client.connection.call("/moby.buildkit.v1.Control/Session")
        await stream.send(BytesMessage(b"GET / HTTP/1.1\r\n").encode())
        with pytest.raises(GrpcError):
            while await stream.recv() is not None:
                pass
        await client.connection.unary("/grpc.health.v1.Health/Check", b"")


async def unfinished(connection: GrpcConnection, path: str) -> ClientStream:
    """A call whose message lacks its end."""
    stream = await connection.call(path)
    with contextlib.suppress(GrpcError):
        await stream.send_raw(framed(bytes(LARGEST_MESSAGE))[:-1])
    return stream


@pytest.mark.parametrize("door", ["client", "frontend"])
async def test_messages_of_calls_that_are_not_finished_have_a_limit_together(door: str) -> None:
    builder = FakeBuilder()
    tasks = Tasks()
    async with calling(builder) as client, contextlib.AsyncExitStack() as stack:
        connection, path = client.connection, "/moby.buildkit.v1.Control/Solve"
        if door == "frontend":
            job = await builder.bench.jobs.begin("one", None)
            stack.push_async_callback(builder.bench.jobs.end, job)
            stack.push_async_callback(tasks.cancel_all)
            ours, theirs = pipes()
            tasks.spawn(builder.bridge.serve(ours, job), "serve")  # type: ignore[arg-type]
            connection = await stack.enter_async_context(GrpcConnection(theirs, client=True))
            path = "/moby.buildkit.v1.frontend.LLBBridge/Solve"
        calls = [await unfinished(connection, path) for _ in range(MOST // LARGEST_MESSAGE)]  # each has a head too
        with pytest.raises(GrpcError):
            await calls[-1].recv()
        for call in calls[:-1]:
            assert not call.over
            call.cancel()
        await connection.unary("/grpc.health.v1.Health/Check", b"")
