"""Pulls and pushes that were begun on a page: they go on when the browser leaves, and tell how far each layer is."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable

import msgspec

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.client.progress import PullProgress
from husk.dashboard.live import Live
from husk.errors import Conflict, HuskError, NotFound

log = logging.getLogger(__name__)

PULL, PUSH = "pull", "push"
RUNNING, DONE, FAILED = "running", "done", "failed"
# What is remembered, and what may be under way at once.
_MOST = 32
_MOST_RUNNING = 8
# Seconds between two words to pages that look.
_PAUSE = 0.25
_ENDED = ("complete", "already exists", "pushed", "mounted from")


class LayerProgress(msgspec.Struct):
    """The progress of one layer, in bytes; `total` is 0 where nobody has told."""

    id: str
    status: str = ""
    current: int = 0
    total: int = 0

    @property
    def ended(self) -> bool:
        return self.status.lower().startswith(_ENDED) or self.status.lower().endswith(_ENDED)


class Transfer(msgspec.Struct):
    """One pull or push."""

    id: str
    kind: str
    name: str
    state: str = RUNNING
    # The last word on the whole, or what went wrong.
    word: str = ""
    layers: dict[str, LayerProgress] = {}
    # What is done when a pull has ended well; it tells the last word.
    then: Callable[[], Awaitable[str]] | None = None

    def take(self, line: PullProgress) -> None:
        """A line of progress."""
        # The first line of a pull has the tag for an id.
        if not line.id or line.status.startswith("Pulling from"):
            self.word = line.status or self.word
            return
        layer = self.layers.setdefault(line.id, LayerProgress(line.id))
        layer.status = line.status
        if line.total:
            layer.current, layer.total = min(line.current, line.total), line.total
        if layer.ended:
            layer.total = layer.total or 1
            layer.current = layer.total

    def end(self, failure: str = "") -> None:
        self.state = FAILED if failure else DONE
        self.word = failure or self.word


class LayerTransfers:
    """Those of one dashboard."""

    def __init__(self, engine: Client, tasks: Tasks, live: Live) -> None:
        self._engine = engine
        self._tasks = tasks
        self._live = live
        self._all: dict[str, Transfer] = {}
        # Those that pages will hear of in a moment.
        self._due: dict[str, asyncio.TimerHandle] = {}

    def start(self, kind: str, name: str, then: Callable[[], Awaitable[str]] | None = None) -> Transfer:
        """Begin one; Conflict where too many are under way. When it has ended well `then` is done, its word told."""
        for known in self._all.values():
            if (known.kind, known.name, known.state, known.then, then) == (kind, name, RUNNING, None, None):
                return known
        if sum(each.state == RUNNING for each in self._all.values()) >= _MOST_RUNNING:
            raise Conflict(f"{_MOST_RUNNING} pulls and pushes are under way: wait until one has ended")
        ended = [each.id for each in self._all.values() if each.state != RUNNING]
        for identifier in ended[: max(0, len(self._all) + 1 - _MOST)]:
            del self._all[identifier]
        transfer = Transfer(secrets.token_hex(6), kind, name, then=then)
        self._all[transfer.id] = transfer
        self._tasks.spawn(self._run(transfer), f"{kind} {name} for the dashboard")
        return transfer

    def get(self, identifier: str) -> Transfer:
        if identifier not in self._all:
            raise NotFound(f"no pull or push {identifier} is known: this dashboard has forgotten it")
        return self._all[identifier]

    @property
    def recent(self) -> list[Transfer]:
        """The newest first."""
        return list(reversed(self._all.values()))

    async def _run(self, transfer: Transfer) -> None:
        images = self._engine.images
        failure = ""
        try:
            lines = images.pulling(transfer.name) if transfer.kind == PULL else images.pushing(transfer.name)
            async for line in lines:
                transfer.take(line)
                self._tell_soon(transfer)
            if transfer.then is not None:
                transfer.word = await transfer.then()
        except HuskError as error:
            failure = error.message
        except OSError as error:
            failure = str(error)
        except Exception as error:  # a fault of ours, or an engine that lies: a place is free again all the same
            failure = "the dashboard has a fault: the log of the process that serves it says more"
            log.error("the %s of %s failed", transfer.kind, transfer.name, exc_info=error)
        transfer.end(failure)
        self._tell(transfer)

    def _tell_soon(self, transfer: Transfer) -> None:
        """Within a moment, and once for all that happens in it."""
        if transfer.id not in self._due:
            self._due[transfer.id] = asyncio.get_running_loop().call_later(_PAUSE, self._tell, transfer)

    def _tell(self, transfer: Transfer) -> None:
        if due := self._due.pop(transfer.id, None):
            due.cancel()
        self._live.tell(("change", {"type": "transfer", "action": transfer.state, "id": transfer.id}))
