"""Rotation of logs: a new file when the present one is full; looked at as it grows, as often as its growth asks for.

A file may grow beyond its size by what is written between two looks. Cut off anywhere, the next daemon goes on: a log
without a file being written belongs to a monitor that has still to be told to open one.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.engine.logs.container import LoggedContainer
from husk.engine.logs.options import LogRetention, keeping
from husk.engine.model.container import Companion, Container
from husk.errors import SystemFault
from husk.runtime.logs.files import GrowthWatches, LogFiles

log = logging.getLogger(__name__)

_SHORTEST, _LONGEST = 0.01, 0.1
# Seconds from telling the monitor to telling it again. Not often: what it is told while it is stuck it does later, and
# each time it begins anew, over what it has written since the time before.
_REOPEN_PAUSES = (0.25, 0.75, 2.0, 7.0)
# Seconds that one which is stuck is left alone at first, then twice as long each time.
_STUCK = 10.0


class WriterState(Enum):
    """The state of the writer of a file that was put aside."""

    ELSEWHERE = "it has begun a new file"
    STUCK = "it may still write to the old one"
    GONE = "nobody writes any more"


class Rotator(Companion[LoggedContainer]):
    def __init__(
        self,
        path: Callable[[str], Path],
        reopen: Callable[[Container], None],
        tasks: Tasks,
        reopen_pauses: tuple[float, ...] = _REOPEN_PAUSES,
        stuck: float = _STUCK,
    ) -> None:
        """`path` is that of the log of a container; `reopen` tells its monitor to begin a new file.

        `reopen` raises SystemFault when the monitor is gone.
        """
        self._reopen_pauses, self._stuck = reopen_pauses, stuck
        self._path = path
        self._reopen_log = reopen
        self._tasks = tasks
        self._watches = GrowthWatches()
        self._running: dict[str, asyncio.Task[None]] = {}
        # Of containers that have ended, until the last rotation is over.
        self._ending: dict[str, asyncio.Task[None]] = {}

    def running(self, container: LoggedContainer, /) -> None:
        config = container.record.host_config.log_config
        wanted = keeping(config.type, config.config).in_parts()
        if config.type == "none" or not wanted.max_size or container.id in self._running:
            return
        former = self._ending.get(container.id)
        work = self._keep_small(LogFiles(self._path(container.id)), container.record, wanted, former)
        self._running[container.id] = self._tasks.spawn(work, f"log of {container.id[:12]}")

    def ended(self, container: LoggedContainer, /) -> None:
        if (task := self._running.pop(container.id, None)) is not None:
            task.cancel()
            self._ending[container.id] = task
            task.add_done_callback(lambda _: self._over(container.id, task))

    def _over(self, container_id: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(container_id) is task:
            del self._ending[container_id]

    def close(self) -> None:
        self._watches.close()

    async def _keep_small(
        self, files: LogFiles, record: Container, wanted: LogRetention, former: asyncio.Task[None] | None
    ) -> None:
        if former is not None:
            await asyncio.wait([former])
        stuck = self._stuck
        while True:
            try:
                await self._until_full(files, wanted.max_size)
                files.put_aside()
            except FileNotFoundError:
                pass  # put aside by a daemon that came no further
            except OSError as error:
                log.warning("the log of container %s cannot be kept small: %s", record.id[:12], error)
                return
            # The container may end meanwhile: its files are no more than were asked for then, too.
            rotating = self._rotate(files, record, wanted)
            writer = await self._tasks.to_its_end(rotating, f"rotate the log of {record.id[:12]}")
            if writer is WriterState.GONE:
                return
            if writer is WriterState.STUCK and not await _begun_within(files, stuck):
                stuck *= 2
            else:
                stuck = self._stuck

    async def _rotate(self, files: LogFiles, record: Container, wanted: LogRetention) -> WriterState:
        """Go on after a file was put aside."""
        writer = await self._reopen(files, record)
        try:
            # What is still written to must not be packed: that would be lost.
            await threads.trees(files.tidy, wanted.max_files, wanted.compress and writer is not WriterState.STUCK)
        except OSError as error:
            if not files.present:
                return WriterState.GONE  # removed with its container
            # The next time it is full, if there is room then.
            log.warning("old logs of container %s are not packed: %s", record.id[:12], error)
        return writer

    async def _until_full(self, files: LogFiles, limit: int) -> None:
        grown = asyncio.Event()
        number = self._watches.add(files.path, grown.set)
        try:
            before, moment = files.size(), time.monotonic()
            while before < limit:
                await grown.wait()
                await asyncio.sleep(_SHORTEST)
                grown.clear()
                size, now = files.size(), time.monotonic()
                rate = max(0, size - before) / max(now - moment, 1e-3)
                before, moment = size, now
                if size < limit and rate:
                    await asyncio.sleep(min((limit - size) / rate / 2, _LONGEST))
        finally:
            self._watches.remove(number)

    async def _reopen(self, files: LogFiles, record: Container) -> WriterState:
        """Make the monitor begin a new file, and return what became of the old one's writer."""
        for pause in self._reopen_pauses:
            try:
                self._reopen_log(record)
            except SystemFault:
                return WriterState.ELSEWHERE if files.is_begun() else WriterState.GONE
            if await _begun_within(files, pause):
                return WriterState.ELSEWHERE
        return WriterState.STUCK


async def _begun_within(files: LogFiles, seconds: float) -> bool:
    started = time.monotonic()
    while not files.is_begun():
        waited = time.monotonic() - started
        if waited >= seconds:
            return False
        await asyncio.sleep(min(max(0.005, waited / 10), 0.1))
    return True
