"""How tests wait: on a condition with a deadline, never for a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from husk.tasks import Tasks

T = TypeVar("T")

# Between two looks, in seconds: soon at first, then a part of what was waited for already. A look is often a request,
# and whoever asks all the time keeps the daemon from what is waited for.
_SOONEST, _LATEST, _PART = 0.005, 0.05, 0.1


def until(condition: Callable[[], T], what: str, deadline: float = 60.0) -> T:
    """Return the first true value of `condition`; fail with `what` was waited for when there is none in time."""
    begun = time.monotonic()
    while True:
        if value := condition():
            return value
        waited = time.monotonic() - begun
        assert waited < deadline, f"waited {deadline:g} seconds in vain: {what}"
        time.sleep(min(max(_SOONEST, waited * _PART), _LATEST))


wait_until = until


async def until_async(condition: Callable[[], T], what: str, deadline: float = 60.0) -> T:
    """The same in an event loop, which goes on meanwhile."""
    end = time.monotonic() + deadline
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"waited {deadline:g} seconds in vain: {what}"
        await asyncio.sleep(0.001)


_soon = Tasks()


def soon(work: Awaitable[T]) -> "asyncio.Task[T]":
    """Begin work that the test waits for later."""

    async def do() -> T:
        return await work

    return _soon.spawn(do(), "a test's work", awaited=True)
