"""The streams of a process that somebody talks with while it runs: pipes, or a terminal.

    with Pipes() as streams:                   # or Terminal()
        child = spawn(..., stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr)
        streams.begin()                        # the child has its ends now
        await streams.output.read()            # what it writes, empty at its end
        await streams.input.write(b"...")      # waits while the child does not read

What nobody reads stays in the pipe, and who writes too much waits.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import tempfile
import termios
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Self

_CHUNK = 64 * 1024
# From the runtime's start to the terminal that it has made.
_PATIENCE = 60.0


class StreamEnd:
    """One end of a stream, ours to close."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd

    @property
    def closed(self) -> bool:
        return self._fd < 0

    async def read(self) -> bytes:
        """Some bytes, none at the end."""
        while self._fd >= 0:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError as error:
                if error.errno != errno.EIO:  # a terminal without anyone on the other side
                    raise
                break
        return b""

    async def write(self, data: bytes) -> None:
        """BrokenPipeError when nobody will ever read it."""
        rest = memoryview(data)
        while rest:
            if self._fd < 0:
                raise BrokenPipeError(errno.EPIPE, "the stream is closed")
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_writer, loop.remove_writer)

    def resize(self, rows: int, columns: int) -> None:
        """The size of a terminal."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Safe to call twice. Nobody may be at work with it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            os.close(fd)

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        ready = asyncio.Event()
        fd = self._fd
        add(fd, ready.set)
        try:
            await ready.wait()
        finally:
            if self._fd == fd:
                remove(fd)


class Pipes:
    """Three pipes: `stdin`, `stdout` and `stderr` are the child's ends."""

    console_socket = ""

    def __init__(self) -> None:
        self._theirs: list[int] = []
        self.stdin, ours = self._pipe()
        self.input = StreamEnd(ours)
        output, self.stdout = self._pipe()
        self.output = StreamEnd(output)
        errors, self.stderr = self._pipe()
        self.errors = StreamEnd(errors)
        self._theirs = [self.stdin, self.stdout, self.stderr]

    def _pipe(self) -> tuple[int, int]:
        return os.pipe2(os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.begin()
        for one in (self.input, self.output, self.errors):
            one.close()

    def begin(self) -> None:
        theirs, self._theirs = self._theirs, []
        for fd in theirs:
            os.close(fd)

    async def opened(self) -> None:
        """They are open from the beginning."""

    def resize(self, rows: int, columns: int) -> None:
        """Pipes have no size."""


class Terminal:
    """A terminal that the runtime makes and sends us, by a socket of its own.

    runc sends it only if it does not stay to wait for the process. Such a runtime gets a terminal of ours as its
    streams (`relay`), and copies between that and the one that it makes.
    """

    def __init__(self) -> None:
        self.stdin = self.stdout = self.stderr = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._directory = tempfile.TemporaryDirectory(prefix="hk-")
        # Short enough for a socket's address wherever the daemon's own directories are.
        self.console_socket = str(Path(self._directory.name, "c"))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.console_socket)
        self._listener.listen(1)
        self._listener.setblocking(False)
        self._size: tuple[int, int] | None = None
        self._terminal: StreamEnd | None = None
        self._relay = 0
        self._news = asyncio.Event()
        self.errors = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_theirs()
        self._listener.close()
        self._directory.cleanup()
        if self._terminal is not None:
            self._terminal.close()

    def begin(self) -> None:
        self._close_theirs()

    def relay(self) -> None:
        """Call it before the runtime is started with our streams, and without the socket."""

        self._close_theirs()
        ours, theirs = os.openpty()
        # As the runtime sets it when it begins: what is typed before is not echoed.
        tty.setraw(theirs)
        self.stdin = self.stdout = self.stderr = theirs
        self._terminal = StreamEnd(ours)
        if self._size is not None:
            self._terminal.resize(*self._size)
        self._news.set()

    def relayed_by(self, runtime: int) -> None:
        """The pid of the runtime, which is told of other sizes; 0 when it ends."""
        self._relay = runtime

    @property
    def input(self) -> StreamEnd:
        assert self._terminal is not None
        return self._terminal

    @property
    def output(self) -> StreamEnd:
        return self.input

    async def opened(self) -> None:
        """The runtime has sent it. TimeoutError if it does not."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_PATIENCE):
            loop.add_reader(self._listener.fileno(), self._news.set)
            try:
                await self._news.wait()
            finally:
                loop.remove_reader(self._listener.fileno())
            if self._terminal is not None:
                return
            connection, _ = await loop.sock_accept(self._listener)
            with connection:
                readable = asyncio.Event()
                loop.add_reader(connection.fileno(), readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(connection.fileno())
                _, fds, _, _ = socket.recv_fds(connection, 4096, 1)
        if not fds:
            raise ConnectionError("the runtime sent no terminal")
        self._terminal = StreamEnd(fds[0])
        if self._size is not None:
            self._terminal.resize(*self._size)

    def resize(self, rows: int, columns: int) -> None:
        self._size = rows, columns
        if self._terminal is not None:
            self._terminal.resize(rows, columns)
        if self._relay:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._relay, signal.SIGWINCH)

    def _close_theirs(self) -> None:
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)


Streams = Pipes | Terminal
