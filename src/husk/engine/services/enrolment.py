"""This host's place in a swarm, and how it gets another one: it joins, is promoted, is demoted, leaves.

A worker has a certificate and the addresses of managers. A manager has the swarm's records: those in its own SQLite
file, in an etcd that exists (`--cluster-store`), or in the swarm's own etcd (`council`). Tasks run on meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from husk.cluster.endpoints import Endpoint, read_endpoint
from husk.cluster.records import News
from husk.config import ClusterStoreConfig
from husk.engine.services import joining
from husk.engine.services.attending import Attending
from husk.engine.services.certificates import Certificates
from husk.engine.services.cluster import Cluster
from husk.engine.services.cluster_store import ClusterStore
from husk.engine.services.council import GIVEN_STORE, Council
from husk.engine.services.gateway import Gateway
from husk.engine.services.joining import Wish
from husk.engine.services.moving import everything, follow, move
from husk.engine.services.network_sharing import NetworkSharing
from husk.engine.services.node import MANAGER_PORT, Node
from husk.engine.services.records import SwarmRecords
from husk.engine.services.shared import Shared
from husk.engine.services.swarm import KEY, Membership, Standing
from husk.engine.services.workers import Workers
from husk.errors import HuskError, Unavailable
from husk.storage.secrets.sealing import Sealer
from husk.tasks import Tasks

if TYPE_CHECKING:
    from husk.cluster.port.enter import Entered
    from husk.cluster.port.join import Joined
    from husk.cluster.port.managers import Managers
    from husk.cluster.trust.identity import Identity
    from husk.engine.services.worker import Worker

log = logging.getLogger(__name__)

Noted = Callable[[], Awaitable[None]]

# In seconds: between two tries to change one's place; how long a store may take until it answers, and how often it is
# looked at meanwhile.
AGAIN, ANSWER, LOOK = 5.0, 20.0, 0.1


class Enrolment:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: Cluster,
        certificates: Certificates,
        sealer: Sealer,
        council: Council,
        gateway: Gateway,
        workers: Workers,
        shared: Shared | None,
        sharing: NetworkSharing,
        embedded: Callable[[], ClusterStore],
        worker: Callable[[Membership], Awaitable["Worker"]],
        woken: Callable[..., None],
        remove_tasks: Callable[[], Awaitable[list[HuskError]]],
    ) -> None:
        """`shared` where the daemon has a store that hosts share from its start on, `embedded` is the host's own.
        `worker` makes this host one, which is in a swarm already. `woken`: there may be something to plan.
        `remove_tasks` removes whatever tasks have on this host, and says why it could not."""
        self._remove_tasks = remove_tasks
        self._store = store
        self._cluster = cluster
        self._certificates = certificates
        self._sealer = sealer
        self.council = council
        self._gateway = gateway
        self._workers = workers
        self._sharing = sharing
        self._embedded = embedded
        self._make_worker = worker
        self._woken = woken
        self.shared = shared
        self.worker: Worker | None = None
        # Why this host cannot be the worker that it is to be.
        self.trouble = ""
        # Called when this host has become a manager.
        self.started: Callable[[], Awaitable[None]] = _nothing
        # Held while anything declared changes.
        self.changing = asyncio.Lock()
        self._attending = Attending(store, cluster, council, self.demoted, gateway.open)
        self._beginning = asyncio.Lock()
        # What is cut off by nobody, and what ends with the daemon.
        self._finishing, self._tasks = Tasks(), Tasks()
        self._moving: asyncio.Task[None] | None = None
        # A member of etcd is on its way out, of which this host's record says nothing any more.
        self._dropping = False
        # What a manager becomes that lays down its office: where that fails it is tried again from there.
        self._stepping: tuple[Membership, Identity] | None = None

    def woken(self, *service_ids: str) -> None:
        """Something is new in the records, or somebody else leads."""
        self._woken(*service_ids)
        if not service_ids:
            self._attending.wake()

    def take_part(self) -> None:
        """As a manager that shares a store; nothing is done where it does not."""
        if self.shared is not None and self._cluster.active:
            self.shared.take_part(self._cluster.node_id)
            self._attending.start()

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._finishing.join()
        await self._attending.close()
        if self.worker is not None:
            await self.worker.close()
        if self.shared is not None:
            await self.shared.close()
        await self.council.close()

    # --- a worker

    async def work(self, membership: Membership) -> None:
        self.worker = await self._make_worker(membership)
        self.trouble = ""
        self.worker.start()

    def standing(self) -> Standing | None:
        """Of this host in the swarm that it works for; None where it does not."""
        if (membership := self._cluster.place) is None:
            return None
        if self.worker is None:
            return Standing(membership.advertise_address, membership.known_managers, self.trouble)
        address = self.worker.address or membership.advertise_address
        return Standing(address, membership.known_managers, self.worker.trouble)

    async def leave_others(self) -> None:
        """Work for the swarm no longer."""
        if self.worker is not None:
            await self.worker.leave()
            self.worker = None
        elif failures := await self._remove_tasks():
            # One that could not work, be it for want of its certificate: what it ran goes all the same.
            raise failures[0]
        await self._certificates.forget()
        await self._cluster.part()

    # --- joining

    async def join(self, wish: Wish) -> None:
        async with self.changing:
            self._cluster.check_alone()
            self._cluster.joining = True
            try:
                await self._join(wish)
            finally:
                self._cluster.joining = False

    async def _join(self, wish: Wish) -> None:
        if self.shared is not None:
            # News may be on their way.
            await self._store.refresh("swarm", KEY)
            self._cluster.check_token(wish.token)
        joined = await joining.join(wish, self._cluster.description())
        if joined.holder.role == "manager":
            await self._join_as_manager(wish, joined)
            return
        membership = Membership(
            node_id=joined.holder.node,
            role="worker",
            managers=[str(endpoint) for endpoint in joined.managers],
            advertise_address=wish.advertise,
        )
        try:
            await self._certificates.keep(joined.identity)
            await self._cluster.enrol(membership)
            await self.work(membership)
        except BaseException:  # a client that leaves, too
            await self._undo(joined)
            raise

    async def _undo(self, joined: "Joined") -> None:
        """This host is in no swarm after all, however often its client leaves."""

        async def undone() -> None:
            if self.worker is not None:
                await self.worker.close()
                self.worker = None
            await self._certificates.forget()
            await self._cluster.part()
            await joining.withdraw(joined)

        await self._finishing.to_its_end(undone(), "swarm: undo a join")

    async def _join_as_manager(self, wish: Wish, joined: "Joined") -> None:
        from husk.cluster.port.managers import Managers

        remotes = [*joining.check(wish), *joined.managers]
        managers = Managers(list(dict.fromkeys(remotes)), joined.identity)
        membership = Membership(
            node_id=joined.holder.node, advertise_address=wish.advertise, listen_address=wish.own_listen
        )
        try:
            entered, key = await self._enter(managers, joined.identity)
            await self._take_office(membership, joined.identity, entered, key, self._cluster.note_alone)
        except BaseException:
            await self._undo(joined)
            raise
        finally:
            await managers.close()

    async def _enter(self, managers: "Managers", identity: "Identity") -> tuple["Entered", bytes]:
        """What managers share, and the key of the certificate for etcd that is among it."""
        from husk.cluster.port.enter import enter
        from husk.cluster.trust import authority

        key, request = await asyncio.to_thread(authority.new_request)
        entered = await enter(managers, identity, request)
        if self.shared is None:
            if not entered.members:
                raise Unavailable(GIVEN_STORE)
            await self.council.check(entered.address)
        return entered, key

    async def _take_office(
        self, membership: Membership, identity: "Identity", entered: "Entered", key: bytes, noted: Noted
    ) -> None:
        """Become a manager with a manager's certificate. Where it fails nothing is left of it but what `noted` writes
        down in place of the membership, the certificate and the keys."""
        await asyncio.to_thread(self._sealer.adopt, entered.key, entered.unlock_key)
        await self._certificates.keep(identity)
        await self._cluster.enrol(msgspec.structs.replace(membership, advertise_address=entered.address))
        if self.shared is None:
            self.shared = await self._bring_member(membership.node_id, entered, key, noted)
        try:
            if not self.council.here:
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
        await self._gateway.close()
        await self.lay_down(noted)

    def _ready(self, node: Node) -> None:
        """It can be given tasks, before the manager that plans has noticed that it lives."""
        node.status = msgspec.structs.replace(node.status, state="ready")
        if self.council.here:
            self.council.note_port(node)

    async def _bring_member(self, node: str, entered: "Entered", key: bytes, noted: Noted) -> Shared:
        try:
            where = await self.council.join(node, entered, key)
            return await follow(self._store, where, self.woken, self._sharing.switched)
        except BaseException:
            undone = self.council.withdraw(entered.members, noted)
            await self._finishing.to_its_end(undone, "swarm: undo a member of etcd")
            raise

    # --- more than one manager

    async def several(self) -> None:
        """See that there can be other managers: bring the records into an etcd of our own, where they are in SQLite."""
        async with self._beginning:
            if self.shared is not None:
                return
            try:
                where = await self.council.begin()
                await self.move_to(where, {})
            except BaseException:
                if not self.council.here:  # otherwise the records are there
                    await self._finishing.to_its_end(self.council.drop(), "swarm: undo an etcd of its own")
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
        self.shared = await move(self._store, self._cluster, where, self.woken, others, self._sharing.switched)
        # Who lives is written there from now on.
        await self._workers.close()
        self._workers.expect()
        self._attending.start()

    async def lay_down(self, noted: Noted | None = None, *, heard: bool = True) -> None:
        """This host is no manager any more: its member of the swarm's own etcd goes, and it is on its own store. Others
        are told of it, if they can be `heard`. `noted` writes down what this host is now, before anything is deleted.
        Where this fails, call it again."""
        await self._attending.close()
        if (shared := self.shared) is None:
            return
        await shared.part()
        self._dropping |= self.council.here
        if not self._dropping:
            self._sharing.end()
            return
        if heard:
            await self.council.depart()
        await self.council.halt()
        await (noted or self._cluster.note_alone)()
        await self.council.drop()
        await shared.close()
        self.shared, self._dropping = None, False
        self._sharing.end()
        self._store.alone(self._embedded())

    def share_networks(self, there: News | None) -> None:
        """The store holds these records from now on; None: nothing any more."""
        if there is not None:
            self._sharing.switched(there)
        elif self.shared is None:
            self._sharing.end()

    # --- promotion and demotion

    def promoted(self) -> None:
        """The swarm wants this worker to be a manager."""
        self._change(self._rise)

    def demoted(self) -> None:
        """The swarm wants this manager to be a worker."""
        self._change(self._step_down)

    def _change(self, change: Callable[[], Awaitable[None]]) -> None:
        if self._moving is None or self._moving.done():
            self._moving = self._tasks.spawn(self._until_done(change), "swarm: another place for this host")

    async def _until_done(self, change: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                async with self.changing:
                    await change()
                return
            except (HuskError, OSError) as error:
                log.warning("this node cannot have its new role yet: %s", error)
            await asyncio.sleep(AGAIN)

    async def _rise(self) -> None:
        from husk.cluster.port.managers import Managers

        if (was := self._cluster.worker) is None or (worker := self.worker) is None:
            return
        identity = worker.identity
        if not joining.is_managers(identity):  # the swarm has changed its mind
            return
        managers = Managers(worker.managers, identity)
        try:
            entered, key = await self._enter(managers, identity)
        finally:
            await managers.close()
        self.worker, self._cluster.between = None, was
        await worker.close()

        async def again() -> None:
            await self._cluster.enrol(was, happened=True)

        try:
            await self._take_office(Membership(node_id=was.node_id), identity, entered, key, again)
        except BaseException:
            await again()
            await self.work(was)
            raise
        finally:
            self._cluster.between = None
        log.info("this node is a manager of its swarm now")

    async def _step_down(self) -> None:
        if self._stepping is None or self._stepping[0] is not self._cluster.between:
            if not self._cluster.active or self._cluster.node.is_manager:
                return
            node = self._cluster.node
            others = [other.manager for other in self._store.nodes.values() if other.is_manager]
            endpoints = [read_endpoint(manager.addr, MANAGER_PORT) for manager in others if manager is not None]
            identity = await self._renewed(endpoints)
            # Whom we heard, ourselves too, stays alive until another manager hears them.
            await self._workers.close()
            await self._gateway.close()
            self._cluster.between = self._worker_place(node, endpoints)
            self._stepping = self._cluster.between, identity
        membership, identity = self._stepping

        async def noted() -> None:
            await self._cluster.enrol(membership, happened=True)

        await self.lay_down(noted)
        await asyncio.to_thread(self._sealer.forget)
        await noted()
        await self._certificates.keep(identity)
        await self.work(membership)
        self._cluster.between = self._stepping = None
        log.info("this node is a worker of its swarm now")

    async def _renewed(self, endpoints: list[Endpoint]) -> "Identity":
        """A certificate for what this node is now, from another manager."""
        return await joining.renewed(endpoints, await self._certificates.kept())

    def _worker_place(self, node: Node, endpoints: list[Endpoint]) -> Membership:
        return Membership(
            node_id=node.id,
            role="worker",
            managers=[str(endpoint) for endpoint in endpoints],
            advertise_address=node.status.addr,
        )

    # --- most managers are lost

    async def start_over(self) -> None:
        """Go on as the only manager, with the records that this host's member of etcd has."""
        async with self.changing:
            await self.council.start_alone()
            own = self.council.own
            self.council.know([own])
            for _ in range(int(ANSWER / LOOK)):
                if self._cluster.active and not self._cluster.away:
                    break
                await asyncio.sleep(LOOK)
            for node in [node for node in self._store.nodes.values() if node.id != self._cluster.node_id]:
                if node.is_manager:
                    await self._store.amend(node, _lost)
            await self._cluster.note_store(self.council.where([own]), {})


def _lost(node: Node) -> None:
    """A manager that is none any more, and has to join anew."""
    node.spec = msgspec.structs.replace(node.spec, role="worker")
    node.manager = None


async def _nothing() -> None:
    """Nobody has to hear of it."""
