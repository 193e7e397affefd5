import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.jobs.containers import JobContainers
from husk.errors import Conflict, InvalidParameter, NotFound, NotImplementedYet

BODY: Any = "a body"


class Steps:
    def __init__(self) -> None:
        self.open: list[str] = []
        self.ready = asyncio.Event()
        self.ready.set()

    @asynccontextmanager
    async def held(self, body: Any, inputs: Any, session: Any, platform: Any, granted: Any) -> Any:
        self.granted = granted
        await self.ready.wait()
        self.open.append(inputs[0])
        try:
            yield f"held {inputs[0]}"
        finally:
            self.open.remove(inputs[0])


@pytest.fixture
def steps():
    return Steps()


async def test_they_are_there_until_they_are_released_or_the_build_ends(steps):
    containers = JobContainers(steps.held, None)
    await containers.add("a", BODY, ["one"], None)
    await containers.add("b", BODY, ["two"], None)
    held: Any = containers.get("a")
    assert held == "held one"
    await containers.release("a")
    assert steps.open == ["two"]
    for work in (containers.release("a"), asyncio.to_thread(containers.get, "a")):
        with pytest.raises(NotFound, match="previously released"):
            await work
    await containers.close()
    assert steps.open == []
    with pytest.raises(Conflict, match="has ended"):
        await containers.add("c", BODY, ["three"], None)


async def test_one_that_is_still_made_when_the_build_ends_goes_too(steps):
    containers = JobContainers(steps.held, None)
    tasks = Tasks()
    steps.ready.clear()
    making = tasks.spawn(containers.add("a", BODY, ["one"], None), "make", awaited=True)
    await asyncio.sleep(0)
    closing = tasks.spawn(containers.close(), "close", awaited=True)
    await asyncio.sleep(0)
    steps.ready.set()
    await asyncio.gather(making, closing)
    assert steps.open == []


async def test_what_is_refused(steps):
    with pytest.raises(NotImplementedYet):
        await JobContainers(None, None).add("a", BODY, [], None)
    containers = JobContainers(steps.held, None, most=1)
    with pytest.raises(InvalidParameter, match="needs an id"):
        await containers.add("", BODY, ["x"], None)
    await containers.add("a", BODY, ["x"], None)
    with pytest.raises(Conflict, match="already exists"):
        await containers.add("a", BODY, ["x"], None)
    with pytest.raises(InvalidParameter, match="1 containers at most"):
        await containers.add("b", BODY, ["x"], None)
    await containers.close()


async def test_what_the_user_allows_goes_with_them(steps):
    containers = JobContainers(steps.held, None, ["network.host"])
    await containers.add("a", BODY, ["x"], None)
    assert steps.granted == ["network.host"]
    await containers.close()
