"""Looking for the next request instead of sleeping, and the moments when the loop does so."""

import asyncio
import os

import pytest

from husk.api.http.polling import BusyPolling

POLL_TIME = 0.0001


class Clock:
    """Stands still until it is moved; counts who asks."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return Clock()


async def looks(clock: Clock) -> int:
    """Return how often the next request is looked for in ten turns of the loop."""
    before = clock.asked
    for _ in range(10):
        await asyncio.sleep(0)
    return clock.asked - before


def answer(polling: BusyPolling, clock: Clock, *after: float) -> None:
    for seconds in after:
        clock.now += seconds
        polling.answered()


async def test_a_client_in_a_hurry_is_looked_for_in_every_turn(clock: Clock) -> None:
    polling = BusyPolling(POLL_TIME, clock)
    answer(polling, clock, 0, 0.0001)
    assert await looks(clock) == 10
    answer(polling, clock, 0.00005)
    assert await looks(clock) == 10, "once a turn, however many answers there were"


async def test_one_that_takes_its_time_is_not(clock: Clock) -> None:
    polling = BusyPolling(POLL_TIME, clock)
    answer(polling, clock, 0, 0.0003, 1, 0.0003)
    assert await looks(clock) == 0


async def test_it_ends_when_nothing_comes(clock: Clock) -> None:
    polling = BusyPolling(POLL_TIME, clock)
    answer(polling, clock, 0, 0.0001)
    clock.now += 2 * POLL_TIME
    assert await looks(clock) == 1
    assert await looks(clock) == 0


async def test_what_was_in_vain_is_not_tried_again_at_once(clock: Clock) -> None:
    polling = BusyPolling(POLL_TIME, clock)
    answer(polling, clock, 0, 0.0001)
    clock.now += 2 * POLL_TIME
    await looks(clock)
    answer(polling, clock, 0.00001, 0.0001)
    assert await looks(clock) == 0
    answer(polling, clock, 0.002, 0.0001)
    assert await looks(clock) == 10


async def test_with_one_processor_the_client_needs_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    polling = BusyPolling(POLL_TIME, clock)
    answer(polling, clock, 0, 0.0001)
    assert await looks(clock) == 0


async def test_not_where_it_is_not_wanted(clock: Clock) -> None:
    polling = BusyPolling(0, clock)
    answer(polling, clock, 0, 0.0001)
    assert await looks(clock) == 0
