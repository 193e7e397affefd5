"""What takes room on the disk, as it was counted last. To count takes a while: no page waits long for it."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from husk.client.client import Client
from husk.dashboard.live import Live
from husk.tasks import Tasks

# Seconds that a page waits for what is being counted.
PATIENCE = 0.05
# Seconds for which a count is good: while nobody hears of changes, and while all that happens is heard of.
_SHORT, _LONG = 1.0, 10.0
# What pages that are open are told when there is a new count.
COUNTED = ("change", {"type": "disk", "action": "counted", "id": "", "name": "", "time": 0})


class Room:
    """The document that `df` answers."""

    def __init__(self, engine: Client, tasks: Tasks, live: Live) -> None:
        self._engine = engine
        self._tasks = tasks
        self._live = live
        self._found: Mapping[str, Any] | None = None
        self._began = self._ended = float("-inf")
        # How much had happened when it began.
        self._changes = 0
        self._counting: asyncio.Task[None] | None = None
        self._is_told = False

    async def look(self, patience: float = PATIENCE) -> tuple[Mapping[str, Any] | None, bool]:
        """(what is known, whether it is being counted anew). Nothing is known before the first count has ended: pages
        that are open are told then."""
        if self._counting is None and not self._is_good():
            self._counting = self._tasks.spawn(self._count(), "disk use for the dashboard", awaited=True)
        if (counting := self._counting) is not None:
            await asyncio.wait([counting], timeout=patience)
            if counting.done():
                counting.result()
            elif not self._is_told:
                self._is_told = True
                counting.add_done_callback(lambda _: self._live.tell(COUNTED))
        return self._found, self._counting is not None

    def _is_good(self) -> bool:
        heard = self._live.since is not None and self._live.since < self._began
        age = time.monotonic() - self._ended
        return age < (_LONG if heard else _SHORT) and self._changes == self._live.changes

    async def _count(self) -> None:
        self._is_told = False
        self._changes, self._began = self._live.changes, time.monotonic()
        try:
            self._found = await self._engine.df()
            self._ended = time.monotonic()
        finally:
            self._counting = None
