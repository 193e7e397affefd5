"""Waiting in tests: on a condition with a deadline, never for a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from husk.aio.tasks import Tasks

T = TypeVar("T")

# Between two looks, in seconds: soon at first, then a part of what was waited for already. A look is often a request or
# a command, and whoever asks all the time keeps the daemon from what is waited for.
_SOONEST, _LATEST, _PART = 0.005, 0.2, 0.1
# In an event loop a look costs little.
_SOONEST_ASYNC = 0.001


def until(condition: Callable[[], T], what: str, deadline: float = 100.0) -> T:
    """Return the first true value of `condition`; fail with `what` was waited for when there is none in time."""
    begun = time.monotonic()
    while True:
        if value := condition():
            return value
        waited = time.monotonic() - begun
        assert waited < deadline, f"waited {deadline:g} seconds in vain: {what}"
        time.sleep(_pause(waited, _SOONEST))


wait_until = until


def _pause(waited: float, soonest: float) -> float:
    return min(max(soonest, waited * _PART), _LATEST)


async def until_async(condition: Callable[[], T], what: str, deadline: float = 100.0) -> T:
    """The same in an event loop, which goes on meanwhile."""
    begun = time.monotonic()
    while True:
        if value := condition():
            return value
        waited = time.monotonic() - begun
        assert waited < deadline, f"waited {deadline:g} seconds in vain: {what}"
        await asyncio.sleep(_pause(waited, _SOONEST_ASYNC))


_soon = Tasks()


def soon(work: Awaitable[T]) -> "asyncio.Task[T]":
    """Begin work that the test waits for later."""

    async def do() -> T:
        return await work

    return _soon.spawn(do(), "a test's work", awaited=True)
