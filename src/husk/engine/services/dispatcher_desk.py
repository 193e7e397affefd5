"""Assignments as the cluster port carries them, in bytes: the manager's end, and a worker's.

DispatchHandlers(DispatcherDesk(dispatcher, hearing.beat)).register(port)            # on each manager
assignments = RemoteAssignments(ManagerChannel(calls), agent.wake, …)                # on a worker
Pulse(calls).start()
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from husk.engine.services.assignment_messages import Beat, Heard, Report, Reports, Told, decoded, encoded
from husk.engine.services.dispatcher import Dispatcher
from husk.engine.services.heartbeats import PERIOD
from husk.engine.services.model import SECOND
from husk.errors import HuskError
from husk.tasks import Tasks

log = logging.getLogger(__name__)


class DispatcherDesk:
    """Whom the nodes talk to (`husk.cluster.port.dispatch.Desk`)."""

    def __init__(self, dispatcher: Dispatcher, beat: Callable[[str], int]) -> None:
        """`beat` hears that a node lives, and says in which time it should be heard again."""
        self._dispatcher = dispatcher
        self._beat = beat

    async def assignments(self, node: str) -> AsyncGenerator[bytes]:
        self._beat(node)
        async with aclosing(self._dispatcher.assignments(node)) as news:
            async for told in news:
                yield encoded(told)

    async def report(self, node: str, body: bytes) -> bytes:
        return encoded(await self._dispatcher.report(node, decoded(body, Reports).reports))

    async def heartbeat(self, node: str) -> bytes:
        return encoded(Beat(period_ns=self._beat(node)))


class Calls(Protocol):
    """Calls to a manager (`husk.cluster.port.dispatch.DispatchCalls`)."""

    def assignments(self) -> AsyncGenerator[bytes]: ...

    async def report(self, body: bytes) -> bytes: ...

    async def heartbeat(self, timeout: float) -> bytes: ...


class ManagerChannel:
    """A worker's way to whichever manager answers (`remote_assignments.Channel`)."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def assignments(self) -> AsyncGenerator[Told]:
        async with aclosing(self._calls.assignments()) as news:
            async for body in news:
                yield decoded(body, Told)

    async def report(self, reports: Sequence[Report]) -> Heard:
        return decoded(await self._calls.report(encoded(Reports(reports=list(reports)))), Heard)


class Pulse:
    """Says to a manager, every few seconds, that this node lives."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._tasks = Tasks()

    def start(self) -> None:
        self._tasks.spawn(self._run(), "swarm: heartbeats")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    async def _run(self) -> None:
        while True:
            period = await self.beat()
            await asyncio.sleep(period / SECOND)

    async def beat(self) -> int:
        """Once; in which time again."""
        try:
            # Shorter than what makes a node lost: the next manager may still hear in time.
            return decoded(await self._calls.heartbeat(PERIOD / SECOND), Beat).period_ns or PERIOD
        except HuskError as error:
            log.info("no manager hears that this node lives: %s", error.message)
            return SECOND
