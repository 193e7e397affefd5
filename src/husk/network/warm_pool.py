"""Sandboxes made ahead of need, so that a start takes one within microseconds."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from husk.aio.tasks import Tasks
from husk.errors import SystemFault, Unavailable
from husk.network.sandbox import Lease

log = logging.getLogger(__name__)

# How long a pool that has enough for a few more waits until it is filled: the start that took from it goes first.
_REFILL_DELAY = 0.1


class WarmPool:
    """Up to `size` sandboxes, made by `build`. With `keep_for` they are given to `drop` when for that many seconds
    nobody has taken one; without it there are always some."""

    def __init__(
        self,
        tasks: Tasks,
        build: Callable[[], Awaitable[Lease]],
        drop: Callable[[Lease], None],
        *,
        size: int,
        keep_for: float,
        refill_delay: float = _REFILL_DELAY,
    ) -> None:
        self._refill_delay = refill_delay
        self._tasks = tasks
        self._build = build
        self._drop = drop
        self._size = size
        self._keep_for = keep_for
        self._leases: deque[Lease] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._wanted_now = asyncio.Event()
        self._cooling: asyncio.TimerHandle | None = None
        self._closing = False

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._leases)

    def __contains__(self, lease: Lease) -> bool:
        return lease in self._leases

    def take(self) -> Lease | None:
        """The one that waits longest; None when there is none. `refill` is for the taker to call."""
        return self._leases.popleft() if self._leases else None

    def put(self, lease: Lease) -> None:
        """One that was made for somebody who does not want it any more."""
        self._leases.append(lease)

    def remove(self, lease: Lease) -> None:
        self._leases.remove(lease)

    @property
    def filling(self) -> asyncio.Task[None] | None:
        """The task that makes sandboxes now, if there is one."""
        return self._filling if self._filling is not None and not self._filling.done() else None

    def hurry(self) -> None:
        """Let what is to be made soon be made now."""
        self._wanted_now.set()

    def warm_up(self) -> None:
        """Begin to fill a pool that is kept at all times."""
        if not self._keep_for:
            self.refill()

    def refill(self) -> None:
        """Somebody has taken one: make others, and keep them for a while."""
        if self._keep_for:
            self._stop_cooling()
            self._cooling = asyncio.get_running_loop().call_later(self._keep_for, self._cool)
        if 2 * len(self._leases) < self._size:
            self.hurry()
        if self.filling is None and not self._closing and len(self._leases) < self._size:
            self._filling = self._tasks.spawn(self._fill(), "fill warm pool")

    async def filled(self) -> None:
        """Wait for what is being made."""
        if (filling := self.filling) is not None:
            self.hurry()
            await asyncio.wait([filling])

    async def keep_none(self) -> None:
        """From now on nothing is made ahead of need."""
        self._size = 0
        await self.filled()
        self.drain()

    def drain(self) -> None:
        """Drop all that are there."""
        while self._leases:
            self._drop(self._leases.popleft())

    def close(self) -> None:
        """Make no more. What is being made gets ready: `drain` when it is."""
        self._closing = True
        self._stop_cooling()
        self.hurry()

    async def _fill(self) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._refill_delay):
                    await self._wanted_now.wait()
            self._wanted_now.clear()
            while not self._closing and len(self._leases) < self._size:
                self._leases.append(await self._build())
        except Unavailable as error:
            log.debug("the pool of warm networks stays smaller: %s", error)
        except SystemFault as error:
            # The next one who takes tries again and is told.
            log.warning("the pool of warm networks cannot be filled: %s", error)

    def _stop_cooling(self) -> None:
        if self._cooling is not None:
            self._cooling.cancel()

    def _cool(self) -> None:
        if not self._closing:
            self.drain()
