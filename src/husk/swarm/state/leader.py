"""The choice of the manager that plans: one at a time, by a lease on the record `leader`.

Each manager holds a lease of a few seconds. Who finds no record `leader` writes one under its lease, and leads until
the lease is lost or given up. Each write of the planner carries `checks`: that record with the version which made it
leader. So one that has slept and does not know that another leads by now changes nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Protocol

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm.state.cluster_store import ClusterStore, Lease
from husk.swarm.state.transactions import NEW, Check, News, Put, Stale
from husk.text.documents import MalformedDocument, decode

log = logging.getLogger(__name__)

LEADER, PLANNER = "leader", "planner"
# How long a manager is believed to be there when nothing is heard of it, in seconds: a whole number for etcd.
# When a leader dies with the etcd member that led, its record goes after the members' election (3 s at most), half of
# that again, and this: with 10 s in all another one is to lead.
LEASE = 4
# When to try again: after an error, and where no news of the leader's end came. A try is a write on all members' disks;
# that a member hangs is seen by renewals of the lease, not by this.
PAUSE, LOOK = 1.0, 10.0
LOST = "the cluster store does not answer: this manager's lease was lost"
# No record has this version: one that does not lead must not plan.
_NEVER = 1 << 62


class Leadership(Protocol):
    @property
    def leading(self) -> bool:
        """True while this manager plans."""
        ...

    @property
    def leader(self) -> str:
        """The id of the node that does; empty while nobody is known."""
        ...

    @property
    def checks(self) -> tuple[Check, ...]:
        """The conditions that each write of the planner must carry."""
        ...


class SoleLeadership:
    """One host: there is nobody else. Who leads is whoever asks."""

    leading = True
    leader = ""
    checks: tuple[Check, ...] = ()


class NoLeadership:
    """A host that is no manager, or not yet."""

    leading = False
    leader = ""
    checks: tuple[Check, ...] = (Check(LEADER, PLANNER, _NEVER),)


class Election:
    """Takes part for one manager; `changed` is called when it begins or ceases to lead."""

    def __init__(self, store: ClusterStore, node_id: str, changed: Callable[[], None], pause: float = PAUSE) -> None:
        self._pause = pause
        self._store = store
        self._node_id = node_id
        self._changed = changed
        self._tasks = Tasks()
        self._lease: Lease | None = None
        self._version = NEW
        self._vacant = asyncio.Event()
        self.leader = ""
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """The reason why the store could not be asked last; empty while the lease holds. A lost lease is told at once,
        even in a call to a silent store: nodes that are heard here have to find another manager in time."""
        lease = self._lease  # once: it may be asked in any thread
        return LOST if lease is not None and lease.lost else self._trouble

    @property
    def leading(self) -> bool:
        return self._version != NEW and self._lease is not None and not self._lease.lost

    @property
    def checks(self) -> tuple[Check, ...]:
        return (Check(LEADER, PLANNER, self._version or _NEVER),)

    def start(self) -> None:
        self._tasks.spawn(self._run(), "swarm: who leads")

    async def close(self) -> None:
        """Give it up at once, so that another can lead."""
        await self._tasks.cancel_all()

    def notice(self, news: News) -> None:
        """Hear from the store's news which manager leads now, or that nobody does."""
        told = [record for record in news.records if record.name == (LEADER, PLANNER)]
        if told:
            self.leader = _node_in(told[-1].body)
        elif news.all or (LEADER, PLANNER) in news.gone:
            self.leader = ""
            self._vacant.set()

    async def _run(self) -> None:
        while True:
            try:
                async with await self._store.lease(LEASE) as lease:
                    self._lease = lease
                    await self._hold(lease)
                    self._trouble = LOST
            except HuskError as error:
                self._trouble = error.message
                log.warning("this manager cannot be heard by the swarm: %s", error.message)
            except Exception as error:  # a fault of ours: without a leader nothing is planned
                self._trouble = str(error)
                log.exception("this manager could not take part in the election, and tries again")
            finally:
                self._lease, self._version = None, NEW
                self._changed()
            await asyncio.sleep(self._pause)

    async def _hold(self, lease: Lease) -> None:
        """Lead when nobody else does, until the lease is lost."""
        self._trouble = ""
        self._changed()
        self._tasks.spawn(self._watch(lease), "swarm: end of the lease")
        while not lease.lost:
            self._vacant.clear()
            try:
                self._version = await self._store.commit(
                    Put(LEADER, PLANNER, _body(self._node_id), version=NEW, lease=lease.id)
                )
            except Stale:
                if (found := await self._store.get(LEADER, PLANNER)) is None:
                    continue
                self.leader = _node_in(found.body)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await self._vacant.wait()
                continue
            self.leader = self._node_id
            log.info("this manager plans for the swarm now")
            self._changed()
            await lease.wait_lost()

    async def _watch(self, lease: Lease) -> None:
        await lease.wait_lost()
        self._vacant.set()


def _body(node_id: str) -> bytes:
    return msgspec.json.encode({"node_id": node_id})


class _Holder(msgspec.Struct):
    node_id: str = ""


def _node_in(body: bytes) -> str:
    try:
        return decode(body, _Holder).node_id
    except MalformedDocument:
        return ""
