"""The limit of transfers at one time: as many as the daemon's settings say, for all clients together."""

import asyncio
from collections import deque


class Limiter:
    """`async with` takes one of them; their number may change meanwhile."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def locked(self) -> bool:
        """Return True if the next transfer has to wait."""
        return self._busy >= self._limit

    def resize(self, limit: int) -> None:
        """Change the limit; whoever has a slot keeps it."""
        self._limit = limit
        self._wake()

    async def __aenter__(self) -> None:
        while self._busy >= self._limit:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:
                    self._wake()  # it was this one's turn, and is the next one's now
                raise
        self._busy += 1

    async def __aexit__(self, *_: object) -> None:
        self._busy -= 1
        self._wake()

    def _wake(self) -> None:
        for _ in range(min(len(self._waiting), self._limit - self._busy)):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
