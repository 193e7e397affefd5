"""Several containers at once: what they write, and what they use."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast

from husk.aio.tasks import Tasks
from husk.client.logs import LogEntry, Output
from husk.client.stats import Stats, stats
from husk.errors import Conflict, NotFound

# Requests at a time.
_AT_ONCE = 16
# Lines that wait for whoever reads them; a container whose line finds no room waits.
_MOST_WAITING = 1000


class Box(Protocol):
    """A container, as far as this module needs it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    def logs(self, *, follow: bool, tail: int | str, since: Any) -> Output: ...
    async def stats_now(self, one_shot: bool = False) -> Stats: ...


async def entries(
    boxes: Sequence[Box], *, follow: bool, tail: int | str, since: Any, level: str
) -> AsyncIterator[LogEntry]:
    """Lines of all of them, as they come."""
    waiting: asyncio.Queue[LogEntry | BaseException | None] = asyncio.Queue(_MOST_WAITING)
    tasks = Tasks()

    async def read(box: Box) -> None:
        end: BaseException | None = None
        try:
            lines = cast("Any", box.logs(follow=follow, tail=tail, since=since).entries(level=level))
            async with aclosing(lines):
                async for entry in lines:
                    await waiting.put(entry._replace(container=box.name))
        except NotFound:
            pass  # it has gone meanwhile
        except Exception as error:
            end = error
        await waiting.put(end)

    try:
        for box in boxes:
            tasks.spawn(read(box), f"read the log of {box.name}", awaited=True)
        left = len(boxes)
        while left:
            told = await waiting.get()
            if isinstance(told, LogEntry):
                yield told
            elif told is None:
                left -= 1
            else:
                raise told
    finally:
        await tasks.cancel_all()


async def samples(list_them: Callable[[], Any], interval: float) -> AsyncIterator[dict[str, Stats]]:
    """The use of resources of all, again and again; of processors since the sample before."""
    before: dict[str, Mapping[str, Any]] = {}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def sample(box: Box) -> tuple[str, str, Stats] | None:
        async with gate:
            try:
                return box.id, box.name, await box.stats_now(one_shot=True)
            except (NotFound, Conflict):
                return None  # it has ended meanwhile

    loop = asyncio.get_running_loop()
    while True:
        begun = loop.time()
        found = [each for each in await asyncio.gather(*map(sample, await list_them())) if each is not None]
        now = {identifier: told.attrs for identifier, _, told in found}
        yield {
            name: stats({**told.attrs, "precpu_stats": before.get(identifier, {}).get("cpu_stats") or {}})
            for identifier, name, told in found
        }
        before = now
        await asyncio.sleep(max(0.0, interval - (loop.time() - begun)))
