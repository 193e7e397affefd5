"""This host as a manager: how it takes its place among the others, and how it lays that down.

A manager has the swarm's records: those in its own SQLite file, in an etcd that exists (`--cluster-store`), or in the
swarm's own etcd (`etcd_membership`), where they come when there is to be a second manager. What is begun here is ended,
whoever leaves meanwhile: half a manager is none.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection

import msgspec

from husk.aio.tasks import Tasks
from husk.config import ClusterStoreConfig
from husk.errors import Unavailable
from husk.swarm import ca, port
from husk.swarm.ca.identity import Identity
from husk.swarm.manager.parts import ManagerParts
from husk.swarm.manager.upkeep import ManagerUpkeep
from husk.swarm.membership.etcd_membership import GIVEN_STORE
from husk.swarm.membership.joining import ENTRANCE, SwarmEntrance
from husk.swarm.membership.moving import OpenStore, everything, follow, move
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.node import Node, manager_at
from husk.swarm.model.swarm import Membership
from husk.swarm.network.parts import NetworkParts
from husk.swarm.node.parts import NodeParts
from husk.swarm.signals import Signal
from husk.swarm.state.open_store import open_store
from husk.swarm.state.parts import StateParts
from husk.swarm.state.shared import Shared
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import News

log = logging.getLogger(__name__)

Noted = Callable[[], Awaitable[None]]

# In seconds: how long a store may take until it answers, and how often it is looked at meanwhile.
ANSWER, LOOK = 20.0, 0.1


class ManagerRole:
    def __init__(
        self,
        state: StateParts,
        membership: MembershipParts,
        network: NetworkParts,
        node: NodeParts,
        manager: ManagerParts,
        entrance: SwarmEntrance = ENTRANCE,
        opener: OpenStore = open_store,
    ) -> None:
        """`entrance` asks other managers, `opener` opens the store that they share."""
        self._entrance = entrance
        self._opener = opener
        self._store = state.records
        self._sealer = state.sealer
        self._host = state.host
        # Where hosts share the store that the records are in.
        self.shared = state.shared
        self._cluster = membership.cluster
        self._certificates = membership.certificates
        self.etcd_membership = membership.etcd_membership
        self._sharing = network.sharing
        self._networks = network.networks
        self._agent = node.agent
        self._reconciler = manager.reconciler
        self._listener = manager.listener
        self._workers = manager.workers
        # The swarm wants this host to be a worker.
        self.demoted = Signal[[]]()
        # Held while anything declared changes.
        self.changing = asyncio.Lock()
        self._upkeep = ManagerUpkeep(
            self._store, self._cluster, self.etcd_membership, self.demoted.emit, self._listener.open
        )
        self._beginning = asyncio.Lock()
        # What is cut off by nobody.
        self._finishing = Tasks()
        # A member of etcd is on its way out, of which this host's record says nothing any more.
        self._dropping = False
        manager.several.subscribe(self.several)
        self._store.woken.subscribe(self._woken)

    def _woken(self, service_ids: Collection[str]) -> None:
        if not service_ids:
            self._upkeep.wake()

    async def started(self) -> None:
        """Go on as a manager: the swarm or its node has changed."""
        self.take_part()
        self._listener.open()
        if self._store.shared or len(self._store.nodes) > 1:
            self._workers.expect()
        self._workers.opened()
        await self._networks.make_ingress()
        self._reconciler.wake()
        self._agent.wake_all()

    def take_part(self) -> None:
        """As a manager that shares a store; nothing is done where it does not."""
        if self.shared is not None and self._cluster.active:
            self.shared.take_part(self._cluster.node_id)
            self._upkeep.start()

    async def close(self) -> None:
        await self._finishing.join()
        await self._upkeep.close()
        if self.shared is not None:
            await self.shared.close()
        await self.etcd_membership.close()

    # --- its place among others

    async def enter(
        self, managers: "port.managers.Managers", identity: Identity
    ) -> tuple["port.enter.ManagerSecrets", bytes]:
        """Get from the managers what they share, and the key of the certificate for etcd that is among it."""
        key, request = await asyncio.to_thread(ca.authority.new_request)
        entered = await self._entrance.enter(managers, identity, request)
        if self.shared is None:
            if not entered.members:
                raise Unavailable(GIVEN_STORE)
            await self.etcd_membership.check(entered.address)
        return entered, key

    async def take_office(
        self, membership: Membership, identity: Identity, entered: "port.enter.ManagerSecrets", key: bytes, noted: Noted
    ) -> None:
        """Become a manager with a manager's certificate. Where it fails nothing is left of it but what `noted` writes
        down in place of the membership, the certificate and the keys.

        A daemon that dies before the next one would find the records leaves a worker with all that it has (one that
        joins is in no swarm then), and one that dies after that leaves a manager which takes what is prepared."""
        await self._certificates.prepare("manager", identity, (entered.key, entered.unlock_key))
        place = msgspec.structs.replace(membership, advertise_address=entered.address)
        if self.shared is not None:
            await self._cluster.note(place)
            await self._take_keys(entered)
            self._cluster.assume(place)
        else:
            if self._cluster.worker is not None:
                self._cluster.assume(place)
            else:
                await self._cluster.enrol(place)
            self.shared = await self._bring_member(membership.node_id, entered, key, noted)
        try:
            if not self.etcd_membership.here:
                self._sharing.switched(await everything(self._store.store))
            await self._store.refresh("node", membership.node_id)
            await self._store.amend(self._cluster.node, self._ready)
            await self._cluster.describe_self()
            await self.started()
        except BaseException:
            await self._finishing.to_its_end(self._resign(noted), "swarm: undo a manager's place")
            raise

    async def _resign(self, noted: Noted) -> None:
        await self._workers.close()
        await self._listener.close()
        await self.lay_down(noted)

    def _ready(self, node: Node) -> Node:
        """It can be given tasks, before the manager that plans has noticed that it lives."""
        ready = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, state="ready"))
        return self.etcd_membership.note_port(ready) if self.etcd_membership.here else ready

    async def _bring_member(self, node: str, entered: "port.enter.ManagerSecrets", key: bytes, noted: Noted) -> Shared:
        try:
            where = await self.etcd_membership.join(node, entered, key)
            # Before there are records that they open.
            await self._take_keys(entered)
            return await follow(self._store, where, self._sharing.switched, self._opener)
        except BaseException:
            undone = self.etcd_membership.withdraw(entered.members, noted)
            await self._finishing.to_its_end(undone, "swarm: undo a member of etcd")
            raise

    async def _take_keys(self, entered: "port.enter.ManagerSecrets") -> None:
        """Those that were prepared, when the next daemon would take them, too."""
        await self._certificates.succeed("manager")
        if self._sealer.locked:
            await asyncio.to_thread(self._sealer.unlock, entered.unlock_key)

    # --- more than one manager

    async def several(self) -> None:
        """See that there can be other managers: bring the records into an etcd of our own, where they are in SQLite."""
        async with self._beginning:
            if self.shared is not None:
                return
            try:
                where = await self.etcd_membership.begin()
                await self.move_to(where, {})
            except BaseException:
                if not self.etcd_membership.here:  # otherwise the records are there
                    await self._finishing.to_its_end(self.etcd_membership.drop(), "swarm: undo an etcd of its own")
                raise
            log.info("the swarm's records are in an etcd of its own now")

    async def move_to(self, where: ClusterStoreConfig, others: dict[str, str] | None = None) -> None:
        """Bring the swarm's records into a store that others can share; nothing is done where they are in one."""
        async with self.changing:
            _ = self._cluster.swarm
            if self.shared is None:
                # Whoever asked for it may leave meanwhile.
                await self._finishing.to_its_end(self._move(where, others), "swarm: records for several managers")

    async def _move(self, where: ClusterStoreConfig, others: dict[str, str] | None) -> None:
        self.shared = await move(self._store, self._cluster, where, others, self._sharing.switched, self._opener)
        # Who lives is written there from now on.
        await self._workers.close()
        self._workers.expect()
        self._upkeep.start()

    async def lay_down(self, noted: Noted | None = None, *, heard: bool = True, forced: bool = True) -> None:
        """This host is no manager any more: its member of the swarm's own etcd goes, and it is on its own store. Others
        are told of it, if they can be `heard`; where they keep the member it stays, unless it is
        `forced`. `noted` writes down what this host is now, before anything is deleted. Where this fails, call it
        again."""
        await self._upkeep.close()
        if (shared := self.shared) is None:
            return
        await shared.part()
        self._dropping |= self.etcd_membership.here
        if not self._dropping:
            self._sharing.end()
            return
        if heard:
            await self.etcd_membership.depart(forced=forced)
        await self.etcd_membership.halt()
        await (noted or self._cluster.note_alone)()
        await self.etcd_membership.drop()
        await shared.close()
        self.shared, self._dropping = None, False
        self._sharing.end()
        self._store.alone(SqliteStore(self._host))

    @property
    def may_stay(self) -> bool:
        """True if a manager that steps down still has all that it needs to stay one."""
        return self.shared is not None and self._cluster.worker is None and self.etcd_membership.runs

    async def stay(self) -> None:
        """Stay a manager, though it was about to step down."""
        self._dropping = False
        await self.started()

    def share_networks(self, there: News | None) -> None:
        """The store holds these records from now on; None: nothing any more."""
        if there is not None:
            self._sharing.switched(there)
        elif self.shared is None:
            self._sharing.end()

    # --- most managers are lost

    async def start_over(self) -> None:
        """Go on as the only manager, with the records that this host's member of etcd has."""
        async with self.changing:
            await self.etcd_membership.start_alone()
            own = self.etcd_membership.own
            self.etcd_membership.know([own])
            for _ in range(int(ANSWER / LOOK)):
                if self._cluster.active and not self._cluster.away:
                    break
                await asyncio.sleep(LOOK)
            # Ours first: it may have been about to be a worker, and a swarm has a manager at each moment.
            await self._store.amend(self._store.nodes[self._cluster.node_id], _only)
            for node in [node for node in self._store.nodes.values() if node.id != self._cluster.node_id]:
                if node.is_manager:
                    await self._store.amend(node, _lost)
            await self._cluster.note_store(self.etcd_membership.where([own]), {})


def _only(node: Node) -> Node:
    """The manager that is left, whatever else it was to be."""
    spec = msgspec.structs.replace(node.spec, role="manager")
    return msgspec.structs.replace(node, spec=spec, manager=node.manager or manager_at(node.status.addr))


def _lost(node: Node) -> Node:
    """A manager that is none any more, and has to join anew."""
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, role="worker"), manager=None)
