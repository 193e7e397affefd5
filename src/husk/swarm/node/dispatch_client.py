"""A worker's end of assignments as the cluster port carries them, in bytes; and its heartbeats.

assignments = RemoteAssignments(ManagerChannel(calls), agent.wake, …)
Pulse(calls).start()
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.errors import Conflict, Forbidden, HuskError, Unavailable
from husk.swarm.model.heartbeats import PERIOD, period_of
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.services import SECOND
from husk.swarm.port.assignment_messages import (
    AssignmentUpdate,
    HeartbeatReply,
    Report,
    ReportReply,
    Reports,
    decoded,
    encoded,
)
from husk.swarm.port.faults import TooMany
from husk.swarm.port.mixed_releases import MixedReader

log = logging.getLogger(__name__)


class DispatchCalls(Protocol):
    """Calls to a manager (`husk.swarm.port.dispatch.DispatchCalls`)."""

    def assignments(self) -> AsyncGenerator[bytes]: ...

    async def report(self, body: bytes) -> bytes: ...

    async def heartbeat(self, timeout: float) -> bytes: ...

    async def describe(self, body: bytes) -> bytes: ...


class ManagerChannel:
    """A worker's way to whichever manager answers (`remote_assignments.AssignmentChannel`)."""

    def __init__(self, calls: DispatchCalls) -> None:
        self._calls = calls
        self._reader = MixedReader()

    async def assignments(self) -> AsyncGenerator[AssignmentUpdate]:
        async with aclosing(self._calls.assignments()) as news:
            async for body in news:
                yield self._reader.told(body)

    async def report(self, reports: Sequence[Report]) -> ReportReply:
        return decoded(await self._calls.report(encoded(Reports(reports=list(reports)))), ReportReply)


class HeartbeatSender:
    """Says to a manager, every few seconds, that this node lives; first of all, what it is."""

    def __init__(
        self,
        calls: DispatchCalls,
        description: NodeDescription | None = None,
        removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`removed` hears, once, that the swarm does not know this node any more."""
        self._calls = calls
        self._when_removed = removed
        self._description = description
        # What the last answer was: empty where a manager has heard.
        self.trouble = ""
        # Why managers and this node may misunderstand each other, though they are heard.
        self._misfit = ""
        # Before the next try, where none has heard: each manager is asked soon, and then not all the time.
        self._pause = 0
        # As a manager said last.
        self._period = PERIOD
        # The swarm does not know this node any more.
        self.removed = False
        self._tasks = Tasks()

    def start(self) -> None:
        self._tasks.spawn(self._run(), "swarm: heartbeats")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    async def _run(self) -> None:
        while True:
            period = SECOND
            try:
                period = await self.beat()
            except Exception:  # a fault of ours: a node that says nothing is down
                log.exception("this node could not say that it lives, and tries again")
            await asyncio.sleep(period / SECOND)

    async def beat(self) -> int:
        """Once; in which time again."""
        try:
            await self._describe()
            # Shorter than what makes a node lost: the next manager may still hear in time.
            beat = decoded(await self._calls.heartbeat(self._period / SECOND), HeartbeatReply)
        except HuskError as error:
            if error.message != self.trouble:
                log.info("no manager hears that this node lives: %s", error.message)
            was_removed, self.removed = self.removed, isinstance(error, Forbidden)
            self.trouble = error.message
            if self.removed and not was_removed:
                self._when_removed()
            self._pause = min(2 * self._pause or SECOND, PERIOD)
            return PERIOD if self.removed else self._pause
        self.trouble, self.removed, self._pause = self._misfit, False, 0
        self._period = period_of(beat.period_ns)
        return self._period

    async def _describe(self) -> None:
        """Say what this node is, until a manager has written it down. A node that cannot say it lives all the same."""
        if self._description is None:
            return
        try:
            await self._calls.describe(encoded(self._description))
            self._description, self._misfit = None, ""
        except TooMany:  # it was said a moment ago: once more with the next beat
            pass
        except (Forbidden, Unavailable):
            raise
        except Conflict as error:  # a release that is too far away, until one of them is another
            if error.message != self._misfit:
                log.warning("this node and its manager may misunderstand each other: %s", error.message)
            self._misfit = error.message
        except HuskError as error:
            log.warning("the swarm does not know what this node is: %s", error.message)
