"""Shared work: started once, heard by all, ended with the last who leaves."""

import asyncio

import pytest

from husk.engine.images.singleflight import Report, SingleFlight
from husk.engine.model.image import Progress


class Work:
    def __init__(self) -> None:
        self.starts = 0
        self.cancelled = 0
        self.go_on = asyncio.Event()

    async def __call__(self, report: Report) -> None:
        self.starts += 1
        report(Progress(status="half"))
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        report(Progress(status="whole"))


async def test_one_start_for_all_and_all_hear() -> None:
    shared, work = SingleFlight(), Work()
    heard: list[list[str]] = [[], []]
    async with asyncio.TaskGroup() as group:
        for own in heard:
            group.create_task(shared.join("key", work, lambda progress, own=own: own.append(progress.status)))  # type: ignore[misc]
            while own != ["half"]:
                await asyncio.sleep(0)
        assert shared.task("key") is not None
        work.go_on.set()
    assert heard == [["half", "whole"], ["half", "whole"]]
    assert work.starts == 1 and shared.task("key") is None


async def test_only_the_last_who_leaves_ends_it() -> None:
    shared, work = SingleFlight(), Work()
    one, two = (asyncio.get_running_loop().create_task(shared.join("key", work, lambda p: None)) for _ in range(2))
    while not work.starts:
        await asyncio.sleep(0)
    one.cancel()
    await asyncio.wait({one})
    assert (work.cancelled, two.done()) == (0, False)
    two.cancel()
    await asyncio.wait({two})
    assert work.cancelled == 1 and shared.task("key") is None


async def test_a_failure_reaches_everybody_and_the_next_one_begins_anew() -> None:
    shared = SingleFlight()

    async def fail(report: Report) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    outcomes = await asyncio.gather(
        *(shared.join("key", fail, lambda p: None) for _ in range(2)), return_exceptions=True
    )
    assert [str(outcome) for outcome in outcomes] == ["broken", "broken"]
    with pytest.raises(ValueError, match="broken"):
        await shared.join("key", fail, lambda p: None)
