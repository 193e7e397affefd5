"""Directories that nobody needs any more: out of sight in one step, and from there deleted bit by bit."""

import asyncio
import contextlib
import errno
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.kernel.trees import remove_tree

log = logging.getLogger(__name__)

# A worker of a daemon that was killed may still write into what the next one deletes, until it sees that it is alone.
_TRIES, _PAUSE = 50, 0.2


class Trash:
    """A directory beside `source`, whose entries are thrown into it and deleted in the background."""

    def __init__(
        self,
        path: Path,
        source: Path,
        remove: Callable[[Path, threading.Event], None] = remove_tree,
        pause: float = _PAUSE,
    ) -> None:
        self._remove, self._pause = remove, pause
        self._path = path
        self._source = source
        self._tasks = Tasks()
        self._emptying: asyncio.Task[None] | None = None
        self._stop = threading.Event()

    def make(self) -> None:
        self._path.mkdir(exist_ok=True, mode=0o700)

    def names(self) -> set[str]:
        """Return the names of what is not deleted yet."""
        return set(os.listdir(self._path))

    def take(self, name: str) -> None:
        """Nothing happens when there is no such entry."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._source / name, self._path / name)

    def empty_soon(self) -> None:
        if self._emptying is None or self._emptying.done():
            self._emptying = self._tasks.spawn(self._empty(), "empty the trash of layers")

    async def emptied(self) -> None:
        """Wait until all is deleted that can be."""
        if self._emptying is not None:
            await asyncio.wait({self._emptying})

    async def close(self) -> None:
        """Stop deleting; the rest is deleted after the next start."""
        self._stop.set()
        await self._tasks.join()

    async def _empty(self) -> None:
        refused: Counter[str] = Counter()
        while not self._stop.is_set() and (names := {name for name in self.names() if refused[name] < _TRIES}):
            for name in names:
                try:
                    await threads.removals(self._remove, self._path / name, self._stop)
                except OSError as error:
                    refused[name] += 1 if error.errno == errno.ENOTEMPTY else _TRIES
                    if refused[name] < _TRIES:
                        await asyncio.sleep(self._pause)
                    else:
                        log.error("cannot delete %s: %s", self._path / name, error)
