"""Syncing of the unpacked files of layers, some seconds after the layer came: nobody waits for it.

A layer is on the disk twice, as its blob and as the files unpacked from it, and one of the two is enough after a power
cut: whoever brings a layer waits for the blob (`BlobStore.settle`), which is one file. The many files of the other form
are synced here in the background, all of the file system at once; until then the layer's record says that they are not,
and a start that finds such a record unpacks the layer again (`LayerStore`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from husk.aio.tasks import Tasks
from husk.errors import DiskFault
from husk.kernel.disk import sync_file_system
from husk.storage.durable import Flusher

# So many seconds after the last layer has come: it would only make a pull wait for the disk.
LATER = 5.0
# However many come: what would have to be unpacked again after a power cut must not grow without end.
AT_MOST = 30.0

log = logging.getLogger(__name__)


class Writeback:
    """The directories of layers below `root` whose files may be in memory only; `done` hears which are no more."""

    def __init__(
        self,
        root: Path,
        done: Callable[[frozenset[str]], Awaitable[None]],
        sync: Callable[[Path], None] = sync_file_system,
        later: float = LATER,
        at_most: float = AT_MOST,
    ) -> None:
        """A `sync` comes so many seconds `later` than the last layer, and `at_most` so many after the first."""
        self._pause, self._at_most = later, at_most
        self._done = done
        self._waiting: set[str] = set()
        self._coming = 0
        self._flusher = Flusher(lambda: sync(root), "sync the files of layers")
        self._tasks = Tasks()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._closed = False

    def add(self, directory: str) -> None:
        """Plan a sync of this directory's files."""
        self._waiting.add(directory)
        self._later()

    def postpone(self) -> None:
        """Another layer begins to come."""
        if self._timer is not None:
            self._later()

    @contextlib.contextmanager
    def coming(self) -> Iterator[None]:
        """A layer comes as long as this lasts."""
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1
            self.postpone()

    async def settle(self) -> None:
        """Return when all files that were written before are on the disk, whoever wrote them."""
        self._flusher.wrote()
        await self._flusher.settle()

    async def close(self) -> None:
        """Finish the syncs that are planned, so that the next start need not unpack anything again."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.join()
        await self._write()
        self._flusher.close()

    def _later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._deadline = loop.time() + self._at_most
        elif loop.time() >= self._deadline:
            return
        else:
            self._timer.cancel()
        if not self._closed:
            self._timer = loop.call_at(min(loop.time() + self._pause, self._deadline), self._begin)

    def _begin(self) -> None:
        if self._coming and asyncio.get_running_loop().time() < self._deadline:
            self._later()
            return
        self._timer = None
        self._tasks.spawn(self._write(), "sync the files of layers")

    async def _write(self) -> None:
        written = frozenset(self._waiting)
        if not written:
            return
        try:
            await self.settle()
            await self._done(written)
        except DiskFault as fault:
            log.error("the files of layers: %s", fault.message)
            self._later()
        else:
            self._waiting -= written
