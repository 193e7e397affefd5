"""Limits for all who read logs: how much they hold together, and how many of them read at one time.

A client that does not read on keeps its reader with whatever was read for it. One reader takes large pieces, which is
fast; the more there are, the smaller the pieces, so that hundreds that stand still cost little each. And when hundreds
begin at once, a few are served at a time: others have their turn of the event loop between them.
"""

import asyncio
import contextlib
from collections.abc import Iterator

LARGEST = 1 << 18
SMALLEST = 1 << 14
TOGETHER = 1 << 21
AT_ONCE = 4


class Readers:
    def __init__(self) -> None:
        self._present = 0
        # Who reads a piece and takes it apart.
        self.turn = asyncio.Semaphore(AT_ONCE)

    @contextlib.contextmanager
    def one_more(self) -> Iterator[None]:
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1

    @property
    def piece(self) -> int:
        """The number of bytes that a reader takes next."""
        return max(SMALLEST, min(LARGEST, TOGETHER // max(1, self._present)))
