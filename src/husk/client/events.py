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

    async for event in engine.events(since=0, filters={"type": "container"}):
        print(event.time, event.action, event.name)
        break
    """

    type: str  #: The kind of the thing: container, image, network, volume and so on
    action: str  #: What happened: create, start, die and so on
    id: str  #: The id of the thing
    attributes: Mapping[str, str] = {}  #: More about the thing: its name, its labels, an exit code
    scope: str = "local"  #: `local` or `swarm`
    time_nano: int = 0  #: Nanoseconds since 1970

    @property
    def time(self) -> datetime:
        """The moment at which it happened."""
        return datetime.fromtimestamp(self.time_nano / 1e9, UTC)

    @property
    def name(self) -> str:
        """The name of the thing, where it has one."""
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
