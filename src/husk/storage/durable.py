"""Syncing to the disk: what was written is there after a `settle`, which all who wait at the same time share.

Whatever the API acknowledges must outlive a power cut, in this order: contents (`BlobStore`, `VolumeStore`), then the
record that names them (`StateStore`). Commits that wait at the same time share one sync of SQLite's log. What can be
made again from contents, the unpacked files of layers, is synced when nobody waits (`writeback`).
"""

import asyncio
from collections.abc import Callable

from husk.aio.tasks import Tasks
from husk.aio.thread_pool import ThreadPool
from husk.errors import DiskFault

# Within so many seconds is on the disk what nobody waits for.
SOON = 1.0


class Flusher:
    """One way to sync, which blocks: it runs in a thread of its own, for it may last as long as the disk is slow."""

    def __init__(self, flush: Callable[[], None], name: str, soon: float = SOON) -> None:
        self._soon = soon
        self._flush = flush
        self._thread = ThreadPool(1, name)
        self._name = name
        self._written = 0
        self._settled = 0
        self._tasks = Tasks()
        self._flushing: asyncio.Task[None] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._closed = False

    def wrote(self) -> None:
        """Something was written that is in memory only."""
        self._written += 1

    async def settle(self) -> None:
        """Return when all that was written before is on the disk; at once if it is. DiskFault if the disk fails."""
        wanted = self._written
        while self._settled < wanted:
            if self._flushing is None:
                self._flushing = self._tasks.spawn(self._run(), self._name, awaited=True)
            # A sync that had begun before may have missed it: then there is another one.
            await asyncio.shield(self._flushing)

    def settle_soon(self) -> None:
        """As `settle`, for what nobody waits for."""
        if self._waiting is None and not self._closed and self._settled < self._written:
            self._waiting = asyncio.get_running_loop().call_later(self._soon, self._settle_late)

    def close(self) -> None:
        """Stop syncing: data that is not settled is left to the kernel."""
        self._closed = True
        if self._waiting is not None:
            self._waiting.cancel()
        self._thread.shutdown()

    def _settle_late(self) -> None:
        self._waiting = None
        if not self._closed:
            self._tasks.spawn(self.settle(), f"{self._name}, late")

    async def _run(self) -> None:
        target = self._written
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._flush)
        except OSError as error:
            raise DiskFault(f"what was written cannot be put on the disk: {error}") from error
        finally:
            self._flushing = None
        self._settled = max(self._settled, target)
