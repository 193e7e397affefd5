"""The logs of this node's own tasks, for a manager that asks for them.

A worker brings the logs that its manager asks for.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.engine.model.clock import now_ns, rfc3339
from husk.errors import HuskError
from husk.swarm.loops import again_and_again
from husk.swarm.model.services import Task
from husk.swarm.port.assignment_messages import decoded
from husk.swarm.port.log_messages import Asked, AsPieces, begun

# Pieces that wait for the reader.
_BACKLOG = 2


class LogSource:
    def __init__(self, containers: Containers, find: Callable[[str], Task | None]) -> None:
        """`find` gives a task of this node, and of no other."""
        self._containers = containers
        self._find = find

    async def read(self, asked: Asked) -> AsyncGenerator[bytes]:
        """Pieces of all of these logs as they come, until all have ended. What is not there is left out."""
        coming: asyncio.Queue[bytes | None] = asyncio.Queue(_BACKLOG)
        carriers = Tasks()
        found = {number: self._log(number, id, asked) for number, id in enumerate(asked.tasks)}
        logs = {number: log for number, log in found.items() if log is not None}
        left, now = len(logs), rfc3339(now_ns()).encode()
        try:
            for number in logs if asked.begun else ():
                yield begun(number, now)
            for log in logs.values():
                carriers.spawn(_carry(log, coming), "a log for another node")
            while left:
                piece = await coming.get()
                if piece is None:
                    left -= 1
                elif piece:
                    yield piece
        finally:
            await carriers.cancel_all()

    def _log(self, number: int, task_id: str, asked: Asked) -> AsyncIterator[bytes] | None:
        if (task := self._find(task_id)) is None:
            return None
        try:
            reference = task.status.container_id or task.name
            return self._containers.logs(reference, asked.query_of(number), AsPieces(number, asked.times))
        except HuskError:
            return None


async def _carry(log: AsyncIterator[bytes], coming: "asyncio.Queue[bytes | None]") -> None:
    try:
        async for piece in log:
            await coming.put(piece)
    except asyncio.CancelledError:
        raise  # nobody takes anything any more
    except BaseException:
        await coming.put(None)
        raise
    finally:
        if (close := getattr(log, "aclose", None)) is not None:
            await close()
    await coming.put(None)


class LogCalls(Protocol):
    """Calls to a manager (`husk.swarm.port.logs.LogCalls`)."""

    def wanted(self) -> AsyncGenerator[bytes]: ...

    async def send(self, name: bytes, pieces: AsyncIterator[bytes]) -> None: ...


class WorkerLogs:
    def __init__(self, calls: LogCalls, read: Callable[[Asked], AsyncGenerator[bytes]]) -> None:
        """`read` gives pieces of this node's logs."""
        self._calls = calls
        self._read = read
        self._tasks = Tasks()
        self._started = False

    def start(self) -> None:
        """Nothing is done where it is started, or closed. To be called when this node knows its tasks: what it does not
        know is taken for one that is gone."""
        if self._started:
            return
        self._started = True
        self._tasks.spawn(again_and_again(self._listen, "logs"), "services: logs for managers")

    async def close(self) -> None:
        """For good: a manager may tell of all tasks at this very moment."""
        self._started = True
        await self._tasks.cancel_all()

    async def _listen(self) -> None:
        async with aclosing(self._calls.wanted()) as wanted:
            async for body in wanted:
                self._tasks.spawn(self._bring(decoded(body, Asked)), "logs for a manager")

    async def _bring(self, asked: Asked) -> None:
        async with aclosing(self._read(asked)) as pieces:
            with suppress(HuskError):  # the manager has gone, and with it who wanted to read
                await self._calls.send(asked.name.encode(), pieces)
