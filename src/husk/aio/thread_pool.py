"""A pool of threads that holds when the host lets no thread be started for a while, and ends although some are stuck.

Python's own pool counts on both: where a thread cannot be started (the limit of processes of a user or of a control
group is reached), `submit` fails and the work is done nevertheless, by whichever thread comes next; and the end of the
program waits for every thread, also for one that asks a dead file server.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from husk.aio.lone_thread import begin
from husk.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool(ThreadPoolExecutor):
    """The pool of threads of a loop: asyncio takes only one of this base class, of which only the names are left."""

    def __init__(self, size: int, name: str, patience: float | None = None) -> None:
        """Those at work when the pool ends are waited for, or left alone after `patience` seconds."""
        super().__init__(size, thread_name_prefix=name)
        self._patience = patience
        self._size = size
        self._name = name
        self._changed = threading.Condition()
        self._pieces: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._staff: set[threading.Thread] = set()
        self._idle = 0
        self._ended = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Give work to a thread. Unavailable when there is none and none can be started: then the work is not done."""
        future: Future[T] = Future()
        piece = (future, lambda: fn(*args, **kwargs))
        with self._changed:
            if self._ended:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._pieces.append(piece)
            if self._idle < len(self._pieces) and len(self._staff) < self._size:
                self._hire(piece)
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._ended = True
            if cancel_futures:
                while self._pieces:
                    self._pieces.popleft()[0].cancel()
            self._changed.notify_all()
            staff = list(self._staff)
        deadline = None if self._patience is None else time.monotonic() + self._patience
        for thread in staff if wait else ():
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _hire(self, piece: tuple[Future[Any], Callable[[], Any]]) -> None:
        """Start one more thread, with the lock held."""
        # No end of the program waits for it: `shutdown` does, for as long as is reasonable.
        thread = threading.Thread(target=self._work, name=f"{self._name}_{len(self._staff)}", daemon=True)
        try:
            begin(thread)
        except Unavailable:
            if not self._staff:
                self._pieces.remove(piece)
                raise
            return  # one of those that are there does it when it is done with what it has
        self._staff.add(thread)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._pieces:
                    if self._ended:
                        self._staff.discard(threading.current_thread())
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                future, work = self._pieces.popleft()
            _do(future, work)
            del future, work  # until the next piece comes nothing of this one is held


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
