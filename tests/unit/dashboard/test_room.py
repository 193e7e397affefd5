"""Disk use is counted once for many pages, and no page waits for it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.dashboard.live import Live
from husk.dashboard.room import COUNTED, Room
from husk.errors import HuskError
from tests.support.fake_engine import FakeEngine, failed


class Slow:
    """An engine that answers `df` when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.fails: HuskError | None = None

    async def df(self) -> dict[str, Any]:
        self.asked += 1
        await self.may_answer.wait()
        if self.fails is not None:
            raise self.fails
        return {"LayersSize": self.asked}


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    found = Tasks()
    yield found
    await found.cancel_all()


async def test_a_page_does_not_wait_and_is_told_later(client: Client, tasks: Tasks) -> None:
    engine, live = Slow(), Live(client, tasks)
    room = Room(engine, tasks, live)  # type: ignore[arg-type]
    with live.listening() as queue:
        assert await room.look(0) == (None, True)
        assert await room.look(0) == (None, True)
        engine.may_answer.set()
        async with asyncio.timeout(5):
            while (await queue.get()) != COUNTED:
                pass
        assert await room.look() == ({"LayersSize": 1}, False)
    assert engine.asked == 1


async def test_what_is_known_is_shown_while_it_is_counted_again(client: Client, tasks: Tasks) -> None:
    engine, live = Slow(), Live(client, tasks)
    room = Room(engine, tasks, live)  # type: ignore[arg-type]
    engine.may_answer.set()
    assert await room.look(5) == ({"LayersSize": 1}, False)
    engine.may_answer.clear()
    live.changes += 1
    assert await room.look(0) == ({"LayersSize": 1}, True)
    engine.may_answer.set()
    assert await room.look(5) == ({"LayersSize": 2}, False)


async def test_a_failure_is_told_and_tried_again(engine: FakeEngine, client: Client, tasks: Tasks) -> None:
    engine.answers("GET", "/system/df", failed(500, "the disk is away"), {"LayersSize": 3})
    room = Room(client, tasks, Live(client, tasks))
    with pytest.raises(HuskError, match="the disk is away"):
        await room.look(5)
    assert (await room.look(5))[0] == {"LayersSize": 3}


async def test_a_failure_after_a_while_is_told_by_the_next_look(client: Client, tasks: Tasks) -> None:
    engine, live = Slow(), Live(client, tasks)
    room = Room(engine, tasks, live)  # type: ignore[arg-type]
    engine.fails = HuskError("the disk is away")
    with live.listening() as queue:
        assert await room.look(0) == (None, True)
        engine.may_answer.set()
        async with asyncio.timeout(5):
            while (await queue.get()) != COUNTED:
                pass
        with pytest.raises(HuskError, match="the disk is away"):
            await room.look(5)
    assert engine.asked == 1
    engine.fails = None
    assert await room.look(5) == ({"LayersSize": 2}, False)


async def test_where_much_happens_it_is_not_counted_all_the_time(client: Client, tasks: Tasks) -> None:
    engine, live = Slow(), Live(client, tasks)
    times = iter([1000.0, 1000.0, 1060.0])  # a minute is how long it took
    room = Room(engine, tasks, live, lambda: next(times, 1060.0))  # type: ignore[arg-type]
    engine.may_answer.set()
    await room.look(5)
    live.changes += 1
    assert await room.look(0.001) == ({"LayersSize": 1}, True)
    assert engine.asked == 1, "it rests for as long"
