"""The delay of the event loop, by a timer: it is due twice a second, and comes late when something holds the loop."""

import asyncio
from collections.abc import Callable

PERIOD = 0.5


class LoopDelay:
    def __init__(self, tell: Callable[[float], object], period: float = PERIOD) -> None:
        self._tell = tell
        self._period = period
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + period
        self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        self._tell(max(0.0, now - self._due))
        self._due = now + self._period
        self._timer = self._loop.call_at(self._due, self._ring)

    def close(self) -> None:
        self._timer.cancel()
