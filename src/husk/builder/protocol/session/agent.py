"""A connection to the SSH agent that a client forwards."""

import asyncio
import contextlib

from husk.builder.protocol.messages.session import BytesMessage
from husk.builder.protocol.session.calls import SessionCalls
from husk.errors import InvalidParameter
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ClientStream

_FORWARD = "/moby.sshforward.v1.SSH/ForwardAgent"
_CHUNK = 32 << 10


async def forward(calls: SessionCalls, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until both sides have ended, or one is gone."""
    try:
        stream = await calls.open(_FORWARD, {"buildkit.ssh.id": [id]})
        async with stream:
            towards = asyncio.gather(_to_agent(reader, stream), _to_peer(stream, writer))
            try:
                await towards
            finally:
                towards.cancel()
    except (GrpcError, InvalidParameter, ConnectionError):
        pass  # the peer sees an agent that hung up
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _to_agent(reader: asyncio.StreamReader, stream: ClientStream) -> None:
    while data := await reader.read(_CHUNK):
        await stream.send(BytesMessage(data=data).encode())
    await stream.end()


async def _to_peer(stream: ClientStream, writer: asyncio.StreamWriter) -> None:
    while (message := await stream.recv()) is not None:
        writer.write(BytesMessage.decode(message).data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
