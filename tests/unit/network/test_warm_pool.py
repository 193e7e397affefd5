"""Sandboxes that are made ahead of need."""

import asyncio

import msgspec
import pytest

from husk.aio.tasks import Tasks
from husk.errors import SystemFault, Unavailable
from husk.network.sandbox import Lease
from husk.network.warm_pool import WarmPool
from tests.support.waiting import until_async

LEASE = Lease("/nowhere/one", "veth0", "10.9.0.2", 24, "10.9.0.1", "02:42:0a:09:00:02")


class Making:
    """Sandboxes that are only counted; `gate` holds up the next one, `refusal` is raised instead of it."""

    def __init__(self, size: int, keep_for: float = 0.0, refill_delay: float = 0.0) -> None:
        self.count = 0
        self.dropped: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refusal: Exception | None = None
        self.tasks = Tasks()
        self.pool = WarmPool(
            self.tasks, self._build, self._drop, size=size, keep_for=keep_for, refill_delay=refill_delay
        )

    async def _build(self) -> Lease:
        await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal
        self.count += 1
        return msgspec.structs.replace(LEASE, host_interface=f"veth{self.count}")

    def _drop(self, lease: Lease) -> None:
        self.dropped.append(lease.host_interface)

    def take(self) -> str:
        lease = self.pool.take()
        self.pool.refill()
        return lease.host_interface if lease is not None else ""

    async def full(self, size: int) -> None:
        await until_async(lambda: len(self.pool) == size, f"a pool of {size}")


async def test_a_pool_that_has_more_is_filled_when_the_start_has_gone_first() -> None:
    making = Making(4, refill_delay=3600.0)
    making.pool.warm_up()
    await making.full(4)
    for left, name in ((3, "veth1"), (2, "veth2")):
        assert making.take() == name
        await asyncio.sleep(0)
        assert (len(making.pool), making.count) == (left, 4)
    assert making.take() == "veth3"
    await making.full(4)
    making.take()
    making.pool.close()
    await making.tasks.join()
    assert len(making.pool) == 3


async def test_a_pool_that_is_kept_for_a_while_begins_with_the_first_who_takes() -> None:
    making = Making(2, keep_for=0.05)
    making.pool.warm_up()
    await asyncio.sleep(0)
    assert making.pool.filling is None and making.take() == ""
    await until_async(lambda: making.dropped == ["veth1", "veth2"], "that nobody wanted them")


async def test_what_is_being_made_can_be_waited_for() -> None:
    making = Making(2, refill_delay=3600.0)
    making.gate.clear()
    making.pool.warm_up()
    waiting = making.tasks.spawn(making.pool.keep_none(), "keep none", awaited=True)
    await asyncio.sleep(0)
    making.gate.set()
    await waiting
    assert (making.dropped, len(making.pool)) == (["veth1"], 0)
    making.pool.refill()
    assert making.pool.filling is None


async def test_one_that_is_not_wanted_any_more_is_for_the_next() -> None:
    making = Making(0)
    making.pool.put(LEASE)
    assert LEASE in making.pool and list(making.pool) == [LEASE] and making.take() == "veth0"
    making.pool.put(LEASE)
    making.pool.remove(LEASE)
    assert making.pool.take() is None


@pytest.mark.parametrize("refusal", [Unavailable("no available IPv4 addresses"), SystemFault("no memory")])
async def test_a_pool_that_cannot_be_filled_is_tried_again_by_the_next_who_takes(refusal: Exception) -> None:
    making = Making(1)
    making.refusal = refusal
    making.pool.warm_up()
    await making.pool.filled()
    assert making.take() == ""
    await making.pool.filled()
    making.refusal = None
    making.pool.refill()
    await making.full(1)
