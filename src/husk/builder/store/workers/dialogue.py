"""A worker that the daemon speaks with: bytes both ways, and an answer on a pipe of its own."""

import contextlib
import os
import signal
from typing import Self

from husk.kernel.process import Child, reap_later, send_signal
from husk.storage.workers.answers import Answer
from husk.storage.workers.handle import WorkerDied
from husk.storage.workers.jobs import WorkerJob
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.pipes import PIPE_SIZE, AnswerPipe, keep_end, make_pipe, read_some, write_all


class Dialogue:
    """A running worker; `stop` ends it and may be called at any time, any number of times."""

    def __init__(self, child: Child, writer: int, reader: int, report: int) -> None:
        self._child: Child | None = child
        self._writer: int | None = writer
        self._reader = reader
        self._report = AnswerPipe(report)

    @classmethod
    async def start(cls, nursery: Nursery, job: WorkerJob) -> Self:
        with contextlib.ExitStack() as stack:
            stdin, writer = make_pipe(stack, PIPE_SIZE)
            reader, stdout = make_pipe(stack, PIPE_SIZE)
            report, answers = make_pipe(stack)
            child = await nursery.spawn(job, [stdin, stdout, answers])
            return cls(child, keep_end(writer), keep_end(reader), keep_end(report))

    async def write(self, data: bytes) -> None:
        """Hand over `data`, waiting while the pipe is full; WorkerDied when nobody reads it any more."""
        if self._writer is None:
            raise WorkerDied
        try:
            await write_all(self._writer, data)
        except BrokenPipeError:
            raise WorkerDied from None

    async def read(self) -> bytes:
        """Read the next bytes from the worker; none when it has said all."""
        return await read_some(self._reader)

    async def outcome(self) -> Answer | None:
        """Wait for the worker's answer; None when it died without a word."""
        return await self._report.next()

    def end_input(self) -> None:
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def stop(self) -> None:
        """Kill the worker if it still runs and let go of everything."""
        if self._child is None:
            return
        send_signal(self._child.pidfd, signal.SIGKILL)
        reap_later(self._child)
        self._child = None
        self.end_input()
        os.close(self._reader)
        self._report.close()
