"""The ways in, and a session within a call."""

import asyncio

import pytest

from husk.api.buildkit.messages.common import HealthCheckResponse
from husk.api.buildkit.messages.session import BytesMessage
from husk.rpc.grpc.connection import Connection
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ClientStream, ServerStream
from tests.unit.api.buildkit.fake_backend import FakeBackend, calling


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
    async with calling(FakeBackend()) as client:
        answer = await client.connection.unary("/grpc.health.v1.Health/Check", b"")
        assert HealthCheckResponse.decode(answer).status == 1


async def test_a_session_may_go_through_a_call() -> None:
    asked = asyncio.Event()

    async def healthy(stream: ServerStream) -> None:
        await stream.recv()
        await stream.send(b"")
        asked.set()

    async with calling(FakeBackend()) as client:
        headers = {"x-docker-expose-session-uuid": ["s"]}
        stream = await client.connection.call("/moby.buildkit.v1.Control/Session", headers)
        async with Connection(Within(stream), handler=healthy):
            await asked.wait()


async def test_bytes_that_are_no_messages_end_the_session_and_not_the_connection() -> None:
    async with calling(FakeBackend()) as client:
        stream = await client.connection.call("/moby.buildkit.v1.Control/Session")
        await stream.send(BytesMessage(b"GET / HTTP/1.1\r\n").encode())
        with pytest.raises(GrpcError):
            while await stream.recv() is not None:
                pass
        await client.connection.unary("/grpc.health.v1.Health/Check", b"")
