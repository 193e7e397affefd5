"""Events of an engine, as objects."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.client.moments import Moment, moment


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a container, an image, a network, a volume, a service …

    async for event in engine.events(filters={"type": "container"}):
        print(event.time, event.action, event.name)
    """

    type: str
    action: str
    # Of what it happened to, as are the attributes: its labels, its name, an exit code …
    id: str
    attributes: Mapping[str, str] = {}
    scope: str = "local"
    # Nanoseconds since 1970.
    time_nano: int = 0

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.time_nano / 1e9, UTC)

    @property
    def name(self) -> str:
        """The name of what it happened to, where it has one."""
        return self.attributes.get("name", "")


async def events(calls: Calls, since: Moment, until: Moment, filters: Mapping[str, Any] | None) -> AsyncIterator[Event]:
    query = {"since": moment(since), "until": moment(until), "filters": filters_of(filters)}
    async for line in calls.lines("GET", "/events", query):
        yield event(line)


def event(document: Mapping[str, Any]) -> Event:
    """An event out of the API's document."""
    actor = document.get("Actor") or {}
    return Event(
        type=str(document.get("Type", "")),
        action=str(document.get("Action", "")),
        id=str(actor.get("ID", "")),
        attributes=dict(actor.get("Attributes") or {}),
        scope=str(document.get("scope") or "local"),
        time_nano=int(document.get("timeNano") or int(document.get("time") or 0) * 10**9),
    )
