"""How does the daemon talk to the processes that do its file-heavy work?

A worker is a function `main` of one of our modules in a process of its own that a `Nursery` starts, with a bounded pipe
to its standard input and a pipe back for one line of outcome. The daemon holds no data: a chunk goes into the pipe, or
its producer waits.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from typing import Self

from husk.kernel.process import Child, reap_later, send_signal
from husk.storage.workers.body import Upload
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.pipes import PIPE_SIZE, keep_end, make_pipe, read_some, wait_until_ready, write_all


class WorkerDied(Exception):
    """The worker takes no more input; its outcome says why."""


class Worker:
    """A running worker; `stop` ends it and may be called at any time, any number of times."""

    def __init__(self, child: Child, writer: int | None, reader: int) -> None:
        self._child: Child | None = child
        self._writer = writer
        self._reader = reader
        self._line: str | None = None

    @classmethod
    async def start(cls, nursery: Nursery, module: str, arguments: Sequence[str]) -> Self:
        """Run `module`'s main; its input is what `write` gets, its outcome what it writes to standard output."""
        with contextlib.ExitStack() as stack:
            stdin, writer = make_pipe(stack, PIPE_SIZE)
            reader, stdout = make_pipe(stack)
            child = await nursery.spawn(module, arguments, [stdin, stdout])
            return cls(child, keep_end(writer), keep_end(reader))

    @classmethod
    async def start_upload(cls, nursery: Nursery, module: str, arguments: Sequence[str], upload: Upload) -> Self:
        """Run `module`'s main with the upload's socket as its standard input.

        A file with what was already read from the socket is an additional last argument.
        """
        with contextlib.ExitStack() as stack:
            begun = os.memfd_create("begun", os.MFD_CLOEXEC)
            stack.callback(os.close, begun)
            remaining = memoryview(upload.begun)
            while remaining:
                remaining = remaining[os.write(begun, remaining) :]
            reader, stdout = make_pipe(stack)
            child = await nursery.spawn(module, arguments, [upload.socket, stdout, begun], reserve=True)
            return cls(child, None, keep_end(reader))

    @classmethod
    async def start_pair(
        cls, nursery: Nursery, first: tuple[str, Sequence[str]], second: tuple[str, Sequence[str]]
    ) -> tuple[Self, Self]:
        """Run two workers, the first's standard output being the second's input.

        The first has its outcome's pipe as an additional last argument.
        """
        with contextlib.ExitStack() as stack:
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, nothing)
            data_out, data_in = make_pipe(stack, PIPE_SIZE)
            first_reader, first_outcome = make_pipe(stack)
            second_reader, second_outcome = make_pipe(stack)
            child = await nursery.spawn(*first, [nothing, data_in, first_outcome])
            producer = cls(child, None, keep_end(first_reader))
            try:
                child = await nursery.spawn(*second, [data_out, second_outcome])
            except BaseException:
                producer.stop()
                raise
            return producer, cls(child, None, keep_end(second_reader))

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand over `data`, waiting while the pipe is full; WorkerDied when nobody reads it any more."""
        if self._writer is None:
            raise WorkerDied
        try:
            await write_all(self._writer, data)
        except BrokenPipeError:
            raise WorkerDied from None

    async def outcome(self) -> str:
        """End the input and return the worker's line; empty when it died without a word."""
        self._close_writer()
        loop = asyncio.get_running_loop()
        line = b""
        while self._line is None:
            try:
                piece = os.read(self._reader, 65536)
            except BlockingIOError:
                await wait_until_ready(self._reader, loop.add_reader, loop.remove_reader)
                continue
            line += piece
            if not piece or line.endswith(b"\n"):
                self._line = line.decode().rstrip("\n")
        return self._line

    def stop(self) -> None:
        """Kill the worker if it still runs and let go of everything."""
        if self._child is None:
            return
        send_signal(self._child.pidfd, signal.SIGKILL)
        reap_later(self._child)
        self._child = None
        self._close_writer()
        os.close(self._reader)

    def _close_writer(self) -> None:
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None


class Producer:
    """A worker whose standard output is the data, and whose lines about it come on a pipe of their own.

    `stop` ends it and may be called at any time, any number of times.
    """

    def __init__(self, child: Child, report: int, data: int | None = None, command: int | None = None) -> None:
        self._child: Child | None = child
        self._report = report
        self._data = data
        self._command = command
        self._lines = b""

    @classmethod
    async def start(cls, nursery: Nursery, module: str, arguments: Sequence[str]) -> Self:
        """Run `module`'s main; the pipe for its lines is an additional last argument."""
        with contextlib.ExitStack() as stack:
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, nothing)
            data, stdout = make_pipe(stack, PIPE_SIZE)
            report, lines = make_pipe(stack)
            child = await nursery.spawn(module, arguments, [nothing, stdout, lines], reserve=True)
            return cls(child, keep_end(report), data=keep_end(data))

    @classmethod
    async def start_answer(cls, nursery: Nursery, module: str, arguments: Sequence[str], outlet: int) -> Self:
        """As `start`, with a client's socket as its standard output: no data comes here, and it waits for `begin`."""
        with contextlib.ExitStack() as stack:
            stdin, command = make_pipe(stack)
            report, lines = make_pipe(stack)
            child = await nursery.spawn(module, arguments, [stdin, outlet, lines], reserve=True)
            return cls(child, keep_end(report), command=keep_end(command))

    def begin(self) -> None:
        """Let it send its data, now that the head of the answer is sent."""
        assert self._command is not None
        with contextlib.suppress(BrokenPipeError):  # its last line, or the lack of it, tells of its end
            os.write(self._command, b"\n")

    async def line(self) -> str:
        """The next line; empty when there is none any more."""
        while b"\n" not in self._lines:
            piece = await read_some(self._report)
            if not piece:
                return ""
            self._lines += piece
        line, _, self._lines = self._lines.partition(b"\n")
        return line.decode()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The data as it comes; while nobody asks for the next piece, the worker waits."""
        assert self._data is not None
        while piece := await read_some(self._data):
            yield piece

    def stop(self) -> None:
        if self._child is None:
            return
        send_signal(self._child.pidfd, signal.SIGKILL)
        reap_later(self._child)
        self._child = None
        for descriptor in (self._report, self._data, self._command):
            if descriptor is not None:
                os.close(descriptor)
