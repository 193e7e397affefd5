"""Logs of several containers in one: by their time, or as they are written."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from husk.aio.tasks import Tasks
from husk.cli.containers.logs import LoggedLine, Telling, lines_of, of_project, teller
from husk.client.client import Client
from husk.client.container import Container
from husk.errors import HuskError, NotFound

# Lines that wait to be written while many containers write at once.
_MOST_WAITING = 1000


async def tell_several(engine: Client, names: Sequence[str], telling: Telling, options: Mapping[str, Any]) -> None:
    """Tell the logs of containers and of Compose projects, each line with its container before it."""
    found: dict[str, Container] = {}
    for name in names:
        try:
            container = await engine.containers.get(name)
            found[container.name] = container
        except NotFound:
            members = await of_project(engine, name)
            if not members:
                raise
            found |= {each.name: each for each in sorted(members, key=lambda each: each.name)}
    tell = teller([*found], telling, prefixed=True)
    sources = [lines_of(container, options) for container in found.values()]
    if options["follow"]:
        await _as_they_come(sources, tell)
    else:
        async for line in _in_order(sources):
            tell(line)


async def _in_order(sources: Sequence[AsyncIterator[LoggedLine]]) -> AsyncIterator[LoggedLine]:
    """Yield the lines of all by their time; each source waits with its next one alone."""
    waiting: list[tuple[bytes, int, LoggedLine]] = []
    for place, source in enumerate(sources):
        if (first := await anext(source, None)) is not None:
            waiting.append((first.time, place, first))
    heapq.heapify(waiting)
    while waiting:
        _, place, line = waiting[0]
        yield line
        following = await anext(sources[place], None)
        if following is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (following.time, place, following))


async def _as_they_come(sources: Sequence[AsyncIterator[LoggedLine]], tell: Callable[[LoggedLine], None]) -> None:
    """Tell the lines of all while they are written, until all have ended; the failure of one is raised then."""
    queue: asyncio.Queue[LoggedLine | None] = asyncio.Queue(_MOST_WAITING)
    failures: list[HuskError] = []

    async def pass_on(source: AsyncIterator[LoggedLine]) -> None:
        try:
            async for line in source:
                await queue.put(line)
        except HuskError as error:
            failures.append(error)
        await queue.put(None)

    tasks = Tasks()
    try:
        for source in sources:
            tasks.spawn(pass_on(source), "log")
        left = len(sources)
        while left:
            line = await queue.get()
            if line is None:
                left -= 1
            else:
                tell(line)
    finally:
        await tasks.cancel_all()
    if failures:
        raise failures[0]
