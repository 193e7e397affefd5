"""Addresses and ports on their way back: the end of a container is known before it has given back what it had."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from husk.errors import HuskError

T = TypeVar("T")
_PATIENCE = 5.0


class Departures:
    """The containers that give back what they had."""

    def __init__(self) -> None:
        self._leaving: set[asyncio.Future[None]] = set()

    @contextmanager
    def departing(self) -> Iterator[None]:
        """While the block lasts, something is on its way back."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving.add(gone)
        try:
            yield
        finally:
            self._leaving.discard(gone)
            gone.set_result(None)

    async def retry(self, refusal: type[HuskError], attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again, once, what is refused because another one has it, if there is something on its way back."""
        try:
            return await attempt()
        except refusal:
            if not self._leaving:
                raise
            await asyncio.wait(self._leaving, timeout=_PATIENCE)
            return await attempt()
