"""A thread with an event loop of its own, in which something is kept open for others.

An engine inside a program lives in such a thread: what the program does in its own loop, however long, does not make
containers wait, and neither its loop, its executor nor its signals are touched.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar

import uvloop

from husk.aio import threads
from husk.aio.tasks import Tasks
from husk.errors import Unavailable

T = TypeVar("T")
R = TypeVar("R")


class ThreadBound(Generic[T]):
    """Something that is entered in a thread of its own, and stays entered until `leave`.

    `opened` is what it gave, or why it could not be entered; `ended` is done when nothing of the thread is left to do.
    """

    def __init__(
        self, context: AbstractAsyncContextManager[T], name: str, prepare: Callable[[], None] | None = None
    ) -> None:
        """`prepare` is called in the thread before anything else."""
        self.opened: Future[T] = Future()
        self.ended: Future[None] = Future()
        self._context = context
        self._prepare = prepare
        self._loop = uvloop.new_event_loop()
        self._leaving = asyncio.Event()
        self._closing = False
        self._process = os.getpid()
        # A program that ends without leaving does not wait for us: what is open then is found by the next one.
        self.thread = threading.Thread(target=self._live, name=name, daemon=True)

    def start(self) -> None:
        # From now on nobody can cancel them who only waits for them.
        self.opened.set_running_or_notify_cancel()
        self.ended.set_running_or_notify_cancel()
        self.thread.start()

    def submit(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Run the work in the thread. Unavailable when that is not there any more."""
        if self._is_of_another_process:
            work.close()
            raise Unavailable("the engine was opened before this process was forked: open one here")
        if self._closing or self.ended.done():
            work.close()
            raise Unavailable("the engine is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def leave(self) -> None:
        """Leave the thing as soon as it has been entered; `ended` tells when that is done. Can be asked more than once.

        Entering is not cut off: what a thread of a pool has just opened would belong to nobody.
        """
        if self._is_of_another_process:
            return
        self._closing = True
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._leaving.set)

    def close(self) -> None:
        """Leave, and wait until the thread has ended. Raises what leaving failed with.

        Nothing happens in a process that was forked since: what was entered is its parent's.
        """
        if self._is_of_another_process:
            return
        self.leave()
        try:
            self.ended.result()
        finally:
            self.thread.join()

    async def entered(self) -> T:
        """Return what was entered, for a caller in another loop; who is cancelled waits until nothing is left."""
        try:
            return await asyncio.wrap_future(self.opened)
        except BaseException:
            with suppress(Exception):
                await self.left()
            raise

    async def left(self) -> None:
        """As `close`, for a caller in another loop; it is not cut off."""
        if self._is_of_another_process:
            return
        self.leave()
        try:
            await Tasks().to_its_end(_outcome(self.ended), "end a thread")
        finally:
            self.thread.join()

    @property
    def _is_of_another_process(self) -> bool:
        """True in a process that was forked since: threads do not come along."""
        return self._process != os.getpid()

    def _live(self) -> None:
        outcome: BaseException | None = None
        try:
            if self._prepare is not None:
                self._prepare()
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._keep())
        except BaseException as error:
            outcome = error
        if not self.opened.done():
            self.opened.set_exception(outcome or asyncio.CancelledError())
            outcome = None  # it has been told
        if outcome is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(outcome)

    async def _keep(self) -> None:
        self._loop.set_default_executor(threads.short())
        if self._leaving.is_set():
            return
        with threads.held():
            async with self._context as value:
                self.opened.set_result(value)
                await self._leaving.wait()


async def _outcome(future: "Future[None]") -> None:
    await asyncio.wrap_future(future)
