"""A loop that looks when it is woken or when its alarm is due, and outlives what goes wrong in one look."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from husk.swarm.model.clocks import CLOCK, Clock

# When something keeps failing, or when an event was missed.
RETRY_NS = 10**9


async def keep_looking(
    woken: asyncio.Event,
    look: Callable[[], Awaitable[int | None]],
    failed: Callable[[Exception], None],
    clock: Clock = CLOCK,
) -> None:
    """`look` says when, by the `clock`, to look again without being woken; after one that `failed` it is soon."""
    alarm: int | None = None
    while True:
        timeout = None if alarm is None else max(0.0, (alarm - clock.now()) / 1e9)
        with contextlib.suppress(TimeoutError):
            # `wait_for` of Python 3.11 loses a cancellation that comes with the event.
            async with asyncio.timeout(timeout):
                await woken.wait()
        woken.clear()
        try:
            alarm = await look()
        except Exception as error:
            failed(error)
            alarm = clock.now() + RETRY_NS
