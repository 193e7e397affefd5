"""When does a log get a new file? When the present one is full; looked at as it grows, as often as its growth asks for.

A file may grow beyond its size by what is written between two looks. Cut off anywhere, the next daemon goes on: a log
without a file being written belongs to a monitor that has still to be told to open one.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from husk import threads
from husk.engine.logs.container import LoggedContainer
from husk.engine.logs.options import Keeping, keeping
from husk.engine.model.companion import Companion
from husk.engine.model.container import Container
from husk.errors import SystemFault
from husk.runtime.log_files import GrowthWatches, LogFiles
from husk.tasks import Tasks

log = logging.getLogger(__name__)

_SHORTEST, _LONGEST = 0.01, 0.1
_REOPEN_PATIENCE = 10.0


class Rotator(Companion[LoggedContainer]):
    def __init__(self, path: Callable[[str], Path], reopen: Callable[[Container], None], tasks: Tasks) -> None:
        """`path` is that of the log of a container; `reopen` tells its monitor to begin a new file.

        `reopen` raises SystemFault when the monitor is gone.
        """
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
        self, files: LogFiles, record: Container, wanted: Keeping, former: asyncio.Task[None] | None
    ) -> None:
        if former is not None:
            await asyncio.wait([former])
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
            if not await self._tasks.to_its_end(rotating, f"rotate the log of {record.id[:12]}"):
                return

    async def _rotate(self, files: LogFiles, record: Container, wanted: Keeping) -> bool:
        """Go on after a file was put aside; False when nobody writes any more."""
        begun = await self._reopen(files, record)
        try:
            await threads.trees(files.tidy, wanted.max_files, wanted.compress)
        except FileNotFoundError:
            return False  # removed with its container
        except OSError as error:
            # The next time it is full, if there is room then.
            log.warning("old logs of container %s are not packed: %s", record.id[:12], error)
        return begun

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

    async def _reopen(self, files: LogFiles, record: Container) -> bool:
        """Have the monitor begin a new file; False when it is gone."""
        deadline = time.monotonic() + _REOPEN_PATIENCE
        with contextlib.suppress(SystemFault):
            while time.monotonic() < deadline:
                self._reopen_log(record)
                for _ in range(50):
                    if files.is_begun():
                        return True
                    await asyncio.sleep(0.005)
        return files.is_begun()
