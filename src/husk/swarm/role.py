"""This host's place in a swarm, and how it gets another one: it joins, is promoted, is demoted, leaves.

A worker has a certificate and the addresses of managers. A manager has the swarm's records (`manager.role`). Tasks
run on meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm import node as node_room
from husk.swarm import port
from husk.swarm.ca.identity import Identity
from husk.swarm.manager.parts import ManagerParts
from husk.swarm.manager.role import ManagerRole
from husk.swarm.membership import joining
from husk.swarm.membership.joining import ENTRANCE, SwarmEntrance
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.node import Node
from husk.swarm.model.settings import JoinSettings
from husk.swarm.model.swarm import KEY, Membership, Standing
from husk.swarm.node.parts import NodeParts
from husk.swarm.state.parts import StateParts
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

log = logging.getLogger(__name__)

# Between two tries to change one's place, in seconds.
AGAIN = 5.0


class NodeRole:
    def __init__(
        self,
        state: StateParts,
        membership: MembershipParts,
        node: NodeParts,
        manager: ManagerParts,
        manager_role: ManagerRole,
        entrance: SwarmEntrance = ENTRANCE,
        again: float = AGAIN,
    ) -> None:
        """`entrance` asks the managers of a swarm; after `again` seconds a change that failed is tried again."""
        self._entrance = entrance
        self._again = again
        self.manager_role = manager_role
        self.changing = manager_role.changing
        manager_role.demoted.subscribe(self.demoted)
        self._store = state.records
        self._cluster = membership.cluster
        self._certificates = membership.certificates
        self._runner = node.runner
        self._make_worker = node.make_worker
        self._listener = manager.listener
        self._workers = manager.workers
        self.worker: node_room.worker.WorkerRole | None = None
        # Why this host cannot be the worker that it is to be.
        self.trouble = ""
        # What is cut off by nobody, and what ends with the daemon.
        self._finishing, self._tasks = Tasks(), Tasks()
        self._moving: asyncio.Task[None] | None = None
        # The role of a manager that steps down: where that fails it is tried again from there.
        self._stepping: Membership | None = None

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._finishing.join()
        if self.worker is not None:
            await self.worker.close()
        await self.manager_role.close()

    # --- a worker

    async def work(self, membership: Membership) -> None:
        # What this host has prepared as a manager, be it in a daemon that died before it could take it.
        await self._certificates.succeed("worker")
        self.worker = await self._make_worker(membership, self.promoted)
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
        elif failures := await self._runner.remove_all():
            # One that could not work, be it for want of its certificate: what it ran goes all the same.
            raise failures[0]
        await self._certificates.forget()
        await self._cluster.part()

    # --- joining

    async def join(self, wish: JoinSettings) -> None:
        async with self.changing:
            self._cluster.check_alone()
            self._cluster.joining = True
            try:
                await self._join(wish)
            finally:
                self._cluster.joining = False

    async def _join(self, wish: JoinSettings) -> None:
        if self.manager_role.shared is not None:
            # News may be on their way.
            await self._store.refresh("swarm", KEY)
            self._cluster.check_token(wish.token)
        await self._cluster.look_around()
        joined = await self._entrance.join(wish, self._cluster.description())
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

    async def _undo(self, joined: "port.join.JoinResult") -> None:
        """This host is in no swarm after all, however often its client leaves."""

        async def undone() -> None:
            if self.worker is not None:
                await self.worker.close()
                self.worker = None
            await self._certificates.forget()
            await self._cluster.part()
            await self._entrance.withdraw(joined)

        await self._finishing.to_its_end(undone(), "swarm: undo a join")

    async def _join_as_manager(self, wish: JoinSettings, joined: "port.join.JoinResult") -> None:
        remotes = [*joining.check(wish), *joined.managers]
        managers = port.managers.Managers(list(dict.fromkeys(remotes)), joined.identity)
        membership = Membership(
            node_id=joined.holder.node, advertise_address=wish.advertise, listen_address=wish.own_listen
        )
        try:
            entered, key = await self.manager_role.enter(managers, joined.identity)
            await self.manager_role.take_office(membership, joined.identity, entered, key, self._cluster.note_alone)
        except BaseException:
            await self._undo(joined)
            raise
        finally:
            await managers.close()

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
            await asyncio.sleep(self._again)

    async def _rise(self) -> None:
        if (was := self._cluster.worker) is None or (worker := self.worker) is None:
            return
        identity = worker.identity
        if not joining.is_managers(identity):  # the swarm has changed its mind
            return
        managers = port.managers.Managers(worker.managers, identity)
        try:
            entered, key = await self.manager_role.enter(managers, identity)
        finally:
            await managers.close()
        self.worker, self._cluster.between = None, was
        await worker.close()

        async def again() -> None:
            if self._cluster.noted is not None and self._cluster.noted.role == "manager":
                await self._prepare_way_back(identity)
            await self._cluster.enrol(was, happened=True)

        try:
            await self.manager_role.take_office(Membership(node_id=was.node_id), identity, entered, key, again)
        except BaseException:
            await again()
            await self.work(was)
            await self._certificates.drop_prepared("manager")
            raise
        finally:
            self._cluster.between = None
        log.info("this node is a manager of its swarm now")

    async def _prepare_way_back(self, identity: Identity) -> None:
        """The next daemon would be a manager, with the swarm's keys; a worker cannot unlock them. A full disk keeps
        nobody from being a worker again: this one has them in memory."""
        try:
            await self._certificates.prepare("worker", identity)
        except OSError as error:
            log.warning("this worker keeps the keys of a manager until it is one: %s", error)
            await self._certificates.drop_prepared("worker")

    async def _step_down(self) -> None:
        if await self._stay():
            return
        if self._stepping is None or self._stepping is not self._cluster.between:
            if not self._cluster.active or self._cluster.node.is_manager:
                return
            node = self._cluster.node
            # While most others are down this one stays what it is: its member of etcd is needed.
            await self.manager_role.etcd_membership.spare(node)
            others = [other.manager for other in self._store.nodes.values() if other.is_manager]
            endpoints = [read_endpoint(manager.addr, MANAGER_PORT) for manager in others if manager is not None]
            # A daemon that dies before the new place is written down leaves a manager with all that it has, and one
            # that dies after that leaves a worker which takes this at its start.
            identity = await self._entrance.renew(endpoints, await self._certificates.kept())
            await self._certificates.prepare("worker", identity)
            # Whom we heard, ourselves too, stays alive until another manager hears them.
            await self._workers.close()
            await self._listener.close()
            self._cluster.between = self._worker_place(node, endpoints)
            self._stepping = self._cluster.between
        membership = self._stepping

        async def noted() -> None:
            await self._cluster.enrol(membership, happened=True)

        await self.manager_role.lay_down(noted, forced=False)
        await noted()
        await self.work(membership)
        self._cluster.between = self._stepping = None
        log.info("this node is a worker of its swarm now")

    async def _stay(self) -> bool:
        """Be the manager that this host was, where it is wanted as one again before its member of etcd has gone: by
        now it may have the only records that are left."""
        wanted = self._cluster.active and self._cluster.node.is_manager
        if self._stepping is None or not wanted or not self.manager_role.may_stay:
            return False
        await self._certificates.drop_prepared("worker")
        self._cluster.between = self._stepping = None
        await self.manager_role.stay()
        log.info("this node stays a manager of its swarm")
        return True

    def _worker_place(self, node: Node, endpoints: list[HostPort]) -> Membership:
        return Membership(
            node_id=node.id,
            role="worker",
            managers=[str(endpoint) for endpoint in endpoints],
            advertise_address=node.status.addr,
        )
