"""The cluster port: takes connections, finds out who calls, and hands each call to the handler of its method.

    port = ClusterPort(members)
    port.register("/husk.cluster.v1.Dispatcher/Session", session, access="node")
    port.open(listener, identity)      # and port.use(identity) when there is a new certificate

A handler is `async def session(peer, stream)`, for calls with any number of messages; `register_unary` is for those of
one message there and one back. What it raises of `husk.errors` the caller hears.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from husk.aio.tasks import Tasks
from husk.errors import HuskError, InvalidParameter
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import UNIMPLEMENTED, GrpcError
from husk.rpc.grpc.stream import ServerStream
from husk.rpc.http2.core import PeerLimits
from husk.rpc.protobuf import Message
from husk.swarm.ca import authority
from husk.swarm.ca.holders import Role
from husk.swarm.ca.identity import Identity
from husk.swarm.port.crowding import ConnectionCrowd, UnknownVisit
from husk.swarm.port.faults import to_wire
from husk.swarm.port.peers import Access, Members, Peer, peer_of, refusal
from husk.swarm.transport.wire import StreamBytes, keep_alive, plainly
from husk.version import __version__

log = logging.getLogger(__name__)

Handler = Callable[[Peer, ServerStream], Awaitable[None]]
Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)

# In seconds: for the handshake, the first word after it, all that a stranger has to say, a call of one message.
HANDSHAKE, FIRST, STRANGERS_STAY, UNARY = 10.0, 10.0, 30.0, 20.0
# For the turn of somebody who comes from a node's address, in seconds: nodes ask no longer themselves.
WAITING = 10.0
# While no descriptor is left.
_REST = 0.5
# Between two looks at who is connected.
LOOK = 5.0
_STRANGERS = PeerLimits(streams=4, window=1 << 16, header_size=8 << 10, header_frames=4, resets=16)
_NODES = PeerLimits(streams=64, window=1 << 16, header_size=16 << 10, header_frames=8, resets=1000)
# The largest message: of strangers, of nodes. What is here of all messages on one connection of a node.
LARGEST_STRANGE, LARGEST = 32 << 10, 4 << 20
MOST = 12 << 20
# Between two complaints in the log about the same.
_QUIET = 10.0


class _Method(NamedTuple):
    handler: Handler
    access: Access
    limit: float | None


class ClusterPort:
    def __init__(
        self, members: Members, clock: Callable[[], float] = time.time, home: Callable[[str], bool] = lambda _: False
    ) -> None:
        """`home` tells whether an address is that of a node."""
        self._home = home
        self._members = members
        self._clock = clock
        self._methods: dict[str, _Method] = {}
        self._crowd = ConnectionCrowd()
        self._visits: dict[UnknownVisit, asyncio.Task[None]] = {}
        # Of those that wait for their turn.
        self._turns: dict[UnknownVisit, asyncio.Event] = {}
        self._tasks = Tasks()
        self._context: ssl.SSLContext | None = None
        self._roots = b""
        self._listener: socket.socket | None = None
        self._open: dict[GrpcConnection, Peer] = {}
        self._complained: dict[str, float] = {}

    # --- what is served

    def register(self, method: str, handler: Handler, *, access: Access) -> None:
        """Let a handler serve the calls of a method, for those who may make them."""
        self._register(method, _Method(handler, access, None))

    def register_unary(
        self, method: str, request: type[Q], handler: Callable[[Peer, Q], Awaitable[A]], *, access: Access
    ) -> None:
        """The same for one message there and one back, which must not take long."""

        async def serve(peer: Peer, stream: ServerStream) -> None:
            asked = await stream.recv()
            if asked is None or await stream.recv() is not None:
                raise InvalidParameter(f"{method} takes one message")
            answer = await handler(peer, request.decode(asked))
            await stream.send(answer.encode())

        self._register(method, _Method(serve, access, UNARY))

    def _register(self, name: str, method: _Method) -> None:
        assert name not in self._methods, name
        self._methods[name] = method

    # --- its life

    def open(self, listener: socket.socket, identity: Identity) -> None:
        """Serve a socket that listens; it is closed with the port."""
        self.use(identity)
        listener.setblocking(False)
        self._listener = listener
        self._tasks.spawn(self._accept(listener), "cluster port")
        self._tasks.spawn(self._look_after(), "who is on the cluster port")

    def use(self, identity: Identity) -> None:
        """From now on show this certificate to those who come, and believe these roots: nodes with certificates of
        others have to come again."""
        self._context = identity.server_context()
        if self._roots not in (b"", identity.roots):
            believed = authority.key_ids(identity.roots)
            self._end(lambda peer: peer.holder is not None and authority.issuer_of(peer.certificate) not in believed)
        self._roots = identity.roots

    def drop(self, node: str) -> None:
        """A node does not belong to the swarm any more: its connections end."""
        self._end(lambda peer: peer.holder is not None and peer.holder.node == node)

    def _end(self, wanted: Callable[[Peer], bool]) -> None:
        for connection in [connection for connection, peer in self._open.items() if wanted(peer)]:
            self._tasks.spawn(connection.close(), "end of a node's connection")

    async def close(self) -> None:
        await self._tasks.cancel_all()
        if self._listener is not None:
            self._listener.close()

    @property
    def connections(self) -> list[Peer]:
        return list(self._open.values())

    # --- connections

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, name = await loop.sock_accept(listener)
            except OSError as error:
                self._complain("accept", "the cluster port takes no connection: %s", plainly(error))
                await asyncio.sleep(_REST)
                continue
            address = str(name[0])
            visit, leaving = self._crowd.welcome(address, home=self._home(address))
            if leaving is not None:
                self._complain("crowd", "there are too many at the cluster port: one of %s has to go", leaving.place)
                self._visits.pop(leaving).cancel()
            serving = self._serve(connection, address, visit)
            self._visits[visit] = self._tasks.spawn(serving, "connection to the cluster port")
            if visit.waits:
                self._turns[visit] = asyncio.Event()
            self._let_in()
            # It has begun before anybody else can take its place, and sees to its end itself.
            await asyncio.sleep(0)

    async def _look_after(self) -> None:
        """End what goes on for longer than it may: of nodes whose certificates are over, or that were removed by
        another manager."""
        while True:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(HuskError):  # it is not known now
                self._end(self._outstayed)

    def _outstayed(self, peer: Peer) -> bool:
        if peer.holder is None:
            return False
        return refusal(peer, _highest_access(peer.holder.role), self._members, self._clock()) is not None

    async def _serve(self, connection: socket.socket, address: str, visit: UnknownVisit) -> None:
        try:
            await self._turn(connection, visit)
            peer, below = await self._meet(connection, address)
            if peer is None or below is None:
                return
            if peer.holder is None:
                visit = self._unmask(visit)
                async with asyncio.timeout(STRANGERS_STAY):
                    await self._converse(peer, below, _STRANGERS, LARGEST_STRANGE, 2 * LARGEST_STRANGE)
                return
            node = peer.holder.node
            if not self._crowd.admit(visit, node):
                self._complain(node, "a connection of %s to the cluster port was refused: too many", peer)
                below.abort()
                return
            self._let_in()
            try:
                await self._converse(peer, below, _NODES, LARGEST, MOST)
            finally:
                self._crowd.part(node)
        except TimeoutError:
            log.debug("%s has stayed too long at the cluster port", address)
        finally:
            self._crowd.farewell(visit)
            self._visits.pop(visit, None)
            self._let_in()

    def _unmask(self, visit: UnknownVisit) -> UnknownVisit:
        serving = self._visits.pop(visit)
        visit, leaving = self._crowd.unmask(visit)
        if leaving is not None:
            self._visits.pop(leaving).cancel()
        self._visits[visit] = serving
        self._let_in()
        return visit

    def _let_in(self) -> None:
        for visit in self._crowd.turns():
            self._turns.pop(visit).set()

    async def _turn(self, connection: socket.socket, visit: UnknownVisit) -> None:
        """Until it is its turn to say who it is; who comes from nowhere in particular is not kept waiting."""
        if (turn := self._turns.get(visit)) is None:
            return
        try:
            async with asyncio.timeout(WAITING):
                await turn.wait()
        except BaseException:
            connection.close()
            raise
        finally:
            self._turns.pop(visit, None)

    async def _meet(self, connection: socket.socket, address: str) -> tuple[Peer | None, StreamBytes | None]:
        """Shake hands: who it is, and its bytes. Nobody if that fails."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 16)
        protocol = asyncio.StreamReaderProtocol(reader)
        context = self._context
        try:
            keep_alive(connection)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=context, ssl_handshake_timeout=HANDSHAKE
            )
        except (OSError, TimeoutError) as error:
            connection.close()
            self._complain(address, "somebody at %s is not heard on the cluster port: %s", address, plainly(error))
            return None, None
        except BaseException:
            connection.close()
            raise
        tls = transport.get_extra_info("ssl_object")
        peer = peer_of(address, tls.getpeercert(), tls.getpeercert(binary_form=True))
        if peer is None:
            self._complain(address, "somebody at %s has shown a certificate that is no node's", address)
        elif peer.holder is not None and peer.ends <= self._clock():
            self._complain(address, "%s has shown a certificate that has ended", peer)
            peer = None
        if peer is None or context is not self._context:  # what was believed then may not be now
            transport.abort()
            return None, None
        return peer, StreamBytes(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    async def _converse(self, peer: Peer, below: StreamBytes, limits: PeerLimits, largest: int, most: int) -> None:
        async def handle(stream: ServerStream) -> None:
            await self._handle(peer, stream)

        connection = GrpcConnection(below, handler=handle, limits=limits, largest=largest, most=most)
        connection.patience = FIRST
        self._open[connection] = peer
        try:
            async with connection:
                await connection.wait_closed()
        finally:
            del self._open[connection]

    # --- calls

    async def _handle(self, peer: Peer, stream: ServerStream) -> None:
        method = self._methods.get(stream.path)
        if method is None:
            raise GrpcError(UNIMPLEMENTED, f"there is no {stream.path[:100]} here: Husk {__version__} does not know it")
        try:
            if (refused := refusal(peer, method.access, self._members, self._clock())) is not None:
                self._complain(peer.address, "%s may not ask for %s: %s", peer, stream.path, refused.message)
                raise refused
            async with asyncio.timeout(method.limit):
                await method.handler(peer, stream)
        except HuskError as error:
            raise to_wire(error) from error

    def _complain(self, about: str, message: str, *words: object) -> None:
        """In the log, and not for each of many."""
        now = time.monotonic()
        if now - self._complained.get(about, -_QUIET) >= _QUIET:
            if len(self._complained) > 1000:
                self._complained.clear()
            self._complained[about] = now
            log.warning(message, *words)


def _highest_access(role: Role) -> Access:
    """Return the highest access that a certificate for a role opens."""
    return "manager" if role == "manager" else "node"
