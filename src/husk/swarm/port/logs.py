"""Logs of tasks that lie on other nodes: how managers read them.

    LogHandlers(servicer).register(port)         # on each manager
    calls = LogCalls(managers)                   # on a worker
    pieces = read(endpoint, identity, body)      # on a manager, of what another one can reach

Nobody can call a worker. So a worker listens to what its manager asks for (`Wanted`), and brings each log in a call of
its own (`Send`), whose window is the reader's: a client that is slow holds the worker's reading, and when it leaves,
the manager ends the call. What is said is the engine's business: here it is bytes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.errors import InvalidParameter, Unavailable
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ClientStream, ServerStream, Stream
from husk.swarm.ca.holders import MANAGER_NAME
from husk.swarm.ca.identity import Identity
from husk.swarm.port.faults import from_wire
from husk.swarm.port.managers import CONNECT, Managers, answers
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort
from husk.swarm.transport.wire import connect, plainly
from husk.text.endpoints import HostPort

WANTED = "/husk.cluster.v1.Logs/Wanted"
SEND = "/husk.cluster.v1.Logs/Send"
READ = "/husk.cluster.v1.Logs/Read"


class LogServicer(Protocol):
    """The engine's part that reads logs on a manager."""

    def wanted(self, node: str) -> AsyncGenerator[bytes]:
        """The logs that a node is asked for, until it goes."""
        ...

    async def take(self, node: str, name: bytes, pieces: AsyncIterator[bytes]) -> None:
        """A node brings what was asked for under this name. Returns at the end, or when nobody reads any more."""
        ...

    def read(self, body: bytes) -> AsyncGenerator[bytes]:
        """Yield the pieces of the log that another manager asks for."""
        ...


class LogHandlers:
    def __init__(self, servicer: LogServicer) -> None:
        self._servicer = servicer

    def register(self, port: ClusterPort) -> None:
        port.register(WANTED, self._wanted, access="node")
        port.register(SEND, self._send, access="node")
        port.register(READ, self._read, access="manager")

    async def _wanted(self, peer: Peer, stream: ServerStream) -> None:
        async with aclosing(self._servicer.wanted(peer.node)) as asked:
            async for body in asked:
                await stream.send(body)

    async def _send(self, peer: Peer, stream: ServerStream) -> None:
        if (name := await stream.recv()) is None:
            raise InvalidParameter(f"{SEND} begins with a name")
        await self._servicer.take(peer.node, name, _messages(stream))

    async def _read(self, peer: Peer, stream: ServerStream) -> None:
        if (body := await stream.recv()) is None:
            raise InvalidParameter(f"{READ} takes one message")
        async with aclosing(self._servicer.read(body)) as pieces:
            async for piece in pieces:
                await stream.send(piece)


class LogCalls:
    """A worker's side, to the manager that it talks to."""

    def __init__(self, managers: Managers) -> None:
        self._managers = managers
        self._tasks = Tasks()

    async def wanted(self) -> AsyncGenerator[bytes]:
        """Yield the requests of a manager for logs, for as long as it is there."""
        stream = await self._managers.stream(WANTED)
        async with aclosing(answers(stream)) as asked:
            async for body in asked:
                yield body

    async def send(self, name: bytes, pieces: AsyncIterator[bytes]) -> None:
        """Bring a log. Returns at its end, or when nobody reads it any more."""
        stream = await self._managers.stream(SEND)
        bringing = self._tasks.spawn(_bring(stream, name, pieces), "a log for a manager", awaited=True)
        ending = self._tasks.spawn(_end_of(stream), "a manager that reads a log", awaited=True)
        try:
            await asyncio.wait([bringing, ending], return_when=asyncio.FIRST_COMPLETED)
            if bringing.done() and not ending.done():
                bringing.result()
                # All of it is the manager's before the call ends.
                await ending
        finally:
            bringing.cancel()
            ending.cancel()
            try:
                await asyncio.wait([bringing, ending])
            finally:
                # It may be cancelled twice: by what it was asked for, and with the daemon's end.
                stream.cancel()


async def read(endpoint: HostPort, identity: Identity, body: bytes) -> AsyncGenerator[bytes]:
    """The pieces of logs that another manager can reach. Unavailable where it cannot be reached itself."""
    try:
        connection: GrpcConnection = await connect(endpoint, identity.client_context(), MANAGER_NAME, CONNECT)
    except (OSError, GrpcError) as error:
        raise Unavailable(f"{endpoint}: {plainly(error)}") from None
    try:
        stream = await connection.call(READ)
        await stream.send(body)
        await stream.end()
        async with aclosing(answers(stream)) as pieces:
            async for piece in pieces:
                yield piece
    except GrpcError as error:
        raise from_wire(error) from None
    finally:
        await connection.close()


async def _messages(stream: Stream) -> AsyncGenerator[bytes]:
    while (message := await stream.recv()) is not None:
        yield message


async def _bring(stream: ClientStream, name: bytes, pieces: AsyncIterator[bytes]) -> None:
    with suppress(GrpcError):  # nobody reads any more, which is no fault
        await stream.send(name)
        async for piece in pieces:
            await stream.send(piece)
        await stream.end()


async def _end_of(stream: ClientStream) -> None:
    with suppress(GrpcError):
        while await stream.recv() is not None:
            pass
