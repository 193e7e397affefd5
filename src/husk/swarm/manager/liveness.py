"""The nodes that live: each manager writes down whom it hears, and the leader marks the nodes by that.

`HeartbeatJournal` is every manager's: a record `alive` for itself and for each node whose heartbeats come to it, under
its one lease. When a node is silent its record is removed, when the manager dies all of them go with its lease.
`NodeMarker` is the leader's: it watches these records and brings the nodes' own up to them.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm.model.heartbeats import MISSED, PERIOD, Heartbeats, spared_for, verdicts
from husk.swarm.model.node import Node, NodeState
from husk.swarm.model.services import SECOND
from husk.swarm.state.cluster_store import ClusterStore, Lease
from husk.swarm.state.transactions import Delete, News, Put, Stale, StoreUnavailable
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

ALIVE = "alive"
# In seconds: when the store cannot be asked; between two looks at the nodes when nothing is heard.
PAUSE, LOOK = 1.0, 2.0
# Between two times that a node which comes anew is written down.
AGAIN = SECOND
# Nodes in one transaction; etcd takes 128 steps.
AT_ONCE = 100
Period = Callable[[], int]


def usual() -> int:
    return PERIOD


class HeartbeatJournal:
    def __init__(
        self,
        store: ClusterStore,
        node_id: str,
        clock: Callable[[], int] = time.monotonic_ns,
        period: Period = usual,
        told: Callable[[str], str | None] = lambda node_id: None,
        pause: float = PAUSE,
        look: float = LOOK,
    ) -> None:
        """`node_id` is the manager's own; `period` says in which time nodes are to be heard, and may change. `told`
        says which manager hears a node by its record: empty for none, None while that is not known."""
        self._pause, self._longest_wait = pause, look
        self._told = told
        self._period = period
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._beats = Heartbeats()
        self._lease: Lease | None = None
        self._lease_seconds = 0
        # Those before it, until all is written under this one.
        self._former: list[Lease] = []
        # Those that may have a record under the lease; those of them that are to be written once more.
        self._written: set[str] = set()
        self._again: set[str] = set()
        # When those were written that were so a moment ago.
        self._fresh: dict[str, int] = {}
        # Those that were written under another lease of ours, and not yet under this one.
        self._moving: set[str] = set()
        self._tasks = Tasks()
        self._changed = asyncio.Event()

    def start(self) -> None:
        self._tasks.spawn(self._run(), "swarm: who lives")

    async def close(self, *, for_good: bool = False) -> None:
        """Hear no more. The records stay for as long as the lease does, so that a daemon which starts again at once was
        never away; `for_good` they go now."""
        await self._tasks.cancel_all()
        for lease in (*self._former, self._lease):
            if lease is not None and not lease.lost:
                if for_good:
                    with contextlib.suppress(HuskError):
                        await lease.close()
                else:
                    lease.abandon()

    def beat(self, node_id: str) -> int:
        """A node lives; in which time it should say so again."""
        period = self._period()
        if self._beats.beat(node_id, self._clock(), period):
            self._changed.set()
        elif self._is_replaced(node_id):
            self._again.add(node_id)
            self._changed.set()
        return period

    def arrive(self, node_id: str) -> None:
        """A node asks for its tasks here from now on. It is written down anew: what we wrote when it was here last may
        have been replaced by another manager, which removes that when it hears no more of the node. One that comes and
        goes all the time is written once in a while, but always after it came."""
        self._beats.beat(node_id, self._clock(), self._period())
        self._again.add(node_id)
        self._changed.set()

    def forget(self, node_id: str) -> None:
        """A node has left."""
        self._beats.forget(node_id)
        self._changed.set()

    def _is_replaced(self, node_id: str) -> bool:
        """Tell if our record of a node is gone, or another manager's. What that manager wrote late would go when it
        hears no more of the node, though the node is here. What we have just written the watch may not tell yet."""
        if node_id not in self._written or node_id in self._again:
            return False
        written = self._fresh.get(node_id)
        fresh = written is not None and self._clock() < written + AGAIN
        return not fresh and self._told(node_id) not in (None, self._node_id)

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except HuskError as error:
                log.info("who lives cannot be written down: %s", error.message)
                await asyncio.sleep(self._pause)
            except Exception:  # a fault of ours: nodes would be lost
                log.exception("who lives could not be written down, and is tried again")
                await asyncio.sleep(self._pause)

    async def _look(self) -> None:
        self._changed.clear()
        lease = await self._held()
        self._beats.silent(self._clock())
        wanted = {self._node_id, *self._beats.known}
        if self._is_replaced(self._node_id):
            # By one that heard us while we were a worker.
            self._again.add(self._node_id)
        self._again &= wanted
        self._moving &= wanted
        now = self._clock()
        self._fresh = {node_id: when for node_id, when in self._fresh.items() if now < when + AGAIN}
        due: list[str] = []
        for node_id in (wanted - self._written) | (self._again - self._fresh.keys()):
            if node_id in self._moving and not await self._is_ours(node_id):
                continue
            due.append(node_id)
        for some in _parts(due):
            await self._write(some, lease)
        for node_id in self._written - wanted:
            await self._remove(node_id)
            self._written.discard(node_id)
        while self._former:
            # All are under the new one by now: nobody was away.
            await self._former[-1].close()
            self._former.pop()
        await self._wait(lease)

    async def _write(self, node_ids: Sequence[str], lease: Lease) -> None:
        """Hundreds may come at once, when another manager has gone: they are written down together."""
        self._written.update(node_ids)
        self._again.difference_update(node_ids)
        self._fresh |= dict.fromkeys(node_ids, self._clock())
        body = _body(self._node_id)
        try:
            await self._store.commit(*(Put(ALIVE, node_id, body, lease=lease.id) for node_id in node_ids))
        except BaseException:
            # They may be there all the same.
            self._again.update(node_ids)
            for node_id in node_ids:
                self._fresh.pop(node_id, None)
            raise
        self._fresh |= dict.fromkeys(node_ids, self._clock())

    async def _held(self) -> Lease:
        """The lease to write under: another one when nodes are to be heard in another time."""
        former, seconds = self._lease, -(-self._period() * MISSED // SECOND)
        if former is not None and not former.lost and seconds == self._lease_seconds:
            return former
        self._lease, self._lease_seconds = await self._store.lease(seconds), seconds
        self._moving |= self._written - {self._node_id}
        self._written = set()
        if former is not None:
            self._former.append(former)
        return self._lease

    async def _is_ours(self, node_id: str) -> bool:
        """Tell if no other manager has heard a node since we did. If one has, it is not ours to write down, and to
        remove when its time here is over, until it says here that it lives."""
        self._moving.discard(node_id)
        if node_id in self._again:
            return True
        record = await self._store.get(ALIVE, node_id)
        if record is None or record.lease in [lease.id for lease in self._former]:
            return True
        self._beats.forget(node_id)
        return False

    async def _remove(self, node_id: str) -> None:
        """Unless another manager hears it now."""
        record = await self._store.get(ALIVE, node_id)
        if record is not None and self._lease is not None and record.lease == self._lease.id:
            with contextlib.suppress(Stale):
                await self._store.commit(Delete(ALIVE, node_id, record.version))

    async def _wait(self, lease: Lease) -> None:
        """Until there may be something to write."""
        alarm = self._beats.next_alarm()
        # The period may be another one.
        timeout = self._longest_wait
        if alarm is not None:
            timeout = min(timeout, max(0.0, (alarm - self._clock()) / SECOND))
        if self._again:
            timeout = min(timeout, AGAIN / SECOND)
        waiting = [
            self._tasks.spawn(_until(self._changed), "news of nodes"),
            self._tasks.spawn(lease.wait_lost(), "the lease of who lives"),
        ]
        try:
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()


class NodeStates(Protocol):
    """The writer of the state of nodes (`Nodes`)."""

    async def mark(self, id: str, state: NodeState, message: str = "") -> None: ...


class NodeMarker:
    def __init__(
        self,
        store: ClusterStore,
        nodes: Callable[[], Iterable[Node]],
        marker: NodeStates,
        leading: Callable[[], bool],
        marked: Callable[[], None],
        clock: Callable[[], int] = time.monotonic_ns,
        period: Period = usual,
        pause: float = PAUSE,
        look: float = LOOK,
    ) -> None:
        """Only who is `leading` marks. `marked` hears that a node is another one now."""
        self._pause, self._longest_wait = pause, look
        self._leading = leading
        self._period = period
        self._store = store
        self._nodes = nodes
        self._marker = marker
        self._marked = marked
        self._clock = clock
        # Who hears each node; and until when those are spared whose manager has gone.
        self._alive: dict[str, str] = {}
        self._spared: dict[str, int] = {}
        self._since: int | None = None
        # Nodes that could not be marked last, and why.
        self._unmarked: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._tasks = Tasks()

    def start(self) -> None:
        self._tasks.spawn(self._watch(), "swarm: who lives, as all know")
        self._tasks.spawn(self._run(), "swarm: mark nodes")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    def heard_by(self, node_id: str) -> str | None:
        """The manager that hears a node, as all know it; empty for none, None while that is not known."""
        return None if self._since is None else self._alive.get(node_id, "")

    async def _watch(self) -> None:
        while True:
            try:
                async for news in self._store.watch(ALIVE):
                    self._hear(news)
            except HuskError as error:
                # Nobody is lost because we cannot look.
                self._since = None
                log.info("who lives cannot be read: %s", error.message)
            except Exception:  # a fault of ours: nobody is lost by that, either
                self._since = None
                log.exception("who lives could not be read, and is tried again")
            await asyncio.sleep(self._pause)

    def _hear(self, news: News) -> None:
        before = self._alive
        if news.all:
            self._since = self._clock() if self._since is None else self._since
        gone = {key for _, key in news.gone}
        told = {record.key: _manager_in(record.body) for record in news.records}
        self._alive = told if news.all else {key: by for key, by in (before | told).items() if key not in gone}
        for node_id, manager in before.items():
            if node_id not in self._alive and manager not in (node_id, *self._alive):
                self._spared[node_id] = self._clock() + spared_for(self._period())
        self._changed.set()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            watched_for = -1 if self._since is None else self._clock() - self._since
            if watched_for >= 0:
                try:
                    await self._mark(watched_for)
                except HuskError as error:
                    log.info("nodes cannot be marked: %s", error.message)
                    await asyncio.sleep(self._pause)
                    self._changed.set()
                except Exception:  # a fault of ours: a lost node's tasks would never run elsewhere
                    log.exception("nodes could not be marked, and are looked at again")
                    await asyncio.sleep(self._pause)
            with contextlib.suppress(TimeoutError):
                # Who leads may be another one, too, and what came to an end before is for the new one to find.
                async with asyncio.timeout(self._longest_wait):
                    await self._changed.wait()

    async def _mark(self, watched_for: int) -> None:
        period, nodes = self._period(), list(self._nodes())
        self._spared = {node_id: end for node_id, end in self._spared.items() if end > self._clock()}
        found = verdicts(nodes, self._alive, watched_for, period * MISSED, self._spared) if self._leading() else []
        unmarked: dict[str, str] = {}
        for verdict in found:
            try:
                await self._marker.mark(verdict.node_id, verdict.state, verdict.message)
            except StoreUnavailable:
                raise
            except HuskError as error:  # of one node, which keeps no other from it
                unmarked[verdict.node_id] = error.message
                if self._unmarked.get(verdict.node_id) != error.message:
                    log.warning("node %s is %s, which cannot be written: %s", *verdict[:2], error.message)
        self._unmarked = unmarked
        if len(found) > len(unmarked):
            self._marked()


class Liveness:
    """Both, for a manager that is not alone."""

    def __init__(
        self,
        store: ClusterStore,
        marking: NodeMarker,
        period: Period = usual,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._store = store
        self._clock = clock
        self._period = period
        self._marking = marking
        self._hearing: HeartbeatJournal | None = None

    def start(self, node_id: str) -> None:
        """Nothing is done where it is started."""
        if self._hearing is None:
            self._hearing = HeartbeatJournal(
                self._store, node_id, clock=self._clock, period=self._period, told=self._marking.heard_by
            )
            self._hearing.start()
            self._marking.start()

    def beat(self, node_id: str) -> int:
        """A node lives; in which time it should say so again."""
        assert self._hearing is not None, "it is started"
        return self._hearing.beat(node_id)

    def arrive(self, node_id: str) -> None:
        """A node asks for its tasks here from now on."""
        assert self._hearing is not None, "it is started"
        self._hearing.arrive(node_id)

    def forget(self, node_id: str) -> None:
        """A node has left."""
        if self._hearing is not None:
            self._hearing.forget(node_id)

    async def close(self, *, for_good: bool = False) -> None:
        if self._hearing is not None:
            hearing, self._hearing = self._hearing, None
            await self._marking.close()
            await hearing.close(for_good=for_good)


class _Heard(msgspec.Struct):
    manager: str = ""


def _parts(node_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(node_ids), AT_ONCE):
        yield node_ids[begin : begin + AT_ONCE]


def _body(manager: str) -> bytes:
    return msgspec.json.encode(_Heard(manager))


def _manager_in(body: bytes) -> str:
    try:
        return decode(body, _Heard).manager
    except MalformedDocument:
        return ""


async def _until(event: asyncio.Event) -> None:
    await event.wait()
