"""Clearing that waits until a crowd has gone."""

import asyncio
import threading
from functools import partial

from husk.aio.tasks import Tasks
from husk.engine.containers.clearing import MOST, PATIENCE, Clearing
from husk.engine.model.container import Container
from husk.errors import SystemFault
from tests.support.waiting import until_async
from tests.unit.engine.records import container


class Cleared:
    def __init__(self, patience: float = PATIENCE, most: int = MOST) -> None:
        self.ids: list[str] = []
        self.stuck: set[str] = set()
        self.tasks = Tasks()
        self.clearing = Clearing(self.tasks, patience, most)

    def put(self, record: Container) -> None:
        self.clearing.put(record.id, partial(self._clear, record))

    def _clear(self, record: Container) -> None:
        if record.id in self.stuck:
            raise SystemFault("its control group is not empty")
        self.ids.append(record.id)


async def test_all_wait_for_the_end_of_the_crowd() -> None:
    cleared = Cleared()
    records = [container() for _ in range(40)]
    for record in records:
        cleared.put(record)
    assert cleared.ids == [] and cleared.tasks.count == 1
    cleared.clearing.begin()
    await cleared.tasks.join()
    assert sorted(cleared.ids) == sorted(record.id for record in records)


async def test_the_first_one_does_not_wait_for_ever() -> None:
    cleared = Cleared(patience=0.01)
    cleared.put(container())
    await until_async(lambda: cleared.ids, "that it is cleared")
    await cleared.tasks.join()


async def test_one_that_cannot_be_cleared_keeps_no_other() -> None:
    cleared = Cleared()
    first, second = container(), container()
    cleared.stuck.add(first.id)
    cleared.put(first)
    cleared.put(second)
    await cleared.clearing.finish()
    assert cleared.ids == [second.id]
    await cleared.tasks.cancel_all()


async def test_a_crowd_after_a_crowd_waits_for_its_own_end() -> None:
    cleared = Cleared()
    cleared.put(container())
    cleared.clearing.begin()
    await cleared.tasks.join()
    cleared.put(container())
    assert len(cleared.ids) == 1 and cleared.tasks.count == 1
    cleared.clearing.begin()
    await cleared.tasks.join()
    assert len(cleared.ids) == 2


async def test_no_more_than_so_many_wait() -> None:
    cleared = Cleared(most=2)
    for _ in range(2):
        assert not cleared.clearing.full
        cleared.put(container())
    assert cleared.clearing.full
    await cleared.clearing.finish()
    assert not cleared.clearing.full
    await cleared.tasks.cancel_all()


async def test_a_daemon_that_goes_meanwhile_clears_nothing_twice() -> None:
    cleared, begun, go_on = Cleared(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait()
        cleared.ids.append("slow")

    cleared.clearing.put("slow", slow)
    cleared.clearing.begin()
    await until_async(begun.is_set, "that it is begun")
    going = Tasks().spawn(cleared.tasks.cancel_all(), "the daemon goes", awaited=True)
    # Whoever would not wait for the thread goes on now, and begins again.
    finishing = Tasks().spawn(_after(going, cleared.clearing), "the rest", awaited=True)
    await asyncio.sleep(0.05)
    go_on.set()
    await finishing
    assert cleared.ids == ["slow"]


async def _after(going: asyncio.Task[None], clearing: Clearing) -> None:
    await going
    await clearing.finish()
