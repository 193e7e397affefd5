"""How is a tar read that arrives bit by bit? Entry by entry, while the event loop goes on; nothing is kept.

For the archives of `load`, whose few entries are large. Layers are read by `husk.storage.tar.stream` in a worker.
"""

from collections.abc import AsyncIterator

from husk.storage.tar.stream import (
    BLOCK,
    DIRECTORY,
    REGULAR,
    Entry,
    TarError,
    apply_pax,
    parse_header,
    parse_pax,
    truncated,
)

_MAX_SPECIAL = 1 << 20
_ZEROS = bytes(BLOCK)
_PLAIN = (b"0", b"\0", b"7")


class TarFlow:
    """The archive in `chunks`: `next`, then `pieces` or `read` of that entry; what was not read is skipped."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = memoryview(b"")
        self._left = 0
        self._padding = 0

    async def next(self) -> Entry | None:
        """The next entry; None at the end of the archive."""
        await self._skip(self._left + self._padding)
        self._left = self._padding = 0
        records: dict[bytes, bytes] = {}
        long_name = long_link = b""
        while True:
            block = await self._take(BLOCK)
            if block in (b"", _ZEROS):
                return None
            if len(block) < BLOCK:
                truncated()
            entry = parse_header(block)
            if entry.kind == b"x":
                records = parse_pax(await self._special(entry))
            elif entry.kind == b"g":
                await self._special(entry)
            elif entry.kind == b"L":
                long_name = (await self._special(entry)).split(b"\0", 1)[0]
            elif entry.kind == b"K":
                long_link = (await self._special(entry)).split(b"\0", 1)[0]
            else:
                break
        entry.name = long_name or entry.name
        entry.link = long_link or entry.link
        apply_pax(entry, records)
        if entry.kind in _PLAIN:
            entry.kind = DIRECTORY if entry.name.endswith(b"/") else REGULAR
        if entry.sparse is not None or entry.kind == b"S":
            raise TarError("an image archive with sparse entries is not supported")
        if entry.kind == REGULAR:
            self._left, self._padding = entry.size, -entry.size % BLOCK
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

    async def _special(self, entry: Entry) -> bytes:
        if entry.size > _MAX_SPECIAL:
            raise TarError("archive/tar: header field too long")
        data = await self._take(entry.size)
        if len(data) < entry.size:
            truncated()
        await self._skip(-entry.size % BLOCK)
        return data

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

    async def _skip(self, count: int) -> None:
        while count > 0:
            if not self._buffer and not await self._refill():
                truncated()
            step = min(count, len(self._buffer))
            self._buffer = self._buffer[step:]
            count -= step

    async def _refill(self) -> bool:
        chunk = await anext(self._chunks, b"")
        self._buffer = memoryview(chunk)
        return bool(chunk)
