"""The threads in which blocking work runs, by purpose, so that what may take long never makes wait what is short.

- `asyncio.to_thread`: short work that somebody waits for: mounts, a container's own files, the firewall. Most of it
  waits for the kernel, which lets many wait together: `short` is the pool for it. An engine's loop is its own, and so
  is the pool behind it.
- `trees`: walks over whole trees, to measure, compare or copy them. A disk gets no faster by more of them at once.
- `removals`: deleting whole trees; who removes something does not wait for who measures.
- `outside`: what another machine may delay: mounts of its file systems, looking its name up.

The last three are one for all engines of a process. They end with the last one that holds them.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WALKERS = 4
# By default it would be 6 on two processors, and the removal of many containers a queue of those who wait.
_SHORT = 16


class _Pool:
    """A pool that is made when it is first used, and again when it is used after its end."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._size, thread_name_prefix=self._name)
            future = self._executor.submit(work)
        return await asyncio.wrap_future(future)

    def end(self) -> None:
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()


_trees = _Pool(WALKERS, "trees")
_removals = _Pool(WALKERS, "removals")
_outside = _Pool(8, "outside")
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
            for pool in (_trees, _removals, _outside):
                pool.end()


def short() -> ThreadPoolExecutor:
    """The pool behind `asyncio.to_thread`, for a loop that is an engine's own."""
    return ThreadPoolExecutor(_SHORT, thread_name_prefix="short")


async def trees(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _trees.run(partial(work, *arguments, **words))


async def removals(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _removals.run(partial(work, *arguments, **words))


async def outside(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _outside.run(partial(work, *arguments, **words))
