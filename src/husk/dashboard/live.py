"""Events of the engine, told to everybody who looks: one stream of them, however many pages are open."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.client.events import Event
from husk.errors import HuskError

log = logging.getLogger(__name__)

# What may wait for a browser that does not read; then it is told to look at everything again.
_MOST_WAITING = 256
_MOST_RECENT = 300
# Seconds until an engine that has gone is asked again.
_PATIENCE = 1.0
# What an exec or a health check does is no change of what pages show.
UNSHOWN = ("exec_", "top", "resize", "attach", "detach", "archive-path", "extract-to-dir")

# Of an event's attributes these are shown. The others have no end: a container's labels are among them.
_SHOWN_ATTRIBUTES = ("name", "exitCode")

# (name, document) as a browser is told it.
Message = tuple[str, object]
AWAY: Message = ("away", {})
# Something was missed: everything may be different.
BACK: Message = ("back", {})


class Live:
    """The events of one engine."""

    def __init__(self, engine: Client, tasks: Tasks) -> None:
        self._engine = engine
        self._tasks = tasks
        # What was told while somebody looked: an engine forgets soon where it does many execs.
        self.recent: deque[Event] = deque(maxlen=_MOST_RECENT)
        self._queues: set[asyncio.Queue[Message]] = set()
        self._reading: asyncio.Task[None] | None = None
        # How much that pages show has happened while somebody looked, and since when (monotonic) nothing was missed.
        self.changes = 0
        self.since: float | None = None

    @contextmanager
    def listening(self) -> "Iterator[asyncio.Queue[Message]]":
        """A queue of what happens from now on."""
        queue: asyncio.Queue[Message] = asyncio.Queue()
        self._queues.add(queue)
        if self._reading is None:
            self._reading = self._tasks.spawn(self._read(), "events for the dashboard")
        try:
            yield queue
        finally:
            self._queues.discard(queue)
            if not self._queues and self._reading is not None:
                self._reading.cancel()
                self._reading = self.since = None

    def tell(self, message: Message) -> None:
        """To everybody."""
        for queue in self._queues:
            if queue.qsize() >= _MOST_WAITING:
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(BACK)
            queue.put_nowait(message)

    async def _read(self) -> None:
        while True:
            try:
                self.since = time.monotonic()
                async for event in self._engine.events():
                    if not event.action.startswith(UNSHOWN):
                        self.changes += 1
                        self.recent.append(brief(event))
                        self.tell(("change", shown(event)))
            except HuskError as error:
                log.debug("the dashboard's events: %s", error.message)
            except Exception as error:  # what is no event, of an engine that lies: the next ones are told again
                log.warning("the dashboard's events cannot be read: %r", error)
            self.since = None
            self.tell(AWAY)
            await self._until_it_answers()
            self.tell(BACK)

    async def _until_it_answers(self) -> None:
        while True:
            await asyncio.sleep(_PATIENCE)
            try:
                await self._engine.ping()
            except HuskError:
                continue
            return


def brief(event: Event) -> Event:
    """The event with no more than what pages show of it."""
    attributes = event.attributes
    return replace(event, attributes={name: attributes[name] for name in _SHOWN_ATTRIBUTES if name in attributes})


def shown(event: Event) -> dict[str, object]:
    """An event as a browser is told it."""
    return {
        "type": event.type,
        "action": event.action,
        "id": event.id,
        "name": event.name,
        "time": event.time_nano // 10**6,
    }
