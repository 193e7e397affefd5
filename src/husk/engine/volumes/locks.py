"""One at a time for each name (of a volume, say), in parallel across names."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable


class Locks:
    """A lock per name, which exists while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._wanted: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        self._wanted[name] += 1
        try:
            async with self._locks[name]:
                yield
        finally:
            self._wanted[name] -= 1
            if not self._wanted[name]:
                del self._wanted[name], self._locks[name]

    @contextlib.asynccontextmanager
    async def hold_all(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Always in the same order, so that no two wait for each other."""
        async with contextlib.AsyncExitStack() as stack:
            for name in sorted(set(names)):
                await stack.enter_async_context(self.hold(name))
            yield
