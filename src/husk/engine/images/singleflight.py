"""One piece of work that several clients share: the first starts it, all hear of it, the last to leave ends it."""

import asyncio
from collections.abc import Callable, Coroutine

from husk.engine.model.image import Progress
from husk.tasks import Tasks

Report = Callable[[Progress], None]


class _Flight:
    """Work under way, and who waits for it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.listeners: list[Report] = []
        self.last: Progress | None = None

    def tell(self, progress: Progress) -> None:
        self.last = progress
        for listener in self.listeners:
            listener(progress)


class SingleFlight:
    """Work by key, such as the download of one layer."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}
        self._tasks = Tasks()

    def task(self, key: str) -> asyncio.Task[None] | None:
        """The work that is under way for `key`."""
        flight = self._flights.get(key)
        return flight.task if flight is not None else None

    async def join(self, key: str, work: Callable[[Report], Coroutine[object, object, None]], report: Report) -> None:
        """Wait for the work of this key; start it if nobody has. Whoever comes late hears at once how far it is."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            flight.task = self._tasks.spawn(self._fly(key, flight, work), key, awaited=True)
        elif flight.last is not None:
            report(flight.last)
        assert flight.task is not None
        flight.listeners.append(report)
        try:
            await asyncio.shield(flight.task)
        finally:
            flight.listeners.remove(report)
            if not flight.listeners and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
                # What it holds must be free again before the caller cleans up.
                await asyncio.wait({flight.task})

    async def _fly(self, key: str, flight: _Flight, work: Callable[[Report], Coroutine[object, object, None]]) -> None:
        try:
            await work(flight.tell)
        finally:
            self._forget(key, flight)

    def _forget(self, key: str, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
