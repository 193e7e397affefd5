"""Calls of nodes about their tasks: what they are to run, what became of it, that they live.

    DispatchHandlers(servicer).register(port)    # on each manager
    calls = DispatchCalls(managers)              # on a worker

What is said is the engine's business: here it is bytes. Which node calls is what its certificate says. Any manager
serves any node.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Protocol

from husk.aio.tasks import Tasks
from husk.errors import Conflict, InvalidParameter
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import ServerStream
from husk.rpc.protobuf import Message
from husk.swarm.port.crowding import Pauses
from husk.swarm.port.faults import TooMany
from husk.swarm.port.managers import CALL, Managers, answers
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort

ASSIGNMENTS = "/husk.cluster.v1.Dispatcher/Assignments"
REPORT = "/husk.cluster.v1.Dispatcher/Report"
HEARTBEAT = "/husk.cluster.v1.Dispatcher/Heartbeat"
DESCRIBE = "/husk.cluster.v1.Dispatcher/Describe"
LEAVE = "/husk.cluster.v1.Dispatcher/Leave"

# Seconds between two times that a node says what it is: each is written, and all of the swarm looked at anew.
DESCRIBING = 2.0
# The same between two times that it leaves: what it ran is planned anew each time.
LEAVING = 2.0


class DispatchBody(Message):
    content: Annotated[bytes, 1] = b""


class DispatchServicer(Protocol):
    """The engine's part that the nodes talk to."""

    def assignments(self, node: str) -> AsyncGenerator[bytes]:
        """Yield the assignments of a node, until it goes."""
        ...

    async def report(self, node: str, body: bytes) -> bytes: ...

    async def heartbeat(self, node: str) -> bytes: ...

    async def describe(self, node: str, body: bytes) -> bytes:
        """Take a node's description of itself."""
        ...

    async def leave(self, node: str) -> None:
        """A node does no more for the swarm."""
        ...


class DispatchHandlers:
    def __init__(self, servicer: DispatchServicer, clock: Callable[[], float] = time.monotonic) -> None:
        self._servicer = servicer
        self._clock = clock
        self._tasks = Tasks()
        # Who is telling a node.
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._describing, self._leaving = Pauses(DESCRIBING), Pauses(LEAVING)

    def register(self, port: ClusterPort) -> None:
        port.register(ASSIGNMENTS, self._assignments, access="node")
        port.register_unary(REPORT, DispatchBody, self._report, access="node")
        port.register_unary(HEARTBEAT, DispatchBody, self._heartbeat, access="node")
        port.register_unary(DESCRIBE, DispatchBody, self._describe, access="node")
        port.register_unary(LEAVE, DispatchBody, self._leave, access="node")

    async def _assignments(self, peer: Peer, stream: ServerStream) -> None:
        """One for each node: whoever asks again has lost the first, or should not have two."""
        if (former := self._telling.get(peer.node)) is not None:
            former.cancel()
        telling = self._tasks.spawn(self._tell(peer.node, stream), "assignments of a node", awaited=True)
        leaving = self._tasks.spawn(_left(stream), "a node that listens", awaited=True)
        self._telling[peer.node] = telling
        try:
            await asyncio.wait([telling, leaving], return_when=asyncio.FIRST_COMPLETED)
            if telling.cancelled():
                raise Conflict("this node has asked for its assignments once more")
            for ended in (telling, leaving):
                if ended.done():
                    ended.result()
        finally:
            if self._telling.get(peer.node) is telling:
                del self._telling[peer.node]
            telling.cancel()
            leaving.cancel()
            await asyncio.wait([telling, leaving])

    async def _tell(self, node: str, stream: ServerStream) -> None:
        async with aclosing(self._servicer.assignments(node)) as news:
            async for told in news:
                await stream.send(told)

    async def _report(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        return DispatchBody(content=await self._servicer.report(peer.node, body.content))

    async def _heartbeat(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        return DispatchBody(content=await self._servicer.heartbeat(peer.node))

    async def _describe(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        if not self._describing.allowed(peer.node, self._clock()):
            raise TooMany("this node has just said what it is")
        return DispatchBody(content=await self._servicer.describe(peer.node, body.content))

    async def _leave(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        now = self._clock()
        if not self._leaving.allowed(peer.node, now):
            raise TooMany("this node has just left")
        try:
            await self._servicer.leave(peer.node)
        except BaseException:
            # It is not written down, and may be said again at once.
            self._leaving.take_back(peer.node, now)
            raise
        return DispatchBody()


async def _left(stream: ServerStream) -> None:
    """Until a node is gone."""
    with suppress(GrpcError):
        if await stream.recv_raw():
            raise InvalidParameter(f"{ASSIGNMENTS} takes no message")


class DispatchCalls:
    """The same calls, by a node, to whichever manager answers."""

    def __init__(self, managers: Managers) -> None:
        self._managers = managers

    async def assignments(self) -> AsyncGenerator[bytes]:
        """Yield the assignments of this node, for as long as a manager is there."""
        stream = await self._managers.stream(ASSIGNMENTS)
        async with aclosing(answers(stream)) as told:
            async for body in told:
                yield body

    async def report(self, body: bytes) -> bytes:
        return (await self._managers.unary(REPORT, DispatchBody(content=body), DispatchBody)).content

    async def heartbeat(self, timeout: float = CALL) -> bytes:
        return (await self._managers.unary(HEARTBEAT, DispatchBody(), DispatchBody, timeout=timeout)).content

    async def describe(self, body: bytes) -> bytes:
        return (await self._managers.unary(DESCRIBE, DispatchBody(content=body), DispatchBody)).content

    async def leave(self, timeout: float) -> None:
        await self._managers.unary(LEAVE, DispatchBody(), DispatchBody, timeout=timeout)
