"""Reading of a tar that arrives bit by bit: entry by entry, while the event loop goes on; nothing is kept.

For the archives of `load`, whose few entries are large. Layers are read by `husk.storage.tar.stream` in a worker.
"""

from collections.abc import AsyncIterator

from husk.storage.tar.entry import TarEntry, TarError, padding, truncated
from husk.storage.tar.parser import Parser


class TarFlow:
    """The archive in `chunks`: `next`, then `pieces` or `read` of that entry; what was not read is skipped."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._parser = Parser()
        self._buffer = memoryview(b"")
        self._left = 0
        self._padding = 0

    async def next(self) -> TarEntry | None:
        """The next entry; None at the end of the archive."""
        await self._skip(self._left)
        await self._skip(self._padding, exact=False)
        self._left = self._padding = 0
        entry = None
        while entry is None and not self._parser.ended:
            entry = self._parser.feed(await self._take(self._parser.wants))
        if entry is None:
            return None
        if entry.sparse is not None:
            raise TarError("an image archive with sparse entries is not supported")
        self._left, self._padding = entry.size, padding(entry.size)
        return entry

    async def read(self, count: int) -> bytes:
        """The next bytes of the current entry, at most `count`; fewer only at its end."""
        count = min(count, self._left)
        data = await self._take(count)
        if len(data) < count:
            truncated()
        self._left -= count
        return data

    async def pieces(self) -> AsyncIterator[memoryview]:
        """The rest of the current entry, in pieces as they arrive."""
        while self._left:
            if not self._buffer and not await self._refill():
                truncated()
            piece = self._buffer[: self._left]
            self._buffer = self._buffer[len(piece) :]
            self._left -= len(piece)
            yield piece

    async def drain(self) -> None:
        """Read what follows the archive's end: a client that cannot send all it has takes that for an error."""
        while await self._refill():
            pass

    async def _take(self, count: int) -> bytes:
        if len(self._buffer) >= count:
            taken, self._buffer = bytes(self._buffer[:count]), self._buffer[count:]
            return taken
        parts = []
        while count > 0 and (self._buffer or await self._refill()):
            part = self._buffer[:count]
            parts.append(bytes(part))
            self._buffer = self._buffer[len(part) :]
            count -= len(part)
        return b"".join(parts)

    async def _skip(self, count: int, exact: bool = True) -> None:
        while count > 0:
            if not self._buffer and not await self._refill():
                if exact:
                    truncated()
                return
            step = min(count, len(self._buffer))
            self._buffer = self._buffer[step:]
            count -= step

    async def _refill(self) -> bool:
        chunk = await anext(self._chunks, b"")
        self._buffer = memoryview(chunk)
        return bool(chunk)
