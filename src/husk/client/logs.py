"""Logs: the output that containers, services and tasks have written."""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

from husk.client import levels, output
from husk.client.calls import Calls
from husk.client.moments import Moment, moment
from husk.client.output import Piece

_Open = Callable[[bool], AbstractAsyncContextManager[AsyncIterator[Piece]]]


class LogEntry(NamedTuple):
    """A line of a log: what it says, when it came, and how serious it says it is.

    async for entry in box.logs().entries(level="warning"):
        print(entry.time, entry.level, entry.text)
    """

    time: datetime | None  #: The moment at which it came; None where the log has none
    stream: str  #: `stdout` or `stderr`
    level: str  #: `trace`, `debug`, `info`, `warning`, `error`, `fatal`, or empty where the line says none
    text: str  #: The line, without its end
    container: str = ""  #: The name of the container, where several are read at once


class Output:
    """Output that was written: await all of it, iterate over pieces of both streams, or over `lines()`.

    everything = await box.logs()
    async for line in box.logs(follow=True).lines():
        print(line)
        break
    """

    def __init__(self, open_it: _Open) -> None:
        """`open_it` opens it: with the times of lines where it is given True."""
        self._open = open_it

    def __await__(self) -> Generator[Any, None, bytes]:
        """Read all of the output, both streams in one."""
        return self._whole().__await__()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """Yield the output, piece by piece."""
        async with self._open(False) as pieces:
            async for piece in pieces:
                yield piece

    def lines(self) -> AsyncIterator[str]:
        """Yield the output line by line, without the ends of lines.

        :returns: the lines of both streams, in the order of their ends.
        """
        return output.lines(self)

    async def entries(self, *, level: str = "") -> AsyncIterator[LogEntry]:
        """Yield the output line by line, each with its time, its stream and its level.

        :param level: the least level: `trace`, `debug`, `info`, `warning`, `error` or `fatal`; lines that say none
            are left out.
        :returns: the lines, in the order in which they ended.
        :raises InvalidParameter: there is no such level.
        """
        levels.require(level)
        async with self._open(True) as pieces:
            async for stream, line in output.lines_of(pieces):
                time, text = _timed(line)
                found = levels.level_of(text)
                if levels.at_least(found, level):
                    yield LogEntry(time, stream, found, text)

    async def _whole(self) -> bytes:
        return b"".join([data async for _, data in self])


def _timed(line: str) -> tuple[datetime | None, str]:
    """The time at the beginning of a line, and the rest; None where it has none."""
    time, _, text = line.partition(" ")
    try:
        return datetime.fromisoformat(time), text
    except ValueError:
        return None, line


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
    async def opened(with_times: bool) -> AsyncIterator[AsyncIterator[Piece]]:
        asked = {**query, "timestamps": True} if with_times else query
        async with calls.answer("GET", path, asked) as response:
            multiplexed = response.headers.get("content-type") == output.MULTIPLEXED
            yield output.pieces(response.pieces(), multiplexed)

    return Output(opened)
