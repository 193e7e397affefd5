"""The daemon's side of the processes that do its file-heavy work.

A worker does one job in a process of its own that a `Nursery` starts. Data goes through its standard input or output, a
bounded pipe or a client's own socket; answers come on a pipe of their own. The daemon holds no data: a chunk goes into
the pipe, or its producer waits.
"""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import Self

from husk.kernel.process import Child, reap_later, send_signal
from husk.storage.workers.answers import Answer
from husk.storage.workers.body import BodyUpload
from husk.storage.workers.jobs import DiffJob, PackJob, PutJob, UnpackJob, WorkerJob
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.pipes import PIPE_SIZE, AnswerPipe, keep_end, make_pipe, nothing, read_some, write_all


class WorkerDied(Exception):
    """The worker takes no more input; its outcome says why."""


class Worker:
    """A running worker; `stop` ends it and may be called at any time, any number of times."""

    def __init__(self, child: Child, writer: int | None, report: int) -> None:
        self._child: Child | None = child
        self._writer = writer
        self._report = AnswerPipe(report)
        self._outcome: Answer | None = None

    @classmethod
    async def start(cls, nursery: Nursery, job: WorkerJob) -> Self:
        """Start a job whose input is what `write` gets."""
        with contextlib.ExitStack() as stack:
            stdin, writer = make_pipe(stack, PIPE_SIZE)
            report, answers = make_pipe(stack)
            child = await nursery.spawn(job, [stdin, nothing(stack), answers])
            return cls(child, keep_end(writer), keep_end(report))

    @classmethod
    async def ask(cls, nursery: Nursery, job: WorkerJob) -> Answer | None:
        """Start a job that takes no input, and wait for its answer; None when the worker died without one."""
        worker = await cls.start(nursery, job)
        try:
            return await worker.outcome()
        finally:
            worker.stop()

    @classmethod
    async def start_upload(cls, nursery: Nursery, job: PutJob, upload: BodyUpload) -> Self:
        """Start a job whose input is the upload's socket."""
        with contextlib.ExitStack() as stack:
            begun = os.memfd_create("begun", os.MFD_CLOEXEC)
            stack.callback(os.close, begun)
            remaining = memoryview(upload.begun)
            while remaining:
                remaining = remaining[os.write(begun, remaining) :]
            report, answers = make_pipe(stack)
            child = await nursery.spawn(job, [upload.socket, nothing(stack), answers, begun], reserve=True)
            return cls(child, None, keep_end(report))

    @classmethod
    async def start_pair(cls, nursery: Nursery, first: DiffJob, second: UnpackJob) -> tuple[Self, Self]:
        """Start two jobs, the first's output being the second's input."""
        with contextlib.ExitStack() as stack:
            data_out, data_in = make_pipe(stack, PIPE_SIZE)
            first_report, first_answers = make_pipe(stack)
            second_report, second_answers = make_pipe(stack)
            child = await nursery.spawn(first, [nothing(stack), data_in, first_answers])
            producer = cls(child, None, keep_end(first_report))
            try:
                child = await nursery.spawn(second, [data_out, nothing(stack), second_answers])
            except BaseException:
                producer.stop()
                raise
            return producer, cls(child, None, keep_end(second_report))

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand over `data`, waiting while the pipe is full; WorkerDied when nobody reads it any more."""
        if self._writer is None:
            raise WorkerDied
        try:
            await write_all(self._writer, data)
        except BrokenPipeError:
            raise WorkerDied from None

    async def outcome(self) -> Answer | None:
        """End the input and return the worker's answer; None when it died without one."""
        self._close_writer()
        if self._outcome is None:
            self._outcome = await self._report.next()
        return self._outcome

    def stop(self) -> None:
        """Kill the worker if it still runs and let go of everything."""
        if self._child is None:
            return
        send_signal(self._child.pidfd, signal.SIGKILL)
        reap_later(self._child)
        self._child = None
        self._close_writer()
        self._report.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None


class Producer:
    """A worker whose standard output is the data, with answers before and behind it.

    `stop` ends it and may be called at any time, any number of times.
    """

    def __init__(self, child: Child, report: int, data: int | None = None, command: int | None = None) -> None:
        self._child: Child | None = child
        self._report = AnswerPipe(report)
        self._data = data
        self._command = command

    @classmethod
    async def start(cls, nursery: Nursery, job: PackJob) -> Self:
        """Start a job whose output comes out of `chunks`."""
        with contextlib.ExitStack() as stack:
            data, stdout = make_pipe(stack, PIPE_SIZE)
            report, answers = make_pipe(stack)
            child = await nursery.spawn(job, [nothing(stack), stdout, answers], reserve=True)
            return cls(child, keep_end(report), data=keep_end(data))

    @classmethod
    async def start_answer(cls, nursery: Nursery, job: PackJob, outlet: int) -> Self:
        """As `start`, with a client's socket as its output: no data comes here, and it waits for `begin`."""
        with contextlib.ExitStack() as stack:
            stdin, command = make_pipe(stack)
            report, answers = make_pipe(stack)
            child = await nursery.spawn(job, [stdin, outlet, answers], reserve=True)
            return cls(child, keep_end(report), command=keep_end(command))

    def begin(self) -> None:
        """Let it send its data, now that the head of the answer is sent."""
        assert self._command is not None
        with contextlib.suppress(BrokenPipeError):  # its last answer, or the lack of it, tells of its end
            os.write(self._command, b"\n")

    async def answer(self) -> Answer | None:
        """The next answer; None when there is none any more."""
        return await self._report.next()

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
        self._report.close()
        for descriptor in (self._data, self._command):
            if descriptor is not None:
                os.close(descriptor)
