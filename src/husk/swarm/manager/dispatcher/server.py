"""The manager's end of assignments as the cluster port carries them, in bytes.

DispatchHandlers(DispatcherDesk(dispatcher, roll)).register(port)
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from husk.errors import Unavailable
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher
from husk.swarm.model.node import NodeDescription
from husk.swarm.port.assignment_messages import HeartbeatReply, ReportReply, decoded, encoded
from husk.swarm.port.mixed_releases import MixedReader


class NodeRegister(Protocol):
    """The register of nodes: which are there, and how they describe themselves (`workers.Workers`)."""

    def beat(self, node: str) -> int:
        """A node lives; in which time it should be heard again."""
        ...

    def arrive(self, node: str) -> None:
        """It asks for its tasks here from now on."""
        ...

    async def describe(self, node: str, description: NodeDescription) -> None: ...

    async def leave(self, node: str) -> None: ...


class DispatcherServer:
    """The servicer of the calls of nodes (`husk.swarm.port.dispatch.DispatchServicer`)."""

    def __init__(self, dispatcher: Dispatcher, roll: NodeRegister, away: Callable[[], str] = lambda: "") -> None:
        """`away` says why this manager cannot write anything down now: then nodes are sent to others, which may."""
        self._dispatcher = dispatcher
        self._roll = roll
        self._away = away
        self._reader = MixedReader()

    async def assignments(self, node: str) -> AsyncGenerator[bytes]:
        self._check_here()
        self._roll.arrive(node)
        async with aclosing(self._dispatcher.assignments(node)) as news:
            async for told in news:
                yield encoded(told)

    async def report(self, node: str, body: bytes) -> bytes:
        said = self._reader.reports(body)
        heard = await self._dispatcher.report(node, said.reports)
        return encoded(ReportReply(refused=heard.refused + said.unread))

    async def heartbeat(self, node: str) -> bytes:
        self._check_here()
        return encoded(HeartbeatReply(period_ns=self._roll.beat(node)))

    async def describe(self, node: str, body: bytes) -> bytes:
        await self._roll.describe(node, decoded(body, NodeDescription))
        return b""

    async def leave(self, node: str) -> None:
        await self._roll.leave(node)

    def _check_here(self) -> None:
        if reason := self._away():
            raise Unavailable(f"this manager is cut off from the swarm: {reason}")
