"""An event loop whose time passes only when nobody has anything left to do: then the next alarm is due at once."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class Process:
    """All tasks of one daemon, so that they can end at once, as with kill -9."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        # In the order in which they began.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        # What is to be done when it wakes up; None while it is awake.
        self.waiting: list[asyncio.Handle] | None = None
        self._drowsy = 0.0

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start something as a task of this process; all that it starts is one, too."""
        before = _process.set(self)
        try:
            return asyncio.get_running_loop().create_task(work)
        finally:
            _process.reset(before)

    def add(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        if self.dead:
            task.cancel()

    def sleep(self, seconds: float) -> None:
        """Sleep for so long, as when the host stops it or has no memory for it."""
        self._drowsy = 0.0
        if self.waiting is None and not self.dead:
            self.waiting = []
            asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, None
        asyncio.get_running_loop()._ready.extend(waiting or ())  # type: ignore[attr-defined]

    def doze(self, seconds: float) -> None:
        """Fall asleep in the moment before the next write."""
        self._drowsy = seconds

    async def nod(self) -> None:
        """The next step is a write."""
        if self._drowsy:
            self.sleep(self._drowsy)
            await asyncio.sleep(0)

    def kill(self) -> None:
        self.dead = True
        self._wake()
        for task in list(self._tasks):
            task.cancel()

    def check(self) -> None:
        """Raise for a dead process: its work in a `finally` reaches nobody."""
        if self.dead:
            raise asyncio.CancelledError


_process: ContextVar[Process | None] = ContextVar("process", default=None)


def own_process() -> Process:
    """That of the task that asks."""
    found = _process.get()
    assert found is not None, "it is a process's"
    return found


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop without files and threads: work for a thread is done at once."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self.set_task_factory(_made)
        self.turns = 0

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Move the time on, where `BaseEventLoop` has nothing to do for so long."""
        self.turns += 1
        if timeout is None:
            raise AssertionError("everybody waits for somebody else, and nobody for time")
        self._now += timeout
        return []

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *arguments: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call it soon; calls for a process that sleeps wait until it wakes up."""
        process = _process.get() if context is None else context.get(_process)
        if process is None or process.waiting is None:
            return super().call_soon(callback, *arguments, context=context)
        handle = asyncio.Handle(callback, arguments, self, context)
        process.waiting.append(handle)
        return handle

    def run_in_executor(self, executor: object, work: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done

    def _process_events(self, events: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _made(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(work, loop=loop, **options)
    if (process := _process.get()) is not None:
        process.add(task)
    return task


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, with all that it leaves."""
    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
