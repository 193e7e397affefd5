"""The daemons of a swarm: managers, which are nodes too, and workers, put together as by `swarm.opening`."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar, cast
from unittest.mock import AsyncMock, Mock

from husk.engine.containers.service import Containers
from husk.engine.model.events import Events
from husk.errors import HuskError, Unavailable
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher, DispatcherServer
from husk.swarm.manager.liveness import Liveness, NodeMarker
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.manager.workers import Workers
from husk.swarm.membership.cluster import Cluster
from husk.swarm.membership.etcd_membership import ANSWER as COUNCIL_ANSWER
from husk.swarm.membership.etcd_membership import EtcdMembership
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.node import Node
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Task
from husk.swarm.model.swarm import Swarm
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.local_node import LocalNode
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import LocalAssignments
from husk.swarm.node.delivery import Deliveries
from husk.swarm.node.dispatch_client import DispatchCalls, HeartbeatSender, ManagerChannel
from husk.swarm.node.remote_assignments import RemoteAssignments
from husk.swarm.node.runner import TaskRunner
from husk.swarm.signals import Signal
from husk.swarm.state.etcd.members import KnownMember, Members
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from husk.text.endpoints import HostPort
from tests.simulation.etcd import Etcd
from tests.simulation.hosts import SECOND, Host, HostClock
from tests.simulation.loop import Process

T = TypeVar("T")
# What a worker waits for a manager's answer, in seconds; and after which silence a stream of news is given up.
ANSWER, SILENCE = 5.0, 10.0


def _mono() -> int:
    return round(asyncio.get_running_loop().time() * SECOND)


class Daemon:
    """The common part of managers and workers: a process on a host."""

    def __init__(self, host: Host, chance: random.Random) -> None:
        self.host = host
        self.chance = chance
        self.process = Process(host.name)
        self.events = Events()
        self.clock = HostClock(host)

    def start(self) -> None:
        self.host.containers.events = self.events
        self.process.begin(self.run())

    def kill(self) -> None:
        self.process.kill()
        self.host.containers.events = None

    async def run(self) -> None:
        raise NotImplementedError

    @property
    def containers(self) -> Containers:
        return cast(Containers, self.host.containers)

    def id(self) -> str:
        return f"{self.chance.getrandbits(100):025x}"


class _ManagersCluster:
    """The part of `Cluster` that a manager's parts ask: all of it is in the records."""

    locked = False
    several = True
    data_path_port = 4789

    def __init__(self, store: SwarmRecords, node_id: str) -> None:
        self._store = store
        self.node_id = node_id

    @property
    def active(self) -> bool:
        return self._store.swarm is not None and self.node_id in self._store.nodes

    @property
    def record(self) -> Swarm:
        assert self._store.swarm is not None
        return self._store.swarm

    swarm = record

    @property
    def node(self) -> Node:
        return self._store.nodes[self.node_id]

    @property
    def data_address(self) -> str:
        return self.node.data_address

    def node_facts(self) -> NodeFacts:
        if not self.active:
            raise Unavailable("this node does not know itself yet")
        return self.node.facts


class _Members:
    """Members of the swarm's etcd, asked for and changed from a host (`husk.swarm.state.etcd.members.Members`)."""

    def __init__(self, etcd: Etcd, host: Host) -> None:
        self._etcd = etcd
        self._host = host

    async def listing(self) -> list[KnownMember]:
        await self._decide()
        return [
            KnownMember(number, name, HostPort(name, 2380), False)
            for number, name in enumerate(sorted(self._etcd.voters))
        ]

    async def remove(self, member: KnownMember) -> None:
        await self._decide()
        self._etcd.remove(member.name)

    async def close(self) -> None:
        pass

    async def _decide(self) -> None:
        """Only most of them decide anything."""
        reached = sorted(self._etcd.majority())
        if not reached or not self._etcd.serves(reached[0]) or not self._linked(reached[0]):
            raise Unavailable("etcd has no leader")
        await self._etcd.network.travel(self._host.name, reached[0])

    def _linked(self, member: str) -> bool:
        return self._etcd.network.linked(self._host.name, member)


