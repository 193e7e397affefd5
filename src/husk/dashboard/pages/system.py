"""The engine itself: what takes room, what happened, and how it is."""

import time

from msgspec.structs import replace

from husk.api.http.response import Answer
from husk.client.events import Event
from husk.dashboard.drawing import bars
from husk.dashboard.live import UNSHOWN, brief
from husk.dashboard.router import PageRoute, page
from husk.dashboard.secret_words import masked
from husk.dashboard.usage import kinds, largest
from husk.dashboard.visit import Visit
from husk.errors import HuskError

# Seconds, and events, that the time line goes back.
_LONGEST = 3600
_MOST_EVENTS = 300
_TYPES = (
    "container", "image", "network", "volume", "service", "node", "secret", "config", "builder", "daemon", "plugin",
)  # fmt: skip


async def disk(visit: Visit) -> Answer:
    """Show the disk's use as last counted; where there is no count yet, that one is made, or why it cannot be."""
    found, counting, trouble = None, False, ""
    try:
        found, counting = await visit.site.room.look()
    except HuskError as error:
        trouble = error.message
    parts = kinds(found or {})
    drawn = list(zip(parts, bars([each.size for each in parts]), strict=True))
    return visit.page(
        "disk.html",
        known=found is not None,
        counting=counting,
        trouble=trouble,
        parts=drawn,
        total=sum(each.size for each in parts),
        largest=largest(found or {}),
    )


async def events(visit: Visit) -> Answer:
    """The time line of the last hour; `?type=` shows those of one kind, `?execs=show` also what changes nothing, as
    execs and health checks do."""
    kind, execs = visit.query.get("type"), visit.query.get("execs") == "show"
    newest = await recent_events(visit, kind, execs=execs)
    return visit.page("events.html", events=newest, types=_TYPES, kind=kind, execs=execs, tone=tone_of)


async def recent_events(visit: Visit, kind: str = "", *, execs: bool = False) -> list[Event]:
    """The events of the last hour, the newest first: those that the engine remembers, and those that pages heard."""
    now = time.time()
    filters = {"type": kind} if kind in _TYPES else {}
    found: list[Event] = []
    async for event in visit.engine.events(since=now - _LONGEST, until=now, filters=filters):
        if execs or not event.action.startswith(UNSHOWN):
            found.append(brief(event))
    known = {_key(event) for event in found}
    found += [
        event
        for event in visit.site.live.recent
        if _key(event) not in known and event.time.timestamp() > now - _LONGEST and kind in ("", event.type)
    ]
    if visit.site.read_only:
        found = [replace(event, action=masked(event.action)) for event in found]
    return sorted(reversed(found), key=lambda event: -event.time_nano)[:_MOST_EVENTS]


def _key(event: Event) -> tuple[int, str, str, str]:
    return event.time_nano, event.type, event.action, event.id


def tone_of(event: Event) -> str:
    """Return the tone in which an event is coloured: `good`, `bad`, or empty for neither."""
    action = event.action
    if action in ("oom", "health_status: unhealthy") or (action == "die" and event.attributes.get("exitCode") != "0"):
        return "bad"
    return "good" if action in ("start", "unpause", "health_status: healthy", "pull", "update", "create") else ""


async def health(visit: Visit) -> Answer:
    return visit.page("health.html", info=await visit.engine.info(), engine=await visit.engine.version())


ROUTES: tuple[PageRoute, ...] = (
    page("/disk", disk),
    page("/events", events),
    page("/health", health),
)
