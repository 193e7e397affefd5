"""The return of this process's free memory to the host, when work is over for a while.

    rest = Rest()
    rest.worked()       # whenever a piece of work has ended
    await rest.close()

Right behind each piece it would be in the way of the next one, which wants the same memory.
"""

import asyncio
from collections.abc import Callable

from husk.aio.tasks import Tasks
from husk.kernel.memory import give_back

_PAUSE = 30.0


class Rest:
    def __init__(self, pause: float = _PAUSE, give_back: Callable[[], None] = give_back) -> None:
        self._pause = pause
        self._give_back = give_back
        self._worked = False
        self._waiting = False
        self._tasks = Tasks()

    def worked(self) -> None:
        """Something was done: from now on the pause counts anew."""
        self._worked = True
        if not self._waiting:
            self._waiting = True
            self._tasks.spawn(self._wait(), "give memory back")

    async def close(self) -> None:
        await self._tasks.cancel_all()
        self._waiting = False

    async def _wait(self) -> None:
        try:
            # Work may end while memory is given back, too.
            while self._worked:
                while self._worked:
                    self._worked = False
                    await asyncio.sleep(self._pause)
                # It looks through the whole heap, which takes milliseconds.
                await asyncio.to_thread(self._give_back)
        finally:
            self._waiting = False
