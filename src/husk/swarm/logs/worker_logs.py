"""A worker brings the logs that its manager asks for."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm.loops import again_and_again
from husk.swarm.port.assignment_messages import decoded
from husk.swarm.port.log_messages import Asked


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
