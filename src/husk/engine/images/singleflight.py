"""One piece of work that several clients share: the first starts it, all hear of it, the last to leave ends it.

Each of them could do it by its own means, such as another registry. Work that fails, or that expects something from
outside and has waited long for next to nothing, is given up if another one waits, whose own work takes its place, once
for each of them. So nobody fails or waits because of what somebody else was told.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias

from husk.aio.tasks import Tasks
from husk.engine.model.image import Progress

PATIENCE = 15.0
# What has to come in that time: a server that says a little now and then has stalled, too.
_LEAST = 64 << 10

Report = Callable[[Progress], None]


class Listeners(Protocol):
    """All who wait for a piece of work, for whoever does it."""

    def __call__(self, progress: Progress, /) -> None:
        """Tell them how far it is."""

    def expecting(self) -> AbstractContextManager[None]:
        """For as long as something from outside is waited for, of which each piece is told."""


Work: TypeAlias = Callable[[Listeners], Coroutine[object, object, None]]


class _Flight:
    """Work under way, and who waits for it, each with the work that would be its own."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.listeners: list[tuple[Report, Work]] = []
        self.last: Progress | None = None
        self.failures: list[tuple[Work, BaseException]] = []
        self.begin()

    def begin(self) -> None:
        """Forget what was waited for: another one does the work from its beginning."""
        self._waited = 0.0
        self._since: float | None = None
        self._reached = 0

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        if progress.current - self._reached >= _LEAST:
            self._reached, self._waited = progress.current, 0.0
        for report, _ in self.listeners:
            report(progress)

    @contextmanager
    def expecting(self) -> Iterator[None]:
        self._since = began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._waited += asyncio.get_running_loop().time() - began
            self._since = None

    def quiet_for(self) -> float:
        """For how many seconds next to nothing has come of what is expected right now."""
        return 0.0 if self._since is None else self._waited + asyncio.get_running_loop().time() - self._since

    def another(self, tried: list[Work]) -> Work | None:
        return next((work for _, work in self.listeners if work not in tried), None)


class SingleFlight:
    """Work by key, such as the download of one layer."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._flights: dict[str, _Flight] = {}
        self._tasks = Tasks()

    def task(self, key: str) -> asyncio.Task[None] | None:
        """The work that is under way for `key`."""
        flight = self._flights.get(key)
        return flight.task if flight is not None else None

    async def join(self, key: str, work: Work, report: Report) -> None:
        """Wait for the work of this key; start it if nobody has. Whoever comes late hears at once how far it is."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            flight.task = self._tasks.spawn(self._fly(key, flight, work), key, awaited=True)
        elif flight.last is not None:
            report(flight.last)
        assert flight.task is not None
        listener = (report, work)
        flight.listeners.append(listener)
        try:
            await asyncio.shield(flight.task)
        except Exception as error:
            # Where all have failed, each hears what its own work failed by.
            raise next((own for failed, own in flight.failures if failed is work), error) from None
        finally:
            flight.listeners.remove(listener)
            if not flight.listeners and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
                # What it holds must be free again before the caller cleans up.
                await asyncio.wait({flight.task})

    async def _fly(self, key: str, flight: _Flight, work: Work) -> None:
        tried = [work]
        try:
            while (other := await self._try(key, flight, tried)) is not None:
                tried.append(other)
        finally:
            self._forget(key, flight)

    async def _try(self, key: str, flight: _Flight, tried: list[Work]) -> Work | None:
        """Run the last of `tried` to its end; the work that takes its place, if it fails or stalls and there is one."""
        flight.begin()
        attempt = self._tasks.spawn(tried[-1](flight), key, awaited=True)
        try:
            while not attempt.done():
                quiet = flight.quiet_for()
                if quiet >= self._patience and (other := flight.another(tried)) is not None:
                    return other
                await asyncio.wait({attempt}, timeout=self._patience - quiet if quiet < self._patience else 1)
            if (error := attempt.exception()) is None:
                return None
            flight.failures.append((tried[-1], error))
            if (other := flight.another(tried)) is not None:
                return other
            raise error
        finally:
            if not attempt.done():
                attempt.cancel()
                await asyncio.wait({attempt})

    def _forget(self, key: str, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
