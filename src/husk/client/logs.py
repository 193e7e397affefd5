"""Logs: the output that containers, services and tasks have written."""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from husk.client import output
from husk.client.calls import Calls
from husk.client.moments import Moment, moment
from husk.client.output import Piece


class Output:
    """Output that was written: await all of it, iterate over pieces of both streams, or over `lines()`.

    everything = await box.logs()
    async for line in box.logs(follow=True).lines(): ...
    """

    def __init__(self, open_it: Callable[[], AbstractAsyncContextManager[AsyncIterator[Piece]]]) -> None:
        self._open = open_it

    def __await__(self) -> Generator[Any, None, bytes]:
        """Read all of the output, both streams in one."""
        return self._whole().__await__()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield the output, piece by piece."""
        async with self._open() as pieces:
            async for piece in pieces:
                yield piece

    def lines(self) -> AsyncIterator[str]:
        """Yield the output line by line, without the ends of lines.

        :returns: the lines of both streams, in the order of their ends.
        """
        return output.lines(self)

    async def _whole(self) -> bytes:
        return b"".join([data async for _, data in self])


def logs(
    calls: Calls,
    path: str,
    *,
    stdout: bool,
    stderr: bool,
    follow: bool,
    tail: int | str,
    since: Moment,
    until: Moment = None,
    timestamps: bool = False,
    details: bool = False,
) -> Output:
    """The log that the API has at a path."""
    query = {
        "stdout": stdout,
        "stderr": stderr,
        "follow": follow,
        "tail": tail,
        "since": moment(since),
        "until": moment(until),
        "timestamps": timestamps,
        "details": details or None,
    }

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncIterator[Piece]]:
        async with calls.answer("GET", path, query) as response:
            multiplexed = response.headers.get("content-type") == output.MULTIPLEXED
            yield output.pieces(response.pieces(), multiplexed)

    return Output(opened)
