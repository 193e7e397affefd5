"""The engine itself: what takes room, what builds have kept, what happened, and how it is."""

import time

from husk.api.http.response import Answer
from husk.client.events import Event
from husk.dashboard.drawing import bars
from husk.dashboard.rendering import size
from husk.dashboard.router import Route, change, page
from husk.dashboard.usage import kinds, largest, total
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


async def builds(visit: Visit) -> Answer:
    found = (await visit.engine.df("build-cache")).get("BuildCache") or []
    found.sort(key=lambda each: -int(each.get("Size") or 0))
    return visit.page("builds.html", records=found, total=total(found, "Size"))


async def ask_prune_builds(visit: Visit) -> Answer:
    found = (await visit.engine.df("build-cache")).get("BuildCache") or []
    unused = [each for each in found if not each.get("InUse")]
    return visit.confirm(
        "Remove what builds have kept?",
        details=f"{len(unused)} records of {len(found)} are not in use, of {size(total(unused, 'Size'))}. "
        "The next builds take longer.",
        verb="Remove",
        back="/builds",
        all="Also what images of this engine share",
    )


async def prune_builds(visit: Visit) -> Answer:
    told = await visit.engine.images.prune_builds(all="all" in visit.form)
    count = len(told.get("CachesDeleted") or [])
    return visit.redirect(
        "/builds", f"{count} records were removed, which freed {size(int(told.get('SpaceReclaimed') or 0))}."
    )


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
    page("/builds", builds),
    page("/builds/prune", ask_prune_builds),
    change("/builds/prune", prune_builds),
    page("/events", events),
    page("/health", health),
)