class _EtcdMembership(EtcdMembership):
    """The part of the membership that managers ask when another one is demoted; the members have neither processes nor
    certificates."""

    here = True

    def __init__(self, store: SwarmRecords, cluster: Cluster, etcd: Etcd, host: Host) -> None:
        self._store = store
        self._cluster = cluster
        self._etcd = etcd
        self._host = host

    async def _members(self, endpoints: object) -> Members:
        return cast(Members, _Members(self._etcd, self._host))

    async def _answers(self, endpoint: HostPort | None) -> bool:
        if endpoint is None:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COUNCIL_ANSWER):
                await self._etcd.network.travel(self._host.name, endpoint.host)
                answers = self._etcd.serves(endpoint.host)
                await self._etcd.network.travel(endpoint.host, self._host.name)
                return answers
        return False

    async def look(self) -> bool:
        """As a manager that plans does, one that is wanted again before its member has gone, and one that is to be a
        worker. False for one that is no manager any more."""
        if self._store.leadership.leading:
            await self.tidy()
        if (own := self._store.nodes.get(self._host.name)) is None:
            return True
        members = await self._members(())
        if own.is_manager and own.id not in self._etcd.voters:
            await members.listing()
            self._etcd.voters.add(own.id)
        if not own.is_manager:
            await self.spare(own)
            for member in await members.listing():
                if member.name == own.id:
                    await members.remove(member)
        return own.is_manager


class Manager(Daemon):
    def __init__(self, host: Host, chance: random.Random, etcd: Etcd, members: Sequence[Host]) -> None:
        super().__init__(host, chance)
        self._etcd = etcd
        self._members = members
        self.ready = False
        # Hears that the swarm's etcd goes on without it, as a worker.
        self.stepped_down: Callable[[], None] = lambda: None

    async def run(self) -> None:
        loop_clock = _mono
        self.store = SwarmRecords(self._etcd.store(self.host, self._members), self.clock)
        fake = _ManagersCluster(self.store, self.host.name)
        cluster = cast(Cluster, fake)
        self.shared = Shared(self.store, self.store.store)
        self.etcd_membership = _EtcdMembership(self.store, cluster, self._etcd, self.host)
        self.nodes = Nodes(self.store, cluster, self.clock, spare=self.etcd_membership.spare)
        self.networks = OverlayAllocator(self.store, cast(LocalNode, fake), lambda: None)
        noticed = Signal[[Task]]()
        assignments = LocalAssignments(
            self.store,
            cluster,
            AsyncMock(of=AsyncMock(return_value=None)),
            noticed.emit,
        )
        self.runner = _runner(self, assignments)
        self.agent = _agent(self, assignments, self.runner)
        self.store.index.changed.subscribe(lambda task_id: self.agent.noticed(self.store.tasks.get(task_id)))
        self.reconciler = Reconciler(
            store=self.store,
            cluster=cluster,
            nodes=lambda: {node.id: node.facts for node in self.store.nodes.values()},
            events=self.events,
            looked=self.agent.wake,
            clock=self.clock,
            new_id=self.id,
        )
        self.store.woken.subscribe(lambda ids: self.reconciler.wake(*ids))
        noticed.subscribe(self.reconciler.noticed)
        self.dispatcher = Dispatcher(
            store=self.store,
            values=Mock(),
            credentials=AsyncMock(of=AsyncMock(return_value=None)),
            locked=lambda: False,
            changed=self.reconciler.noticed,
            clock=self.clock,
        )
        self.workers = Workers(
            own_id=lambda: self.host.name,
            nodes=self.nodes,
            liveness=lambda: self._liveness(loop_clock),
            dispatcher=self.dispatcher,
            changed=self.reconciler.wake,
            expected=lambda: None,
        )
        self.server = DispatcherServer(self.dispatcher, self.workers, lambda: self.store.away())

        async def begin() -> None:
            self.reconciler.start()
            self.agent.start()
            self.shared.take_part(self.host.name)
            self.workers.expect()
            self.ready = True

        await self.shared.open(begin)
        while True:
            await asyncio.sleep(self.chance.uniform(1, 3))
            if self.ready:
                with contextlib.suppress(HuskError):
                    if not await self.etcd_membership.look():
                        self.stepped_down()

    def _liveness(self, clock: Callable[[], int]) -> Liveness:
        marking = NodeMarker(
            self.store.store,
            self.store.nodes.values,
            self.nodes,
            leading=lambda: self.store.leadership.leading,
            marked=lambda: self.reconciler.wake(),
            clock=clock,
        )
        return Liveness(self.store.store, marking, clock=clock)


