"""Background work with an owner: the one place that starts asyncio tasks.

asyncio keeps only weak references to tasks and forgets their exceptions; an owner keeps both until the task is done.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Tasks:
    """The running tasks of one owner; failures are logged with a traceback unless somebody awaits them."""

    def __init__(self) -> None:
        # In the order in which they began.
        self._running: dict[asyncio.Task[object], None] = {}

    def spawn(self, work: Coroutine[object, object, T], name: str, *, awaited: bool = False) -> asyncio.Task[T]:
        """Start `work`; `awaited` says that the caller looks at the outcome itself."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._forget if awaited else self._finish)
        return task

    async def to_its_end(self, work: Coroutine[object, object, T], name: str) -> T:
        """Run work that must not be cut off half-way: a caller who is cancelled meanwhile hears of it afterwards."""
        task = self.spawn(work, name, awaited=True)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                with suppress(asyncio.CancelledError):  # who is impatient is told the same
                    await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                log.info("task %s failed when it was not wanted any more: %s", name, error)
            raise

    async def cancel_all(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def join(self) -> None:
        """Wait until everything started here, and everything that those tasks start here, has ended."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
            # From Python 3.12 on nothing else has had a turn if all were done already: neither has `_forget`.
            await asyncio.sleep(0)

    @property
    def count(self) -> int:
        return len(self._running)

    def _forget(self, task: asyncio.Task[T]) -> None:
        self._running.pop(task, None)

    def _finish(self, task: asyncio.Task[T]) -> None:
        self._forget(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task %s failed", task.get_name(), exc_info=error)
