"""The streams of a container that has pipes and no monitor: what `Console` is for one that has a monitor.

Somebody always reads: while nobody wants the output it is thrown away, so that the container neither waits nor is
killed for writing. And nobody waits for ever: when the container's first process has ended, what is in the pipes is
all that comes, whoever else holds them.
"""

import asyncio
import contextlib
import os

_CHUNK = 32 * 1024


class PipeConsole:
    """Our ends of a container's pipes; `stdin` is -1 where it has none. One reader and one writer at a time, which says
    `take` before."""

    def __init__(self, stdin: int, stdout: int, stderr: int, closes_stdin: bool) -> None:
        self._stdin = stdin
        self._outputs = {1: stdout, 2: stderr}
        self._closes_stdin = closes_stdin
        self._ended = False
        self._wanted = False
        self._waiting: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        for fd in (stdin, stdout, stderr):
            if fd >= 0:
                os.set_blocking(fd, False)
        self._drain()

    async def accepted(self) -> None:
        """Return at once: whatever is written to a pipe is seen."""

    async def read(self) -> tuple[int, bytes] | None:
        """The next piece of output with its stream (1 stdout, 2 stderr); None when there is no more."""
        while self._outputs:
            if (piece := self._piece()) is not None:
                return piece
            if self._outputs:
                await self._readable()
        return None

    async def write(self, data: bytes) -> None:
        """Send input; waits while the container does not read. Input to a container that has ended is dropped."""
        rest = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while rest and self._stdin >= 0:
                try:
                    rest = rest[os.write(self._stdin, rest) :]
                except BlockingIOError:
                    await self._writable(self._stdin)

    def close_stdin(self) -> None:
        """The client has no more input: the container sees the end of file if it is set up so, else nothing happens."""
        if self._closes_stdin:
            self._close_stdin()

    def close(self) -> None:
        """Nobody wants its output any more."""
        self.close_stdin()
        self._wanted = False
        if self._ended:
            self._close_outputs()
            return
        self._drain()

    def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        for stream, fd in self._outputs.items():
            loop.add_reader(fd, self._throw_away, stream)

    def take(self) -> None:
        """Somebody wants what is written from now on."""
        if not self._wanted:
            self._wanted = True
            for fd in self._outputs.values():
                asyncio.get_running_loop().remove_reader(fd)

    def finish(self) -> None:
        """The container has ended, or was never made."""
        self._ended = True
        self._close_stdin()
        if not self._wanted:
            self._close_outputs()
        _wake(self._waiting)

    def _piece(self) -> tuple[int, bytes] | None:
        for stream, fd in list(self._outputs.items()):
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                if not self._ended:
                    continue
                data = b""
            if data:
                return stream, data
            self._close_output(stream)
        return None

    def _throw_away(self, stream: int) -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(self._outputs[stream], _CHUNK):
                self._close_output(stream)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        for fd in self._outputs.values():
            loop.add_reader(fd, _wake, self._waiting)
        try:
            await self._waiting
        finally:
            if self._wanted:  # else others read from now on
                for fd in self._outputs.values():
                    loop.remove_reader(fd)

    async def _writable(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        self._writing = loop.create_future()
        loop.add_writer(fd, _wake, self._writing)
        try:
            await self._writing
        finally:
            if self._stdin == fd:
                loop.remove_writer(fd)

    def _close_stdin(self) -> None:
        fd, self._stdin = self._stdin, -1
        if fd >= 0:
            asyncio.get_running_loop().remove_writer(fd)
            os.close(fd)
            _wake(self._writing)

    def _close_output(self, stream: int) -> None:
        fd = self._outputs.pop(stream)
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)

    def _close_outputs(self) -> None:
        for stream in list(self._outputs):
            self._close_output(stream)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
