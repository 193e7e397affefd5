"""The work of a manager beside its tasks when the swarm's records change: on its lock, its certificate, its store's
members, its own place.

Each look is cheap, and does something only where what it goes by has changed since the last.
"""

import asyncio
import logging
from collections.abc import Callable

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm.membership.cluster import Cluster
from husk.swarm.membership.etcd_membership import EtcdMembership
from husk.swarm.state.records import SwarmRecords

log = logging.getLogger(__name__)

# Before a look that failed is repeated, in seconds.
PAUSE = 2.0


class ManagerUpkeep:
    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        etcd_membership: EtcdMembership,
        demoted: Callable[[], None],
        trust: Callable[[], None],
        pause: float = PAUSE,
    ) -> None:
        """`demoted` hears that the swarm wants this node to be a worker; more than once, while it does. `trust` hears
        that another manager may have begun to replace the swarm's root, or come further with it."""
        self._pause = pause
        self._trust = trust
        self._signed: object = None
        self._store = store
        self._cluster = cluster
        self._etcd_membership = etcd_membership
        self._demoted = demoted
        self._woken = asyncio.Event()
        self._tasks = Tasks()
        # What was seen at the last look: of the swarm's record; who the managers are, and whether we lead.
        self._form: object = None
        self._seen: object = None
        self._running = False
        etcd_membership.ended.subscribe(self.wake)

    def start(self) -> None:
        """Nothing is done where it runs."""
        if not self._running:
            self._running = True
            self._form = self._seen = self._signed = None
            self._tasks.spawn(self._run(), "swarm: this manager's place")
        self.wake()

    async def close(self) -> None:
        self._running = False
        await self._tasks.cancel_all()

    def wake(self) -> None:
        self._woken.set()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self.look()
            except Exception as error:  # a full disk, too: there is nobody else who would try again
                known = isinstance(error, HuskError | OSError)
                told = "this manager could not follow the swarm, and tries again: %s"
                log.warning(told, error, exc_info=None if known else error)
                await asyncio.sleep(self._pause)
                self.wake()

    async def look(self) -> None:
        failures = []
        # What the disk refuses keeps nobody from another place in the swarm, nor the other way round.
        for part in (self._follow_lock, self._follow_place):
            try:
                if self._cluster.active:
                    await part()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def _follow_lock(self) -> None:
        if (form := (self._cluster.record.version, self._cluster.locked)) != self._form:
            try:
                # While the key that it is sealed with is on the disk: a crash between leaves no open one behind a lock.
                await self._etcd_membership.follow_lock()
            finally:
                await self._cluster.follow_lock()
            self._form = form

    async def _follow_place(self) -> None:
        if (signed := self._who_signed()) != self._signed:
            self._signed = signed
            self._trust()
        if self._etcd_membership.removed:
            # As a demoted manager's is, and that may not be known here yet.
            await self._store.refresh("node", self._cluster.node_id)
        if not self._cluster.node.is_manager:
            self._demoted()
        elif self._etcd_membership.here:
            await self._members()

    def _who_signed(self) -> object:
        """The swarm's roots; and while one is replaced, which of them have signed for nodes."""
        if (trust := self._cluster.record.trust) is None or trust.next is None:
            return trust and trust.root.key_id
        issuers = sorted((node.id, node.issuer) for node in self._store.nodes.values())
        return trust.root.key_id, trust.next.key_id, issuers

    async def _members(self) -> None:
        endpoints = self._etcd_membership.endpoints()
        leading = self._store.leadership.leading
        if self._etcd_membership.removed:
            self._seen = None
            await self._etcd_membership.bring_back()
        if self._seen == (endpoints, leading):
            return
        self._etcd_membership.know(endpoints)
        if self._seen is None:
            await self._etcd_membership.settle()
        if leading:
            await self._etcd_membership.tidy()
        self._seen = (endpoints, leading)
