"""The delay of the loop is what the timer finds."""

import asyncio
import time

from husk.observe.metrics.loop_delay import LoopDelay


async def test_a_loop_that_is_held_is_late() -> None:
    told: list[float] = []
    heard = asyncio.Event()

    def tell(delay: float) -> None:
        told.append(delay)
        heard.set()

    delay = LoopDelay(tell, period=0.01)
    held = 0.1
    end = time.monotonic() + held
    while time.monotonic() < end:  # nobody else gets a turn
        pass
    async with asyncio.timeout(10):
        await heard.wait()
    assert told[0] > 0.05
    delay.close()
    count = len(told)
    await asyncio.sleep(0.03)
    assert len(told) == count
