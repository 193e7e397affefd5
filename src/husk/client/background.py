"""Work of a client that goes on beside its calls, on an event loop.

Loaded with the first of it: a short command asks and is answered, and asyncio would take half of its time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from husk.aio.tasks import Tasks

T = TypeVar("T")


class Background(Tasks):
    """The tasks that must not be cut off: they are waited for before the engine is left."""

    def __init__(self) -> None:
        super().__init__()
        # Bodies of requests are not waited for: their answers are.
        self._bodies = Tasks()

    def send(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Send the body of a request while its answer is read."""
        return self._bodies.spawn(body, "body of a request", awaited=True)

    async def made(self, making: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]]) -> T:
        """Return the result of `making`. If cancelled meanwhile, first undo that result, or see that there is none."""
        task = self.spawn(making, "make something", awaited=True)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self.to_its_end(_undone(task, undo), "undo something")
            raise

    @asynccontextmanager
    async def awaited(self, work: Coroutine[Any, Any, T], name: str) -> AsyncIterator[Callable[[], Awaitable[T]]]:
        """Work that goes on inside the block. A cancelled call for its result may be repeated."""
        task = self.spawn(work, name, awaited=True)
        try:
            yield lambda: asyncio.shield(task)
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # a caller that has not asked need not hear of it


async def _undone(making: asyncio.Task[T], undo: Callable[[T], Coroutine[Any, Any, object]]) -> None:
    await asyncio.wait([making])
    if not making.cancelled() and making.exception() is None:
        await undo(making.result())
