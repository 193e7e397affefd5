"""A peer and a forwarded SSH agent."""

import asyncio
import socket

import pytest

from husk.aio.tasks import Tasks
from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.session.agent import forward
from husk.rpc.grpc.status import UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import calls_of

FORWARD = "/moby.sshforward.v1.SSH/ForwardAgent"


@pytest.fixture
async def ends():
    ours, theirs = socket.socketpair()
    peer = await asyncio.open_connection(sock=theirs)
    yield await asyncio.open_connection(sock=ours), peer
    peer[1].close()


async def test_bytes_go_both_ways_until_both_have_ended(ends):
    async def agent(stream):
        assert stream.metadata["buildkit.ssh.id"] == ["work"]
        while (message := await stream.recv()) is not None:
            await stream.send(BytesMessage(data=BytesMessage.decode(message).data.upper()).encode())
        await stream.send(BytesMessage(data=b"bye").encode())

    (reader, writer), (peer_reader, peer_writer) = ends
    tasks = Tasks()
    async with calls_of({FORWARD: agent}) as calls:
        forwarding = tasks.spawn(forward(calls, "work", reader, writer), "forward", awaited=True)
        peer_writer.write(b"hello")
        assert await peer_reader.readexactly(5) == b"HELLO"
        peer_writer.write_eof()
        assert await peer_reader.read() == b"bye"
        await forwarding


async def test_an_agent_that_fails_hangs_up(ends):
    async def agent(stream):
        raise GrpcError(UNKNOWN, "no agent")

    (reader, writer), (peer_reader, _) = ends
    async with calls_of({FORWARD: agent}) as calls:
        await forward(calls, "default", reader, writer)
    assert await peer_reader.read() == b""
