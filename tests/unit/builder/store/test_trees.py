"""Works on the files of builds: so many at a time, whoever waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.builder.store.file_actions import Selection
from husk.builder.store.trees import Trees
from husk.storage.workers.answers import Digests

AT_ONCE = 4


class Crew:
    """Workers that do what they are asked for when they may, and how many there are at a time."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.full = asyncio.Event()
        self.now = self.most = self.all = 0

    async def start(self, nursery: object, job: object) -> "Crew":
        self.now += 1
        self.all += 1
        self.most = max(self.most, self.now)
        if self.now == AT_ONCE:
            self.full.set()
        return self

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)

    async def outcome(self) -> Digests:
        await self.may_end.wait()
        return Digests(["found"])

    def stop(self) -> None:
        self.now -= 1


@pytest.fixture
async def crew() -> Crew:
    return Crew()


def trees(crew: Any) -> Trees:
    @asynccontextmanager
    async def held(stack: str) -> AsyncIterator[None]:
        yield

    directories = SimpleNamespace(view=Path("/view"), empty=Path("/empty"))
    diffs = SimpleNamespace(held=held, directories=directories, lower=lambda stack: [stack])
    return Trees(cast(Any, diffs), cast(Any, None), at_once=AT_ONCE, start=crew.start)


async def test_a_thousand_operations_have_a_few_workers_at_a_time(crew: Crew) -> None:
    forest = trees(crew)
    async with asyncio.TaskGroup() as group, asyncio.timeout(20):
        asked = [group.create_task(forest.digest(f"stack{number}", [Selection(path="/")])) for number in range(1000)]
        await crew.full.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert crew.now == crew.all == AT_ONCE
        # Those at work and those that wait may go at any time: the others have their turn.
        for task in (*asked[:2], *asked[500:600]):
            task.cancel()
        crew.may_end.set()
        for task in asked:
            with suppress(asyncio.CancelledError):
                await task
    assert (crew.most, crew.now, crew.all) == (AT_ONCE, 0, 900)
