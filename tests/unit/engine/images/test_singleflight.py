"""Shared work: started once, heard by all, ended with the last who leaves."""

import asyncio
from collections.abc import Callable

import pytest

from husk.engine.images.singleflight import Listeners, SingleFlight
from husk.engine.model.image import Progress


class Work:
    def __init__(self) -> None:
        self.starts = 0
        self.cancelled = 0
        self.go_on = asyncio.Event()

    async def __call__(self, report: Listeners) -> None:
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

    async def fail(report: Listeners) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    outcomes = await asyncio.gather(
        *(shared.join("key", fail, lambda p: None) for _ in range(2)), return_exceptions=True
    )
    assert [str(outcome) for outcome in outcomes] == ["broken", "broken"]
    with pytest.raises(ValueError, match="broken"):
        await shared.join("key", fail, lambda p: None)


async def test_where_the_work_of_one_fails_that_of_another_takes_its_place() -> None:
    shared, good, gone = SingleFlight(), Work(), Work()
    begun = asyncio.Event()

    async def fail(report: Listeners) -> None:
        await begun.wait()
        raise ValueError("a lying registry")

    failing = asyncio.get_running_loop().create_task(shared.join("key", fail, lambda p: None))
    left, other = join(shared, "key", gone), join(shared, "key", good)
    await asyncio.sleep(0)
    left.cancel()
    begun.set()
    await until(lambda: bool(good.starts))
    good.go_on.set()
    await asyncio.gather(failing, other)
    assert (good.starts, gone.starts) == (1, 0)


async def test_where_all_fail_each_hears_its_own_failure() -> None:
    shared = SingleFlight()

    def failing(why: str) -> asyncio.Task[None]:
        async def fail(report: Listeners) -> None:
            await asyncio.sleep(0)
            raise ValueError(why)

        return asyncio.get_running_loop().create_task(shared.join("key", fail, lambda p: None))

    outcomes = await asyncio.gather(failing("one"), failing("two"), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["one", "two"] and shared.task("key") is None


class Dripping(Work):
    """Work to which something comes again and again: `size` bytes each time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.received = size, 0

    async def __call__(self, report: Listeners) -> None:
        self.starts += 1
        while not self.go_on.is_set():
            with report.expecting():
                await asyncio.sleep(0.001)
            self.received += self.size
            report(Progress(status="Downloading", current=self.received, total=1 << 40))


async def test_a_few_bytes_now_and_then_are_as_nothing() -> None:
    shared, dripping, flowing = SingleFlight(patience=0.05), Dripping(1), Dripping(1 << 20)
    alone = join(shared, "flowing", flowing), join(shared, "flowing", Work())
    own = join(shared, "key", dripping)
    late = Work()
    other = join(shared, "key", late)
    await until(lambda: bool(late.starts))
    assert dripping.received and flowing.starts == 1 and not flowing.go_on.is_set()
    for work in (flowing, late):
        work.go_on.set()
    await asyncio.gather(*alone, own, other)


class Stalled(Work):
    """Work that waits for something from outside."""

    async def __call__(self, report: Listeners) -> None:
        with report.expecting():
            await super().__call__(report)


def join(shared: SingleFlight, key: str, work: Work) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(shared.join(key, work, lambda p: None))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_work_that_stalls_is_done_by_the_next_one() -> None:
    shared, first, second, third = SingleFlight(patience=0.02), Stalled(), Stalled(), Work()
    waiting = [join(shared, "key", first)]
    await until(lambda: bool(first.starts))
    task = shared.task("key")
    waiting += [join(shared, "key", one) for one in (second, third)]
    await until(lambda: bool(third.starts))
    assert (first.cancelled, second.cancelled, third.cancelled) == (1, 1, 0)
    assert shared.task("key") is task, "it is one piece of work for whoever waits for its end"
    third.go_on.set()
    await asyncio.gather(*waiting)
    assert (first.starts, second.starts, third.starts) == (1, 1, 1)


async def test_work_that_has_something_to_do_or_that_nobody_else_wants_is_left_alone() -> None:
    shared, busy, alone, twin = SingleFlight(patience=0.001), Work(), Stalled(), Stalled()
    own = join(shared, "alone", alone)
    both = [join(shared, "busy", one) for one in (busy, Work())]
    others = [join(shared, "twin", twin) for _ in range(2)]
    # The clock: the same pause makes another one stall.
    late = Work()
    stalled = [join(shared, "key", one) for one in (Stalled(), late)]
    await until(lambda: bool(late.starts))
    assert (busy.cancelled, alone.cancelled, twin.cancelled) == (0, 0, 0)
    for work in (busy, alone, twin, late):
        work.go_on.set()
    await asyncio.gather(own, *both, *others, *stalled)


async def test_who_leaves_ends_the_work_that_took_its_place() -> None:
    shared, first, second = SingleFlight(patience=0.001), Stalled(), Stalled()
    both = [join(shared, "key", one) for one in (first, second)]
    await until(lambda: bool(second.starts))
    for one in both:
        one.cancel()
        await asyncio.wait({one})
    assert (first.cancelled, second.cancelled) == (1, 1) and shared.task("key") is None
