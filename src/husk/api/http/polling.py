"""Looks for the next request instead of sleeping, while a client asks as fast as it is answered.

Such a client lets the loop fall asleep between two requests, and to be woken costs more than the request: waking
another processor takes 20 µs and more in a virtual machine. So the loop looks whether something has come until it has,
which takes less time and no more work. It does so for a moment only, and where answers have followed each other as
fast. After it was in vain, because all processors are busy or the client has what it wanted, it is not tried again for
a while: little is lost.

Each look is for input of all connections; nobody is kept waiting.
"""

import asyncio
import os
import time
from collections.abc import Callable

# Answers that follow each other within so many seconds are those of a client in a hurry.
_HURRY = 0.0002
# How long not to look when that was in vain.
_REST = 0.002


class BusyPolling:
    """One for all connections of a loop."""

    def __init__(self, poll_time: float, clock: Callable[[], float] = time.monotonic) -> None:
        # With one processor the client could not ask while we look.
        self._poll_time = poll_time if len(os.sched_getaffinity(0)) > 1 else 0
        self._clock = clock
        self._answered = float("-inf")
        self._looks = False
        self._looks_until = 0.0
        self._rests_until = 0.0

    def answered(self) -> None:
        """A client has its answer, and may ask again."""
        if not self._poll_time:
            return
        now = self._clock()
        if now - self._answered < _HURRY and now >= self._rests_until:
            self._looks_until = now + self._poll_time
            if not self._looks:
                self._looks = True
                asyncio.get_running_loop().call_soon(self._look)
        self._answered = now

    def _look(self) -> None:
        """A loop that has something to do looks for input and does not sleep."""
        now = self._clock()
        if now < self._looks_until:
            asyncio.get_running_loop().call_soon(self._look)
        else:
            self._looks = False
            self._rests_until = now + _REST
