"""Limiter are taken in turn, given back however their work ends, and may become more or fewer."""

import asyncio

import pytest

from husk.engine.images.limiter import Limiter


class Work:
    """Something that holds a slot until it is told to end."""

    def __init__(self, slots: Limiter) -> None:
        self.begun = False
        self._end = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run(slots))

    async def _run(self, slots: Limiter) -> None:
        async with slots:
            self.begun = True
            await self._end.wait()

    async def end(self) -> None:
        self._end.set()
        await self.task


async def settled(*works: Work) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [work.begun for work in works]


async def test_no_more_than_the_limit_at_a_time_and_in_turn() -> None:
    slots = Limiter(2)
    a, b, c, d = (Work(slots) for _ in range(4))
    assert await settled(a, b, c, d) == [True, True, False, False]
    assert slots.locked()
    await a.end()
    assert await settled(c, d) == [True, False]
    await b.end()
    await c.end()
    assert await settled(d) == [True]
    await d.end()
    assert not slots.locked()


async def test_more_slots_let_those_in_who_wait_and_fewer_push_nobody_out() -> None:
    slots = Limiter(1)
    a, b, c = (Work(slots) for _ in range(3))
    assert await settled(a, b, c) == [True, False, False]
    slots.resize(2)
    assert await settled(b, c) == [True, False]
    slots.resize(1)
    await a.end()
    assert await settled(c) == [False]
    await b.end()
    assert await settled(c) == [True]
    await c.end()


@pytest.mark.parametrize("woken", [False, True])
async def test_who_gives_up_waiting_takes_no_slot_along(woken: bool) -> None:
    slots = Limiter(1)
    a, b, c = (Work(slots) for _ in range(3))
    await settled(a, b, c)
    if woken:
        a._end.set()  # its slot goes to b, in the same turn in which b gives up
        await asyncio.sleep(0)
    b.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await b.task
    await a.end()
    assert await settled(c) == [True]
    await c.end()
    assert not slots.locked()
