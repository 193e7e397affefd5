"""Events, for those who ask what happened: a short history and a live stream to any number of listeners.

A listener that does not read is dropped rather than allowed to grow without bound: it sees its stream end. Labels are
shared with the record they are of, and the history forgets sooner where they are large.
"""

import asyncio
import weakref
from collections import ChainMap, deque
from collections.abc import AsyncIterator, Callable, Mapping

from msgspec import Struct

from husk.engine.model.clock import now_ns
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.registry import reference as references

HISTORY = 256
LARGEST_HISTORY = 16 * 1024 * 1024
"""Characters of the attributes of all events in the history; the last one stays however large it is."""
BACKLOG = 4096


class Event(Struct, kw_only=True, frozen=True):
    type: str
    action: str
    actor_id: str
    attributes: Mapping[str, str]
    time_ns: int
    scope: str = "local"


class Events:
    """The engine's one channel of events."""

    def __init__(self, clock: Callable[[], int] = now_ns, largest_history: int = LARGEST_HISTORY) -> None:
        self._clock, self._largest_history = clock, largest_history
        self._history: deque[Event] = deque()
        self._history_size = 0
        # Weak, because a stream that nobody began to read never reaches its own end.
        self._listeners: weakref.WeakSet[asyncio.Queue[Event | None]] = weakref.WeakSet()
        self._observers: list[Callable[[Event], None]] = []

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def publish(
        self, type: str, action: str, actor_id: str, attributes: dict[str, str], labels: dict[str, str] | None = None
    ) -> None:
        """Tell of something; `labels` are what the thing has, and stand behind the attributes of the same name."""
        told = ChainMap(attributes, labels) if labels else attributes
        event = Event(type=type, action=action, actor_id=actor_id, attributes=told, time_ns=self._clock())
        self._remember(event)
        for observer in self._observers:
            observer(event)
        for queue in list(self._listeners):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._listeners.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)

    def _remember(self, event: Event) -> None:
        self._history.append(event)
        self._history_size += _size(event)
        while len(self._history) > HISTORY or (self._history_size > self._largest_history and len(self._history) > 1):
            self._history_size -= _size(self._history.popleft())

    def observe(self, observer: Callable[[Event], None]) -> None:
        """For parts of the engine: told of every event as it happens, which takes no time; no client's listener."""
        self._observers.append(observer)

    def subscribe(self, since_ns: int | None, until_ns: int | None, filters: Filters) -> AsyncIterator[Event]:
        """Past events from `since_ns`, then live ones up to `until_ns`; listening begins with this call, not later.

        Without either there are no past events; with `until_ns` alone there are all of them, as with dockerd.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue(BACKLOG)
        past: list[Event] = []
        if since_ns is not None or until_ns is not None:
            begin = since_ns or 0
            past = [e for e in self._history if e.time_ns >= begin and (until_ns is None or e.time_ns <= until_ns)]
        self._listeners.add(queue)
        return self._stream(queue, past, until_ns, filters)

    def close(self) -> None:
        """End every stream: the daemon is going."""
        for queue in list(self._listeners):
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(None)

    async def _stream(
        self, queue: asyncio.Queue[Event | None], past: list[Event], until_ns: int | None, filters: Filters
    ) -> AsyncIterator[Event]:
        try:
            for event in past:
                if matches(event, filters):
                    yield event
            while True:
                next_event = await _next(queue, until_ns, self._clock)
                if next_event is None or (until_ns is not None and next_event.time_ns > until_ns):
                    return
                if matches(next_event, filters):
                    yield next_event
        finally:
            self._listeners.discard(queue)


def _size(event: Event) -> int:
    told = event.attributes
    parts = told.maps if isinstance(told, ChainMap) else [told]
    return sum(sum(map(len, part)) + sum(map(len, part.values())) for part in parts)


async def _next(queue: asyncio.Queue[Event | None], until_ns: int | None, clock: Callable[[], int]) -> Event | None:
    """None at the end. What waits in the queue comes out however late it is read: it happened in time."""
    if not queue.empty():
        return queue.get_nowait()
    left = None if until_ns is None else max(0.0, (until_ns - clock()) / 1e9)
    try:
        async with asyncio.timeout(left):
            return await queue.get()
    except TimeoutError:
        return None


def matches(event: Event, filters: Filters) -> bool:
    """Docker's rules: every key must match; within a key one value is enough, except labels, which all must match."""
    if not filters:
        return True
    if (types := filters.get("type")) and event.type not in types:
        return False
    if (scopes := filters.get("scope")) and not event.scope.startswith(tuple(scopes)):
        return False
    if (actions := filters.get("event")) and not any(
        event.action == wanted or event.action.startswith(wanted + ": ") for wanted in actions
    ):
        return False
    if not filters.matches_labels(event.attributes):
        return False
    for kind in ("container", "image", "network", "volume", "service", "node", "secret", "config", "plugin", "daemon"):
        if (wanted_names := filters.get(kind)) and not _actor_matches(event, kind, wanted_names):
            return False
    return True


def _actor_matches(event: Event, kind: str, wanted: list[str]) -> bool:
    """By the beginning of an id or name; images by the whole name, with or without its tag."""
    if kind == "image":
        return not _image_names(event).isdisjoint(wanted)
    if event.type != kind:
        return False
    return event.actor_id.startswith(tuple(wanted)) or event.attributes.get("name", "").startswith(tuple(wanted))


def _image_names(event: Event) -> set[str]:
    """Return the names by which an image filter gets this event; a container's events count as those of its image."""
    if event.type == "image":
        names = {event.actor_id, event.attributes.get("name", "")}
    elif event.type == "container":
        names = {event.attributes.get("image", "")}
    else:
        return set()
    return names | {_without_tag(name) for name in names}


def _without_tag(image: str) -> str:
    try:
        return references.parse(image).familiar_name
    except InvalidParameter:
        return image
