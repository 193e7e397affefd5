"""How tests wait: on a condition with a deadline, never for a time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, deadline: float = 20.0) -> T:
    """Return the first true value of `condition`; fail with `what` was waited for when there is none in time."""
    end = time.monotonic() + deadline
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"waited {deadline:g} seconds in vain: {what}"
        time.sleep(0.01)


wait_until = until


async def until_async(condition: Callable[[], T], what: str, deadline: float = 20.0) -> T:
    """The same in an event loop, which goes on meanwhile."""
    end = time.monotonic() + deadline
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"waited {deadline:g} seconds in vain: {what}"
        await asyncio.sleep(0.001)
