"""The threads in which blocking work runs, by purpose, so that what may take long never makes wait what is short.

- `asyncio.to_thread`: short work that somebody waits for: mounts, a container's own files, the firewall. Most of it
  waits for the kernel, which lets many wait together: `short` is the pool for it. An engine's loop is its own, and so
  is the pool behind it.
- `trees`: walks over whole trees, to measure, compare or copy them. A disk gets no faster by more of them at once.
- `removals`: deleting whole trees; who removes something does not wait for who measures.
- `releases`: what a container held that has ended: mounts, control groups, a few files.
- `outside`: what another machine may delay: mounts of its file systems, looking its name up.
- `foreign`: paths of the host that a client has named. Whatever is mounted there may never answer (a dead NFS server, a
  FUSE program that hangs), and a thread that has asked it is lost. See `foreign_paths`, which asks with a deadline.

The last five are one for all engines of a process. They end with the last one that holds them.

Removals and releases come by the hundred, are short each, and consist of system calls, after each of which a thread
waits for its turn to run Python. So they go through a `Lane`: few threads, and each does many pieces in one visit.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from husk.aio.thread_pool import ThreadPool
from husk.errors import Unavailable

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

WALKERS = 4
# By default it would be 6 on two processors, and the removal of many containers a queue of those who wait.
_SHORT = 16
# How long the first in a lane waits until one more thread helps.
_PATIENCE = 0.005
# How long until a lane tries again where the host lets no thread be started.
_PAUSE = 0.1
# How long the end of a pool waits for threads that a file system or another machine may keep for ever.
_LAST = 5.0
# Threads that may be lost to file systems that do not answer.
_FOREIGN = 64


class _Pool:
    """A pool that is made when it is first used, and again when it is used after its end."""

    def __init__(self, size: int, name: str, patience: float | None = None) -> None:
        self._size = size
        self._name = name
        self._patience = patience
        self._executor: ThreadPool | None = None
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPool(self._size, self._name, self._patience)
            return self._executor.submit(work)

    def end(self) -> None:
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()


class _Piece(Generic[T]):
    """Some work, and who waits for it since when."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[T] = self.loop.create_future()
        self.since = time.monotonic()
        self._failure: BaseException | None = None
        self._result: list[T] = []

    def run(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:
            self._failure = error

    def tell(self) -> None:
        """In the loop, which may have lost interest meanwhile."""
        if self.done.done():
            return
        if self._failure is not None:
            self.done.set_exception(self._failure)
        else:
            self.done.set_result(self._result[0])


class Lane:
    """Work in the order in which it comes, by one thread as long as that is quick, by more where the first waits."""

    def __init__(self, size: int, name: str, patience: float = _PATIENCE, pause: float = _PAUSE) -> None:
        self._pause = pause
        self._pool = _Pool(size, name)
        self._most = size
        self._patience = patience
        self._lock = threading.Lock()
        self._waiting: deque[_Piece[Any]] = deque()
        self._busy = 0
        self._looking: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        # What is done and not told yet, so that a loop that is behind hears of many at once.
        self._done: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Piece[Any]]] = WeakKeyDictionary()

    async def run(self, work: Callable[[], T]) -> T:
        """As in a thread of its own: it goes on when the caller is cancelled."""
        piece = _Piece(work)
        with self._lock:
            self._waiting.append(piece)
            first = self._busy == 0
            self._busy += first
            looks = not first and piece.loop not in self._looking
            if looks:
                self._looking.add(piece.loop)
        if first:
            self._begin(piece.loop)
        elif looks:
            piece.loop.call_later(self._patience, self._look, piece.loop)
        return await piece.done

    def end(self) -> None:
        self._pool.end()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """One more visit, which `_busy` counts already. What waits has to be done some time: where the host lets no
        thread be started, it is tried again until it does."""
        try:
            self._pool.submit(self._visit)
        except Unavailable as error:
            log.warning("work waits: %s", error.message)
            with self._lock:
                self._busy -= 1
            loop.call_later(self._pause, self._again, loop)

    def _again(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            needed = bool(self._waiting) and self._busy == 0
            self._busy += needed
        if needed:
            self._begin(loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look, by a timer of the loop, if somebody waits for long; if so, begin one more visit."""
        with self._lock:
            head = self._waiting[0] if self._waiting else None
            if head is None:
                self._looking.discard(loop)
                return
            more = self._busy < self._most and time.monotonic() - head.since >= self._patience
            self._busy += more
        if more:
            self._begin(loop)
        loop.call_later(self._patience, self._look, loop)

    def _visit(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy -= 1
                    return
                piece = self._waiting.popleft()
            piece.run()
            with self._lock:
                done = self._done.setdefault(piece.loop, [])
                done.append(piece)
                first = len(done) == 1
            if first:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    piece.loop.call_soon_threadsafe(self._tell, piece.loop)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            done = self._done.pop(loop, [])
        for piece in done:
            piece.tell()


_trees = _Pool(WALKERS, "trees", _LAST)
_removals = Lane(WALKERS, "removals")
_releases = Lane(_SHORT, "releases")
_outside = _Pool(8, "outside", _LAST)
_foreign = _Pool(_FOREIGN, "foreign", 0.0)
_holders = 0
_counting = threading.Lock()


@contextmanager
def held() -> Iterator[None]:
    """Keep the pools' threads; after the last holder there are none."""
    global _holders
    with _counting:
        _holders += 1
    try:
        yield
    finally:
        with _counting:
            _holders -= 1
            last = not _holders
        if last:
            for pool in (_trees, _removals, _releases, _outside, _foreign):
                pool.end()


def short() -> ThreadPool:
    """The pool behind `asyncio.to_thread`, for a loop that is an engine's own."""
    return ThreadPool(_SHORT, "short")


def _bound(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> Callable[[], T]:
    """With the caller's context, as `asyncio.to_thread` does it: what is logged there names the request."""
    return partial(copy_context().run, work, *arguments, **words)


async def trees(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _trees.run(_bound(work, *arguments, **words))


async def removals(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _removals.run(_bound(work, *arguments, **words))


async def releases(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _releases.run(_bound(work, *arguments, **words))


def foreign(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> "Future[T]":
    """Begin it; whoever waits for its end does so with a deadline."""
    return _foreign.submit(_bound(work, *arguments, **words))


async def outside(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _outside.run(_bound(work, *arguments, **words))
