"""The use of the disk, as it was counted last. To count takes a while: no page waits long for it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.dashboard.live import Live
from husk.errors import HuskError

# Seconds that a page waits for what is being counted.
PATIENCE = 0.05
# Seconds for which a count is good: while nobody hears of changes, and while all that happens is heard of.
_SHORT, _LONG = 1.0, 10.0
# Where much happens it is not counted all the time: for so many times as long as a count took there is no other, but
# no longer than the longer of `_LONG` and one such time.
_RESTS = 9
# What pages that are open are told when there is a new count, or none can be had.
COUNTED = ("change", {"type": "disk", "action": "counted", "id": "", "name": "", "time": 0})


class Room:
    """The document that `df` answers."""

    def __init__(self, engine: Client, tasks: Tasks, live: Live, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._engine = engine
        self._tasks = tasks
        self._live = live
        self._found: Mapping[str, Any] | None = None
        self._began = self._ended = float("-inf")
        # How much had happened when it began.
        self._changes = 0
        self._counting: asyncio.Task[None] | None = None
        self._failed: HuskError | None = None
        self._is_told = False

    async def look(self, patience: float = PATIENCE) -> tuple[Mapping[str, Any] | None, bool]:
        """(what is known, whether it is being counted anew). Nothing is known before the first count has ended: pages
        that are open are told then. What a count failed with is raised by the next look."""
        if self._counting is None and self._failed is None and not self._is_good():
            self._counting = self._tasks.spawn(self._count(), "disk use for the dashboard", awaited=True)
        if (counting := self._counting) is not None:
            await asyncio.wait([counting], timeout=patience)
            if counting.done():
                counting.result()
            elif not self._is_told:
                self._is_told = True
                counting.add_done_callback(lambda _: self._live.tell(COUNTED))
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        return self._found, self._counting is not None

    def _is_good(self) -> bool:
        heard = self._live.since is not None and self._live.since < self._began
        age = self._clock() - self._ended
        return age < (_LONG if heard else _SHORT) and self._changes == self._live.changes

    def _rest(self) -> float:
        """Seconds until it may be counted again."""
        if self._found is None:
            return 0.0
        took = self._ended - self._began
        return max(took, min(_RESTS * took, _LONG)) - (self._clock() - self._ended)

    async def _count(self) -> None:
        self._is_told = False
        try:
            await asyncio.sleep(self._rest())
            changes, began = self._live.changes, self._clock()
            self._found = await self._engine.df()
            self._changes, self._began, self._ended = changes, began, self._clock()
        except HuskError as error:
            self._failed = error
        finally:
            self._counting = None
