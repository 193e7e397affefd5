"""The logs of this node's own tasks, for a manager that asks for them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from husk.aio.tasks import Tasks
from husk.engine.containers.service import Containers
from husk.engine.model.clock import now_ns, rfc3339
from husk.errors import HuskError
from husk.swarm.model.services import Task
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
