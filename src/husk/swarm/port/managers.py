"""Calls of a node to the managers of its swarm: to the one that answered last, and when it is gone, to the next.

    managers = Managers(endpoints, identity)
    reply = await managers.unary(RENEW, RenewRequest(request=…), CertificateReply)

Both sides show their certificates. A call is made once: whether one whose answer was lost may be made again, only the
caller knows. What the manager says of `husk.errors` is raised here; `Unavailable` when no manager can be reached.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

from husk.errors import Unavailable
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import DEADLINE_EXCEEDED, UNAVAILABLE, GrpcError
from husk.rpc.grpc.stream import ClientStream
from husk.rpc.protobuf import Message
from husk.swarm.ca.holders import MANAGER_NAME
from husk.swarm.ca.identity import Identity
from husk.swarm.port.faults import from_wire
from husk.swarm.transport.wire import connect, plainly
from husk.text.endpoints import HostPort

A = TypeVar("A", bound=Message)

# In seconds: for a connection, for a call with one answer.
CONNECT, CALL = 5.0, 30.0


class Managers:
    def __init__(self, endpoints: Sequence[HostPort], identity: Identity | ssl.SSLContext) -> None:
        self._endpoints = list(endpoints)
        self._tls = identity.client_context() if isinstance(identity, Identity) else identity
        self._connection: GrpcConnection | None = None
        self._connecting = asyncio.Lock()

    async def unary(self, method: str, request: Message, answer: type[A], timeout: float = CALL) -> A:
        connection = await self._reach()
        try:
            return answer.decode(await connection.unary(method, request.encode(), timeout=timeout))
        except GrpcError as error:
            # A host that was cut off says nothing at all.
            if error.code in (UNAVAILABLE, DEADLINE_EXCEEDED):
                await self._leave(connection)
            raise from_wire(error) from None

    async def stream(self, method: str) -> ClientStream:
        """Begin a call that goes on; its own errors are of gRPC: `answers` reads it with ours."""
        connection = await self._reach()
        try:
            return await connection.call(method)
        except GrpcError as error:
            raise from_wire(error) from None

    async def use(self, identity: Identity) -> None:
        """A new certificate: calls that are under way end."""
        self._tls = identity.client_context()
        await self.close()

    def know(self, endpoints: Sequence[HostPort]) -> None:
        """Take these as the managers of now; the one in use stays first. If none are given, keep the last."""
        if not endpoints:
            return
        known = [endpoint for endpoint in self._endpoints if endpoint in endpoints]
        self._endpoints = known + [endpoint for endpoint in endpoints if endpoint not in known]

    @property
    def known(self) -> tuple[HostPort, ...]:
        return tuple(self._endpoints)

    async def close(self) -> None:
        if self._connection is not None:
            await self._leave(self._connection)

    async def _reach(self) -> GrpcConnection:
        async with self._connecting:
            if self._connection is not None and not self._connection.closed:
                return self._connection
            troubles = []
            for endpoint in list(self._endpoints):
                try:
                    self._connection = await connect(endpoint, self._tls, MANAGER_NAME, CONNECT)
                    return self._connection
                except (OSError, GrpcError) as error:
                    troubles.append(f"{endpoint}: {plainly(error)}")
                    self._endpoints.append(self._endpoints.pop(0))
            raise Unavailable("no manager of the swarm can be reached: " + ("; ".join(troubles) or "none is known"))

    async def _leave(self, connection: GrpcConnection) -> None:
        if connection is self._connection:
            self._connection = None
            self._endpoints.append(self._endpoints.pop(0))
        # Not waited for: its peer may be anywhere.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await connection.close()


async def answers(stream: ClientStream) -> AsyncGenerator[bytes]:
    """Yield the messages of the other side until it ends the call; whoever stops listening ends the call."""
    try:
        while (message := await stream.recv()) is not None:
            yield message
    except GrpcError as error:
        raise from_wire(error) from None
    finally:
        stream.cancel()
