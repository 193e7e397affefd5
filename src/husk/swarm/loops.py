"""Loops that go on for as long as their owner, and outlive what goes wrong in one turn."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable

from husk.errors import HuskError
from husk.swarm.model.clocks import CLOCK, Clock

log = logging.getLogger(__name__)

# When something keeps failing, or when an event was missed.
RETRY_NS = 10**9

# In seconds, between two tries to reach a manager: the first, the longest.
PAUSES = FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
# Of such a pause.
SPREAD = 0.5, 1.5


async def keep_looking(
    woken: asyncio.Event,
    look: Callable[[], Awaitable[int | None]],
    failed: Callable[[Exception], None],
    clock: Clock = CLOCK,
    retry_ns: int = RETRY_NS,
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
            alarm = clock.now() + retry_ns


async def again_and_again(
    work: Callable[[], Awaitable[None]],
    what: str,
    pauses: tuple[float, float] = PAUSES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    uniform: Callable[[float, float], float] = random.uniform,
) -> None:
    """Until this is cancelled."""
    first, longest = pauses
    pause = first
    while True:
        begun = asyncio.get_running_loop().time()
        try:
            await work()
        except HuskError as error:
            log.info("%s: no manager is heard: %s", what, error.message)
        except Exception:  # a fault of ours, too: there is nobody else who would try again
            log.exception("%s: this node could not go on, and tries again", what)
        if asyncio.get_running_loop().time() - begun > longest:
            pause = first
        # A manager that goes leaves hundreds of nodes at once: they do not come to the next one all at the same time.
        await sleep(pause * uniform(*SPREAD))
        pause = min(2 * pause, longest)
