"""The engine itself: what takes room, what happened, and how it is."""

import time

from husk.api.http.response import Answer
from husk.client.events import Event
from husk.dashboard.drawing import bars
from husk.dashboard.router import Route, page
from husk.dashboard.usage import kinds, largest
from husk.dashboard.visit import Visit

# Seconds, and events, that the time line goes back.
_LONGEST = 3600
_MOST_EVENTS = 300
_TYPES = (
    "container", "image", "network", "volume", "service", "node", "secret", "config", "builder", "daemon", "plugin",
)  # fmt: skip


async def disk(visit: Visit) -> Answer:
    found = await visit.engine.df()
    parts = kinds(found)
    drawn = list(zip(parts, bars([each.size for each in parts]), strict=True))
    return visit.page("disk.html", parts=drawn, total=sum(each.size for each in parts), largest=largest(found))


async def events(visit: Visit) -> Answer:
    """The time line of the last hour; `?type=` shows those of one kind."""
    kind = visit.query.get("type")
    now = time.time()
    filters = {"type": kind} if kind in _TYPES else {}
    found: list[Event] = []
    async for event in visit.engine.events(since=now - _LONGEST, until=now, filters=filters):
        found.append(event)
    return visit.page("events.html", events=found[: -_MOST_EVENTS - 1 : -1], types=_TYPES, kind=kind)


async def health(visit: Visit) -> Answer:
    return visit.page("health.html", info=await visit.engine.info(), engine=await visit.engine.version())


ROUTES: tuple[Route, ...] = (
    page("/disk", disk),
    page("/events", events),
    page("/health", health),
)
