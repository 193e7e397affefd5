"""The overview of an engine, and the stream that keeps every open page up to date."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack

from husk.api.http.response import Answer
from husk.dashboard.attention import needs
from husk.dashboard.drawing import Bar, bars
from husk.dashboard.grouping import Group, group_of, grouped, newest_failures, row
from husk.dashboard.live import Message
from husk.dashboard.pages.system import recent_events, tone_of
from husk.dashboard.router import page, stream
from husk.dashboard.sampling import ALL, series
from husk.dashboard.secret_words import masked
from husk.dashboard.transfers import RUNNING
from husk.dashboard.usage import UsageKind, kinds
from husk.dashboard.visit import Visit
from husk.errors import HuskError

# Of the last hour's events these are shown; all are on their own page.
_MOST_EVENTS = 12


async def home(visit: Visit) -> Answer:
    """Show what needs somebody, what the host has to give, the projects, and what happens."""
    found, info = await asyncio.gather(visit.engine.containers.list(all=True), visit.engine.info())
    groups = {each.id: group_of(each.attrs) for each in found}
    rows = newest_failures(row(each.attrs, visit.hostname) for each in found)
    manages = bool((info.get("Swarm") or {}).get("ControlAvailable"))
    services = await visit.engine.services.list(status=True) if manages else []
    wanting, events, disk = await asyncio.gather(
        needs(visit.engine, rows, services, info), recent_events(visit), _disk(visit)
    )
    if visit.site.read_only:
        wanting = wanting._replace(first=[each._replace(reason=masked(each.reason)) for each in wanting.first])
    return visit.page(
        "overview.html",
        info=info,
        needs=wanting,
        tiles=_tiles(visit, grouped(rows, groups)),
        events=events[:_MOST_EVENTS],
        tone=tone_of,
        transfers=[each for each in visit.site.transfers.recent if each.state == RUNNING],
        all=visit.site.sampler.measured(ALL),
        disk=disk,
    )


def _tiles(visit: Visit, groups: Iterable[Group]) -> list[tuple[Group, float, float]]:
    """Each project with the processor and memory that its containers use now."""

    def used(group: Group, kind: str) -> float:
        return sum(visit.site.sampler.level(each.id, kind) or 0.0 for each in group.rows)

    return [(group, used(group, "cpu"), used(group, "memory")) for group in groups]


async def _disk(visit: Visit) -> list[tuple[UsageKind, Bar]]:
    """The use of the disk as it was counted last; nothing before the first count."""
    try:
        found, _ = await visit.site.room.look()
    except HuskError:
        return []
    parts = kinds(found) if found else []
    return list(zip(parts, bars([each.size for each in parts]), strict=True))


async def history(visit: Visit) -> Answer:
    """The points of the charts of the last hour, of all containers together."""
    return visit.json({"series": series(visit.site.sampler.history(ALL))})


async def live(visit: Visit) -> Answer:
    """Stream the engine's events to the script that fetches regions again; with `?stats=ID` or `?stats=all` also what
    that container, or all, use. It is one stream, for a browser opens few connections to one server."""
    return await visit.tell(_messages(visit, visit.query.get("stats")))


async def _messages(visit: Visit, stats: str) -> AsyncIterator[Message]:
    with ExitStack() as open_ones:
        queue = open_ones.enter_context(visit.site.live.listening())
        if stats:
            open_ones.enter_context(visit.site.sampler.watching(stats, queue))
        while True:
            yield await queue.get()


ROUTES = (
    page("/", home),
    page("/history", history),
    stream("/live", live),
)
