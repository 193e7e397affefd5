"""The input and output of a process, as they come: what `attach` and `exec` give."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from husk.client import output
from husk.client.http import Reader, Writer
from husk.client.output import Piece

_PIECE = 1 << 16


class Console:
    """Both directions of a process. Iterate over what it writes; `write` to what it reads; leave it to let go of it.

    async with box.attach(stdin=True) as console:
        await console.write(b"hello\\n")
        await console.write_eof()
        async for stream, data in console:
            print(stream, data)
    """

    def __init__(
        self,
        early: bytes,
        reader: Reader,
        writer: Writer,
        *,
        multiplexed: bool,
        resize: Callable[[int, int], Awaitable[None]],
    ) -> None:
        self._early = early
        self._reader = reader
        self._writer = writer
        self._resize = resize
        self.multiplexed = multiplexed  #: True if standard output and standard error come apart: without a terminal

    async def __aenter__(self) -> Self:
        """Give the console itself; the end of the block lets go of the process."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield what the process writes, piece by piece, until it ends."""
        return output.pieces(self._data(), self.multiplexed)

    def lines(self) -> AsyncIterator[str]:
        """Yield the output line by line, without the ends of lines.

        :returns: the lines of both streams, in the order of their ends.
        """
        return output.lines(self)

    async def write(self, data: bytes) -> None:
        """Give the process something to read.

        :param data: the bytes.
        :raises ConnectionError: the process has ended.
        """
        self._writer.write(data)
        await self._writer.drain()

    async def write_eof(self) -> None:
        """Tell the process that nothing more comes. Its output can still be read."""
        if self._writer.can_write_eof():
            with suppress(OSError):
                self._writer.write_eof()

    async def resize(self, height: int, width: int) -> None:
        """Set the size of the terminal.

        :param height: lines.
        :param width: characters of a line.
        """
        await self._resize(height, width)

    def close(self) -> None:
        """Let go of the process, which runs on."""
        self._writer.close()

    async def _data(self) -> AsyncIterator[bytes]:
        if self._early:
            yield self._early
            self._early = b""
        with suppress(ConnectionResetError):
            while data := await self._reader.read(_PIECE):
                yield data
