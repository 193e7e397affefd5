"""Looking again and again, soon at first: most services are ready within milliseconds."""

import asyncio
from collections.abc import AsyncIterator

_FIRST, _LONGEST = 0.002, 0.1


async def looks() -> AsyncIterator[None]:
    """Yield for each look; without end."""
    pause = _FIRST
    while True:
        yield
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST)