class Worker(Daemon):
    def __init__(self, host: Host, chance: random.Random, managers: Callable[[], Sequence[Manager]]) -> None:
        super().__init__(host, chance)
        self._managers = managers

    async def run(self) -> None:
        calls = cast(DispatchCalls, _Calls(self, self._managers))
        assignments = RemoteAssignments(
            ManagerChannel(calls), lambda *ids: self.agent.wake(*ids), lambda: self._told_all(assignments)
        )
        self.runner = _runner(self, assignments)
        self.agent = _agent(self, assignments, self.runner)
        self.agent.start()
        assignments.start()
        HeartbeatSender(calls).start()
        await asyncio.Event().wait()

    def _told_all(self, assignments: RemoteAssignments) -> None:
        self.runner.remove_strangers(assignments.unread)


def _runner(daemon: Daemon, assignments: LocalAssignments | RemoteAssignments) -> TaskRunner:
    return TaskRunner(
        assignments=assignments,
        containers=daemon.containers,
        images=Mock(),
        deliveries=cast(Deliveries, AsyncMock(deliver=AsyncMock(return_value=[]))),
        clock=daemon.clock,
    )


def _agent(daemon: Daemon, assignments: LocalAssignments | RemoteAssignments, runner: TaskRunner) -> Agent:
    async def reachable() -> bool:
        return True

    return Agent(
        assignments=assignments,
        containers=daemon.containers,
        runner=runner,
        reachable=reachable,
        events=daemon.events,
        clock=daemon.clock,
    )


class _Calls:
    """A worker's calls to one manager after the other (`husk.swarm.port.dispatch.DispatchCalls`)."""

    def __init__(self, worker: Worker, managers: Callable[[], Sequence[Manager]]) -> None:
        self._worker = worker
        self._managers = managers
        self._at = worker.chance.randrange(10)
        self._network = worker.host.network
        # Streams end with it: another manager is asked from then on.
        self._left = asyncio.Event()

    async def report(self, body: bytes) -> bytes:
        return await self._ask(lambda server, node: server.report(node, body))

    async def heartbeat(self, timeout: float) -> bytes:
        return await self._ask(lambda server, node: server.heartbeat(node), timeout)

    async def describe(self, body: bytes) -> bytes:
        return b""

    async def assignments(self) -> AsyncGenerator[bytes]:
        manager, left = self._manager(), self._left
        name, there = self._worker.host.name, manager.host.name
        await self._network.travel(name, there)
        told: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        serving = manager.process.begin(_serve(manager.server, name, told))
        try:
            while True:
                message = await self._next(told, manager, left)
                if isinstance(message, Exception):
                    self._leave(left)
                    raise message
                await asyncio.sleep(self._worker.chance.uniform(0.0002, 0.002))
                yield message
        finally:
            serving.cancel()

    async def _next(
        self, told: "asyncio.Queue[bytes | Exception]", manager: Manager, left: asyncio.Event
    ) -> bytes | Exception:
        silent = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    return await told.get()
            linked = self._network.linked(self._worker.host.name, manager.host.name)
            silent = 0.0 if linked else silent + 0.5
            if left.is_set() or (linked and manager.process.dead) or silent > SILENCE:
                self._leave(left)
                return Unavailable("this manager is not there any more")

    def _manager(self) -> Manager:
        managers = self._managers()
        manager = managers[self._at % len(managers)]
        if manager.process.dead or not manager.ready:
            self._leave(self._left)
            raise Unavailable("this manager is not there")
        return manager

    def _leave(self, left: asyncio.Event) -> None:
        if left is self._left:
            self._at += 1
            self._left = asyncio.Event()
            left.set()

    async def _ask(self, call: Callable[[DispatcherServer, str], Awaitable[bytes]], timeout: float = ANSWER) -> bytes:
        manager, left = self._manager(), self._left
        name, there = self._worker.host.name, manager.host.name

        async def served() -> bytes:
            return await call(manager.server, name)

        try:
            async with asyncio.timeout(timeout):
                await self._network.travel(name, there)
                if manager.process.dead:
                    raise Unavailable("this manager is not there any more")
                answering = manager.process.begin(served())
                await asyncio.wait([answering])
                if answering.cancelled():
                    raise Unavailable("this manager is not there any more")
                answer = answering.result()
                await self._network.travel(there, name)
                return answer
        except TimeoutError:
            self._leave(left)
            raise Unavailable("this manager does not answer") from None
        except Unavailable:
            self._leave(left)
            raise


async def _serve(server: DispatcherServer, node: str, told: "asyncio.Queue[bytes | Exception]") -> None:
    try:
        async with contextlib.aclosing(server.assignments(node)) as news:
            async for message in news:
                told.put_nowait(message)
        told.put_nowait(Unavailable("the manager has ended it"))
    except Exception as error:
        told.put_nowait(error)
