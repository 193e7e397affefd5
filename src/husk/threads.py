"""The threads in which blocking work runs, by purpose, so that what may take long never makes wait what is short.

- `asyncio.to_thread`: short work that somebody waits for: mounts, a container's own files, the firewall. Most of it
  waits for the kernel, which lets many wait together: `short` is the pool for it.
- `trees`: walks over whole trees, to measure, compare or copy them. A disk gets no faster by more of them at once.
- `removals`: deleting whole trees; who removes something does not wait for who measures.
- `outside`: what another machine may delay: mounts of its file systems, looking its name up.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WALKERS = 4
# By default it would be 6 on two processors, and the removal of many containers a queue of those who wait.
_SHORT = 16
_trees = ThreadPoolExecutor(WALKERS, thread_name_prefix="trees")
_removals = ThreadPoolExecutor(WALKERS, thread_name_prefix="removals")
_outside = ThreadPoolExecutor(8, thread_name_prefix="outside")


def short() -> ThreadPoolExecutor:
    """The pool behind `asyncio.to_thread`, for a loop that is the daemon's own."""
    return ThreadPoolExecutor(_SHORT, thread_name_prefix="short")


async def trees(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_trees, partial(work, *arguments, **words))


async def removals(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_removals, partial(work, *arguments, **words))


async def outside(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_outside, partial(work, *arguments, **words))


async def _run(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, work)
