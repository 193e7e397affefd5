"""The threads in which blocking work runs, by purpose, so that what may take long never makes wait what is short.

- `asyncio.to_thread`: short work that somebody waits for: mounts, a container's own files, the firewall.
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
_trees = ThreadPoolExecutor(WALKERS, thread_name_prefix="trees")
_removals = ThreadPoolExecutor(WALKERS, thread_name_prefix="removals")
_outside = ThreadPoolExecutor(8, thread_name_prefix="outside")


async def trees(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_trees, partial(work, *arguments, **words))


async def removals(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_removals, partial(work, *arguments, **words))


async def outside(work: Callable[P, T], /, *arguments: P.args, **words: P.kwargs) -> T:
    return await _run(_outside, partial(work, *arguments, **words))


async def _run(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, work)
