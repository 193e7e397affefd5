"""Threads by purpose; lanes: work in order, by few threads, without anybody waiting behind what takes long."""

import asyncio
import threading
from functools import partial

import pytest

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.aio.threads import Lane
from husk.watch import Serving, request_id, serving


def pools() -> set[str]:
    return {
        name
        for thread in threading.enumerate()
        if (name := thread.name.partition("_")[0]) in ("trees", "removals", "releases", "outside", "foreign")
    }


def name(suffix: str) -> str:
    return threading.current_thread().name.partition("_")[0] + suffix


async def test_each_purpose_has_threads_of_its_own():
    with threads.held():
        names = [await run(name, "!") for run in (threads.trees, threads.removals, threads.releases, threads.outside)]
    assert names == ["trees!", "removals!", "releases!", "outside!"]


async def test_threads_end_with_the_last_who_holds_them_and_come_again():
    with threads.held():
        with threads.held():
            await threads.trees(name, "")
        assert "trees" in pools()
    assert pools() == set()
    assert await threads.removals(name, "") == "removals"
    with threads.held():
        pass
    assert pools() == set()


async def test_what_is_short_is_done_in_order_by_one_thread() -> None:
    lane = Lane(4, "test", patience=60)
    seen: list[tuple[int, int]] = []

    def piece(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    numbers = range(30)
    assert await asyncio.gather(*(lane.run(partial(piece, number)) for number in numbers)) == list(numbers)
    assert [number for number, _ in seen] == list(numbers)
    assert len({thread for _, thread in seen}) == 1


async def test_nobody_waits_behind_what_takes_long() -> None:
    lane = Lane(2, "test")
    gate = threading.Event()
    stuck = Tasks().spawn(lane.run(gate.wait), "takes long", awaited=True)
    try:
        assert await asyncio.wait_for(lane.run(lambda: 5), 10) == 5
        assert not stuck.done()
    finally:
        gate.set()
    assert await stuck


async def test_what_is_done_is_told_before_what_comes_next_is_done() -> None:
    lane = Lane(1, "test")
    gate = threading.Event()
    short = Tasks().spawn(lane.run(lambda: 5), "is short", awaited=True)
    long = Tasks().spawn(lane.run(gate.wait), "takes long", awaited=True)
    try:
        assert await asyncio.wait_for(short, 10) == 5
    finally:
        gate.set()
    assert await long


async def test_a_lane_goes_on_when_threads_can_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start, refusals = threading.Thread.start, iter(range(3))

    def start_later(thread: threading.Thread) -> None:
        if next(refusals, None) is not None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_later)
    lane = Lane(2, "test", patience=0.001, pause=0.001)
    assert await asyncio.wait_for(asyncio.gather(*(lane.run(partial(int, n)) for n in range(5))), 10) == [*range(5)]
    assert await asyncio.wait_for(lane.run(lambda: 5), 10) == 5
    assert list(refusals) == []
    lane.end()


async def test_a_failure_is_told_to_who_asked_alone() -> None:
    lane = Lane(1, "test")

    def fails() -> None:
        raise FileNotFoundError("gone")

    first, second = await asyncio.gather(lane.run(fails), lane.run(lambda: 1), return_exceptions=True)
    assert isinstance(first, FileNotFoundError) and second == 1


async def test_work_goes_on_when_the_caller_is_cancelled() -> None:
    lane = Lane(1, "test")
    gate, done = threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(10)
        done.set()

    caller = Tasks().spawn(lane.run(work), "is cancelled", awaited=True)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.set()
    assert await lane.run(done.is_set)


async def test_removals_and_releases_take_arguments() -> None:
    with threads.held():
        assert await threads.removals(divmod, 7, 2) == (3, 1)
        assert await threads.releases(int, "11", base=2) == 3


async def test_threads_know_for_which_request_they_work():
    token = serving.set(Serving("mine"))
    try:
        with threads.held():
            runs = (threads.trees, threads.removals, threads.releases, threads.outside)
            assert {await run(request_id) for run in runs} == {"mine"}
    finally:
        serving.reset(token)
