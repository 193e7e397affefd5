"""Calls to etcd: to the member that answered last, and when it does not answer, to the next.

A call is tried at one member after the other until its time is over. What is told then is why no member could be used:
nobody there, certificates that do not fit, or members that answer and have no leader, because most are gone.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence

from husk.errors import Forbidden, InvalidParameter, SystemFault
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OUT_OF_RANGE,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNKNOWN,
    GrpcError,
)
from husk.rpc.grpc.stream import ClientStream
from husk.swarm.state.etcd.messages import MEMBER_LIST, RANGE
from husk.swarm.state.transactions import StoreUnavailable
from husk.swarm.transport.wire import SILENT, connect, plainly
from husk.text.endpoints import HostPort

# In seconds: for a whole call with all that is tried for it, for one try, for one connection.
PATIENCE, TRY, CONNECT = 8.0, 5.0, 2.0
# Before all members are asked once more: at first, and at most.
SOON, LATE = 0.05, 1.0

# A member without a leader says so at once, instead of waiting for one.
WITH_LEADER = {"hasleader": ["true"]}
# Another member may do better.
_PASSING = (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, INTERNAL, UNKNOWN)
# It was told before anything was done.
_NOT_DONE = ("etcdserver: no leader", "etcdserver: not capable")
_CLOSED = "the cluster store is closed"
# Calls that change nothing, heard or not.
_READS = (RANGE, MEMBER_LIST)


class EtcdChannel:
    def __init__(
        self, endpoints: Sequence[HostPort], tls: ssl.SSLContext | None, patience: float = PATIENCE, shut: str = ""
    ) -> None:
        """`shut` says why nobody is asked until there are certificates (`trust`)."""
        self._endpoints = list(endpoints)
        self._tls = tls
        self._patience = patience
        self._connection: GrpcConnection | None = None
        self._connecting = asyncio.Lock()
        # Why each member could not be used when it was last tried.
        self._troubles: dict[HostPort, str] = {}
        self._closed = False
        self._shut = shut

    @property
    def names(self) -> str:
        return ", ".join(map(str, self._endpoints))

    def know(self, endpoints: Sequence[HostPort]) -> None:
        """Take these as the members that there are now; those that are known stay in their order."""
        known = [endpoint for endpoint in self._endpoints if endpoint in endpoints]
        # In place: a call that is under way counts on it.
        self._endpoints[:] = known + [endpoint for endpoint in endpoints if endpoint not in known]
        self._troubles = {endpoint: told for endpoint, told in self._troubles.items() if endpoint in endpoints}

    def trust(self, tls: ssl.SSLContext) -> None:
        """Other certificates, for connections from now on."""
        self._tls, self._shut = tls, ""

    async def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    async def unary(self, path: str, message: bytes, patience: float | None = None) -> tuple[bytes, bool]:
        """One message there, one back, from any member; and whether an earlier try may have been heard too.

        StoreUnavailable when no member could do it; other errors of etcd as they are, see `refusal`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._patience if patience is None else patience)
        pause, heard, tries, changes = SOON, False, 0, path not in _READS
        while True:
            connection: GrpcConnection | None = None
            try:
                async with asyncio.timeout_at(deadline):
                    connection = await self.connection()
                    left = min(TRY, max(deadline - loop.time(), 0.01))
                    return await connection.unary(path, message, WITH_LEADER, left), heard
            except GrpcError as error:
                if error.code not in _PASSING:
                    raise
                heard = heard or (changes and not error.message.startswith(_NOT_DONE))
                await self.leave(connection, error.message)
            except TimeoutError:
                await self.leave(connection, SILENT)
                self._troubles.setdefault(self._endpoints[0], SILENT)
                raise self.unavailable(heard or (changes and connection is not None)) from None
            except StoreUnavailable:
                if self._closed or self._shut:
                    raise
            tries += 1
            if loop.time() + pause >= deadline:
                raise self.unavailable(heard)
            if tries % len(self._endpoints) == 0:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LATE)

    async def stream(self, path: str) -> tuple[GrpcConnection, ClientStream]:
        """Begin a call that goes on; GrpcError or StoreUnavailable when it cannot be begun now."""
        connection = await self.connection()
        return connection, await connection.call(path, WITH_LEADER)

    async def connection(self) -> GrpcConnection:
        """To the member that answered last, or the first of the others that takes one."""
        async with self._connecting:
            if self._closed:
                raise StoreUnavailable(_CLOSED)
            if self._shut:
                raise StoreUnavailable(self._shut)
            if self._connection is not None and not self._connection.closed:
                return self._connection
            for _ in range(len(self._endpoints)):
                try:
                    made = await self._connect(self._endpoints[0])
                    if self._closed:  # meanwhile
                        await made.close()
                        raise StoreUnavailable(_CLOSED)
                    self._connection = made
                    return made
                except (OSError, GrpcError) as error:
                    self._note(plainly(error))
            raise self.unavailable(False)

    async def leave(self, connection: GrpcConnection | None, reason: str) -> None:
        """A member did not do what was asked: the next call goes to another."""
        if connection is None or connection is not self._connection:
            return
        self._connection = None
        self._note(reason)
        # Not waited for: its peer may be anywhere.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await connection.close()

    def _note(self, reason: str) -> None:
        self._troubles[self._endpoints[0]] = reason
        self._endpoints.append(self._endpoints.pop(0))

    async def _connect(self, endpoint: HostPort) -> GrpcConnection:
        return await connect(endpoint, self._tls, endpoint.host, CONNECT)

    def unavailable(self, unknown: bool) -> StoreUnavailable:
        reasons = {str(endpoint): self._troubles[endpoint] for endpoint in sorted(self._troubles)}
        told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        if any("no leader" in reason for reason in reasons.values()):
            message = "the cluster store has lost the majority of its members, so nothing can be read or changed"
        else:
            message = f"no member of the cluster store can be reached ({self.names})"
        message += f": {told}" if told else ""
        if unknown:
            message += ". What was to be written may have been, or not"
        return StoreUnavailable(message, unknown)


class StoreFull(SystemFault):
    """etcd has taken all that it may, and refuses every change."""


def refusal(error: GrpcError) -> Exception:
    """Turn etcd's error into an exception in our words."""
    told = error.message.removeprefix("etcdserver: ")
    if error.code == RESOURCE_EXHAUSTED and "space exceeded" in error.message:
        return StoreFull(
            "etcd has no room left (mvcc: database space exceeded). The swarm's own is relieved by its managers: try "
            "again in a minute. Compact and defragment one that you run yourself"
        )
    if error.code in (UNAUTHENTICATED, PERMISSION_DENIED):
        return Forbidden(f"etcd refuses us: {told}")
    if error.code in (INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE):
        return InvalidParameter(f"etcd cannot do that: {told}")
    return SystemFault(f"etcd failed: {told}")
