"""Pipes between the daemon, which waits for nothing, and workers, which may.

The pipe that a worker's answers come out of, as the daemon reads it.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

from husk.storage.workers.answers import Answer
from husk.storage.workers.messages import decode_answer

PIPE_SIZE = 1 << 20
_READ_SIZE = 1 << 18
# Bytes of an answer that is decoded in a thread.
_LONG = 64 << 10


def make_pipe(stack: contextlib.ExitStack, size: int = 0) -> tuple[int, int]:
    """A pipe whose ends are closed with `stack`; a child inherits its end, so `keep_end` takes a copy of ours."""
    ends = os.pipe2(os.O_CLOEXEC)
    for end in ends:
        stack.callback(os.close, end)
    if size:
        with contextlib.suppress(OSError):  # the host allows less: then it is the usual 64 KiB
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, size)
    return ends


def nothing(stack: contextlib.ExitStack) -> int:
    """Open `/dev/null`, the input or output of a worker whose job needs none."""
    descriptor = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


def keep_end(fd: int) -> int:
    """Our own, non-blocking copy of a pipe's end."""
    # Blocking or not belongs to the pipe's end, not to the number: the child never has this end.
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.set_blocking(copy, False)
    return copy


async def read_some(fd: int) -> bytes:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(fd, _READ_SIZE)
        except BlockingIOError:
            await wait_until_ready(fd, loop.add_reader, loop.remove_reader)


async def wait_until_ready(fd: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    waiting = asyncio.Event()
    add(fd, waiting.set)
    try:
        await waiting.wait()
    finally:
        remove(fd)


async def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    """Write to a pipe, waiting while it is full; BrokenPipeError when nobody reads it any more."""
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(fd, remaining) :]
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await wait_until_ready(fd, loop.add_writer, loop.remove_writer)


class AnswerReader:
    """Answers out of bytes as they come, in pieces of any size; what is not a whole one yet is kept."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        # So many of them are known to have no end of a line: an answer may carry a large file.
        self._seen = 0

    def feed(self, data: bytes) -> None:
        self._waiting += data

    def next(self) -> Answer | None:
        """The next one, if all of it is here."""
        line = self.line()
        return None if line is None else decode_answer(line)

    def line(self) -> bytes | None:
        """The same, not decoded yet."""
        end = self._waiting.find(b"\n", self._seen)
        if end < 0:
            self._seen = len(self._waiting)
            return None
        line = bytes(memoryview(self._waiting)[:end])
        del self._waiting[: end + 1]
        self._seen = 0
        return line


class AnswerPipe:
    """`fd` is its own from now on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._answers = AnswerReader()

    async def next(self) -> Answer | None:
        """The next answer; None when the worker has gone without one."""
        while (line := self._answers.line()) is None:
            data = await read_some(self._fd)
            if not data:
                return None
            self._answers.feed(data)
        # A list of many files, or a large one.
        return decode_answer(line) if len(line) < _LONG else await asyncio.to_thread(decode_answer, line)

    def close(self) -> None:
        os.close(self._fd)
