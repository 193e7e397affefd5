"""Clearing up after containers that were removed by force together: it is done when the crowd has gone.

The end of a memory control group costs the kernel a look at every file system that is mounted anywhere, and each
container has eleven: beside 1,000 containers that is more than all else that a removal takes. When they have gone it
costs next to nothing. So while many are being removed at once these groups, which are empty, wait for the last of them.

So do the bundle and the runtime's own files, and the container's directory where it has written next to nothing: some
twenty files, after each of which a thread would wait for its turn to run Python while the loop has its hands full. A
daemon that is killed meanwhile leaves bundles and directories without records, which the next one clears as it clears
all such.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.errors import HuskError

log = logging.getLogger(__name__)

# How long the first one waits at most, however many come after it; how many wait at most.
PATIENCE = 10.0
MOST = 2000
# How many are cleared in one visit to a thread, and how many visits there are at a time: they wait for the kernel.
_BATCH = 8
_VISITS = 4


class Clearing:
    def __init__(self, tasks: Tasks, patience: float = PATIENCE, most: int = MOST) -> None:
        self._patience, self._most = patience, most
        self._tasks = tasks
        self._batches = Tasks()
        self._waiting: dict[str, Callable[[], None]] = {}
        self._crowd_gone = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self._most

    def put(self, container_id: str, clear: Callable[[], None]) -> None:
        """Clear up after a container that has no record any more, soon. `clear` blocks, and is safe to repeat."""
        self._waiting[container_id] = clear
        if self._task is None or self._task.done():
            self._crowd_gone.clear()
            self._task = self._tasks.spawn(self._work(), "clear up after a crowd")

    def begin(self) -> None:
        """The last of the crowd has gone."""
        self._crowd_gone.set()

    async def _work(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._crowd_gone.wait()
        await self.finish()

    async def finish(self) -> None:
        """Clear up after all of them now."""
        while self._waiting:
            batch = list(islice(self._waiting.items(), _BATCH * _VISITS))
            # To its end, though the daemon goes meanwhile: the threads would be at it while `finish` begins again.
            await self._batches.to_its_end(self._clear_batch(batch), "clear up after some of a crowd")

    async def _clear_batch(self, batch: list[tuple[str, Callable[[], None]]]) -> None:
        visits = [batch[number::_VISITS] for number in range(_VISITS)]
        await asyncio.gather(*(threads.releases(_clear_all, visit) for visit in visits))
        for container_id, _ in batch:
            self._waiting.pop(container_id, None)


def _clear_all(batch: list[tuple[str, Callable[[], None]]]) -> None:
    for container_id, clear in batch:
        try:
            clear()
        except (HuskError, OSError) as error:
            # Its bundle is still there: the next start of the daemon tries again.
            log.warning("while clearing up after container %s: %s", container_id[:12], error)
