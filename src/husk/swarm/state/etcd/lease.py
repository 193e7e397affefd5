"""A lease of etcd, kept alive: what is written under it goes when nobody hears of us any more.

We take it for lost when its time has passed since we asked for the last renewal that was granted, by our own clock: not
later than etcd, whatever is between us.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Self

from husk.aio.tasks import Tasks
from husk.rpc.grpc.status import GrpcError
from husk.swarm.state.etcd.channel import EtcdChannel
from husk.swarm.state.etcd.messages import KEEP_ALIVE, REVOKE, LeaseKeepAliveResponse, LeaseRequest
from husk.swarm.state.transactions import StoreUnavailable

log = logging.getLogger(__name__)

# How often within its time a lease is renewed. In seconds: the shortest pause before that, where the last renewal came
# late, and how long its end may take.
_TIMES = 3
_SOONEST = 0.1
_FAREWELL = 2.0


def pause(seconds: float, left: float) -> float:
    """Return the wait, in seconds, before a lease of so many seconds is renewed. After a late answer little is left."""
    return min(seconds / _TIMES, max(left / 2, _SOONEST))


class EtcdLease:
    def __init__(
        self, channel: EtcdChannel, id: int, seconds: float, asked: float, ended: Callable[["EtcdLease"], None]
    ) -> None:
        self.id = id
        self._channel = channel
        self._seconds = seconds
        self._until = asked + seconds
        self._ended = ended
        # Kept: whether the lease is lost may be asked in any thread.
        self._loop = asyncio.get_running_loop()
        self._lost = asyncio.Event()
        self._tasks = Tasks()
        self._keeping = self._tasks.spawn(self._keep(), f"lease {id:x}")
        self._watching = self._tasks.spawn(self._watch_clock(), f"end of lease {id:x}")

    @property
    def lost(self) -> bool:
        # The loop may have been stopped for longer than the lease had.
        return self._lost.is_set() or self._loop.time() >= self._until

    async def wait_lost(self) -> None:
        await self._lost.wait()

    def abandon(self) -> None:
        self._keeping.cancel()
        self._watching.cancel()
        self._loop.call_at(self._until, self._lost.set)
        # Nor does the store end it when it is closed.
        self._ended(self)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        if not self._lost.is_set():
            self._lose()
            # Where it cannot be said, its time runs out.
            with contextlib.suppress(StoreUnavailable, GrpcError):
                await self._channel.unary(REVOKE, LeaseRequest(id=self.id).encode(), _FAREWELL)

    async def _keep(self) -> None:
        while not self._lost.is_set():
            await asyncio.sleep(pause(self._seconds, self._until - self._loop.time()))
            asked = self._loop.time()
            try:
                answer, _ = await self._channel.unary(KEEP_ALIVE, LeaseRequest(id=self.id).encode(), self._seconds)
            except (StoreUnavailable, GrpcError) as error:
                log.warning("a lease could not be renewed: %s", error)
                continue
            if LeaseKeepAliveResponse.decode(answer).ttl <= 0:
                self._lose()
                return
            self._until = asked + self._seconds

    async def _watch_clock(self) -> None:
        while not self.lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._until):
                    await self._lost.wait()
        self._lose()

    def _lose(self) -> None:
        if not self._lost.is_set():
            self._lost.set()
            self._ended(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
