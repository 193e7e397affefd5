"""A swarm on doubles of its networks and containers: what it declares is real and in a store of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import msgspec
from msgspec.structs import replace

from husk.config import ETCD_PORTS, Config
from husk.engine.containers.service import Containers
from husk.engine.model.container import Container, Endpoint
from husk.engine.model.events import Event, Events
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks.balancing import VirtualService
from husk.engine.networks.service import Networks
from husk.errors import HuskError, NotFound
from husk.network.balance import BalancedPort
from husk.registry.auth import Credentials
from husk.storage.state.store import StateStore
from husk.swarm.backup.backups import Backups
from husk.swarm.ca.identity import Identity
from husk.swarm.control import SwarmControl
from husk.swarm.logs.broker import LogBroker
from husk.swarm.logs.parts import build_logs
from husk.swarm.logs.task_logs import TaskLogs
from husk.swarm.manager.listener import ClusterListener
from husk.swarm.manager.parts import build_manager
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.manager.role import ManagerRole
from husk.swarm.manager.workers import Workers
from husk.swarm.membership.cluster import PATIENCE
from husk.swarm.membership.joining import SwarmEntrance
from husk.swarm.membership.moving import OpenStore
from husk.swarm.membership.parts import build_membership
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import Machine, NodeDescription
from husk.swarm.model.services import (
    ContainerSpec,
    EndpointSpec,
    Mode,
    NetworkAttachment,
    PortConfig,
    Replicated,
    Service,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskStatus,
)
from husk.swarm.model.settings import JoinSettings, SwarmSpec
from husk.swarm.model.swarm import Membership
from husk.swarm.network.parts import build_network
from husk.swarm.network.sharing import NetworkSharing
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import PullCredentials
from husk.swarm.node.parts import build_node
from husk.swarm.node.runner import TaskRunner
from husk.swarm.node.worker import WorkerRole
from husk.swarm.port.enter import ManagerSecrets
from husk.swarm.port.join import JoinResult
from husk.swarm.port.log_messages import Asked
from husk.swarm.role import AGAIN, NodeRole
from husk.swarm.state.open_store import open_store
from husk.swarm.state.parts import build_state
from husk.swarm.surroundings import SwarmSurroundings
from husk.text.endpoints import HostPort as Endpoint_
from tests.support.but import but
from tests.support.memory import NoMounts
from tests.support.own_etcd import FakeEtcd, FakeMember
from tests.unit.engine.records import container


class FakeBalancing:
    def __init__(self) -> None:
        self.services: Sequence[VirtualService] = ()
        self.ports: Sequence[BalancedPort] = ()

    async def apply(
        self, services: Sequence[VirtualService], ports: Sequence[BalancedPort], sources: Sequence[object] = ()
    ) -> bool:
        self.services, self.ports = services, ports
        return True

    def lead_to(self, reached: Callable[[str], bool]) -> None:
        self.reached = reached


class FakeServiceAddresses:
    def __init__(self, networks: "FakeNetworks") -> None:
        self._networks = networks

    async def take(self, network: Network) -> list[str]:
        prefix, taken = network.subnet.removesuffix("0/24"), self._networks.find(network.id).service_addresses
        host = next(n for n in range(100, 200) if f"{prefix}{n}" not in taken)
        self._have(network, [*taken, f"{prefix}{host}"])
        return [f"{prefix}{host}/24"]

    async def give_back(self, network: Network, address: str) -> None:
        self._have(network, [one for one in self._networks.find(network.id).service_addresses if one != address])

    def _have(self, network: Network, addresses: list[str]) -> None:
        self._networks.records[network.name] = msgspec.structs.replace(network, service_addresses=addresses)


class FakePresence:
    """All of the swarm's networks are this host's alone."""

    def __init__(self, networks: "FakeNetworks") -> None:
        self._networks = networks

    @property
    def alone(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(record=network) for network in self._networks.listing() if network.driver == "overlay"]

    def numbered(self, live: SimpleNamespace, others: Collection[int]) -> Network:
        number = next(number for number in range(4097, 1 << 24) if number not in others)
        return msgspec.structs.replace(live.record, vni=number, service_addresses=[])


class FakeNetworks:
    """Networks 10.n.0.0/24 without interfaces; the addresses of services begin at 100."""

    def __init__(self) -> None:
        self.records: dict[str, Network] = {}
        self.on: dict[str, list[Container]] = {}
        self.balancing = FakeBalancing()
        self.service_addresses = FakeServiceAddresses(self)
        self.fails: HuskError | None = None
        # Subnets that this host reaches by other ways.
        self.used: list[str] = []
        self.pools: list[Sequence[object]] = []
        self.presence = FakePresence(self)

    def add(self, name: str, **fields: Any) -> Network:
        number = len(self.records)
        fields = {"driver": "overlay", "scope": "swarm", "subnet": f"10.{number}.0.0/24"} | fields
        self.records[name] = Network(id=f"id-of-{name}", name=name, created="", **fields)
        return self.records[name]

    def listing(self) -> list[Network]:
        return list(self.records.values())

    def find(self, reference: str) -> Network:
        for network in self.records.values():
            if reference in (network.id, network.name):
                return network
        raise NotFound(f"network {reference} not found")

    def members(self, network: Network) -> list[Container]:
        return self.on.get(network.name, [])

    async def create(self, request: NetworkRequest, pools: Sequence[object] = ()) -> Network:
        if self.fails is not None:
            raise self.fails
        self.pools.append(pools)
        return self.add(request.name, ingress=request.ingress, driver=request.driver)

    async def subnets(self) -> Sequence[str]:
        return list(self.used)

    def share(self, shared: object) -> None:
        """No host shares them."""

    async def remove(self, reference: str) -> None:
        network = self.find(reference)
        if self.members(network):
            raise HuskError(f"network {network.name} has active endpoints")
        del self.records[network.name]


class FakeContainers:
    def __init__(self) -> None:
        self.records: dict[str, Container] = {}

    def find(self, reference: str) -> Container:
        if reference not in self.records:
            raise NotFound(f"No such container: {reference}")
        return self.records[reference]

    def logs(self, reference: str, query: object, form: object) -> str:
        return f"log of {self.find(reference).name}"


class FakeGateway:
    """Listens nowhere."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def probe(self, endpoint: object) -> None:
        self.told.append(f"probe {endpoint}")

    def open(self) -> None:
        self.told.append("open")

    def dropped(self, node: str) -> None:
        self.told.append(f"dropped {node}")

    async def close(self) -> None:
        self.told.append("close")


class FakeWorkers:
    """Nobody works for this swarm."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def expect(self) -> None:
        self.told.append("expect")

    def opened(self) -> None:
        self.told.append("opened")

    async def close(self, *, for_good: bool = False) -> None:
        self.told.append("close")


class FakeWorker:
    """This host works for others, who ask nothing of it."""

    address, managers, trouble = "192.0.2.9", (Endpoint_("192.0.2.1", 2377),), ""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.told: list[str] = []

    def start(self) -> None:
        self.told.append("start")

    async def leave(self) -> None:
        self.told.append("leave")

    async def close(self) -> None:
        self.told.append("close")


class WatchedCredentials(PullCredentials):
    """`meanwhile` is what happens while those of a service are kept, before its record is written."""

    meanwhile: Callable[[Service], Awaitable[None]] | None = None

    async def keep(self, service: Service, credentials: Credentials | None) -> Service:
        if self.meanwhile is not None:
            await self.meanwhile(service)
        return await super().keep(service, credentials)


class FakeBroker:
    """Reads what it is given, of any node."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.gives: list[bytes] = []
        self.fails: HuskError | None = None
        self.instead: Callable[[Asked], AsyncGenerator[bytes]] | None = None

    def pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
        return self._pieces(asked) if self.instead is None else self.instead(asked)

    async def _pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
        self.asked.append(asked)
        for piece in self.gives:
            yield piece
        if self.fails is not None:
            raise self.fails


class FakeEntrance(SwarmEntrance):
    """Managers of a swarm that let in whom `admit` does, over no wire."""

    def __init__(self) -> None:
        self.admit: Callable[[JoinSettings, NodeDescription], Awaitable[JoinResult]] | None = None
        self.secrets: ManagerSecrets | None = None
        # What those who become managers wait for.
        self.may_enter, self.entered = asyncio.Event(), asyncio.Event()
        self.may_enter.set()
        # Who was withdrawn, and what they wait for.
        self.withdrawn: list[JoinResult] = []
        self.may_withdraw, self.withdrawing = asyncio.Event(), asyncio.Event()
        self.may_withdraw.set()
        # The certificate that they give to one that is another one now.
        self.renewal: Identity | None = None

    async def join(self, wish: JoinSettings, description: NodeDescription) -> JoinResult:
        if self.admit is None:
            return await super().join(wish, description)
        return await self.admit(wish, description)

    async def withdraw(self, joined: JoinResult) -> None:
        self.withdrawn.append(joined)
        self.withdrawing.set()
        await self.may_withdraw.wait()

    async def renew(self, endpoints: list[Endpoint_], identity: Identity) -> Identity:
        assert self.renewal is not None, "there is another manager"
        return self.renewal

    async def enter(self, managers: object, identity: Identity, request: bytes) -> ManagerSecrets:
        self.entered.set()
        await self.may_enter.wait()
        assert self.secrets is not None, "there are other managers"
        return self.secrets


class SwarmRoom:
    """The parts of a swarm as a daemon builds them, on doubles of the core. The loops, the port and what speaks with
    other hosts are doubles too."""

    def __init__(
        self,
        directory: Path,
        state: StateStore,
        hostname: str = "alpha",
        *,
        entrance: "FakeEntrance | None" = None,
        opener: OpenStore = open_store,
        clock: Clock = CLOCK,
        patience: float = PATIENCE,
        again: float = AGAIN,
        etcd_ports: tuple[int, int] = ETCD_PORTS,
    ) -> None:
        self.state = state
        self.etcd, self.memory = FakeEtcd(), NoMounts()
        self.entrance = entrance or FakeEntrance()
        self.networks, self.containers = FakeNetworks(), FakeContainers()
        self.happened: list[Event] = []
        self.woken = 0
        self.forgotten = 0
        self.removed = 0
        self.remove_fails: HuskError | None = None
        self.worker_fails: BaseException | None = None
        self.events = Events()
        self.events.observe(self.happened.append)
        self.listener, self.workers = FakeGateway(), FakeWorkers()
        around = SwarmSurroundings(
            config=Config(data_root=directory, exec_root=directory / "run", swarm_etcd_ports=etcd_ports),
            state=state,
            events=self.events,
            containers=cast(Containers, self.containers),
            images=Mock(),
            networks=cast(Networks, self.networks),
            machine=Machine(hostname=hostname),
            memory=self.memory,
        )
        # Of a swarm's own etcd, too: what it would have is in this store.
        records = build_state(around, None)
        membership = build_membership(around, records, self.etcd, clock, patience)
        network = build_network(around, records, membership)
        logs = build_logs(around, records, membership)
        node = build_node(around, records, membership, network)
        manager = build_manager(around, records, membership, network, logs, node)
        self.store, self.sealer = records.records, records.sealer
        self.cluster, self.certificates, self.etcd_membership, self.nodes = membership
        self.endpoints, self.swarm_networks = network.endpoints, network.networks
        network = network._replace(sharing=Mock(NetworkSharing))
        self.broker = cast(LogBroker, FakeBroker())
        logs = logs._replace(
            tasks=TaskLogs(around.containers, self.cluster, self.store, self.broker, first_pause=0.001)
        )
        self.credentials = WatchedCredentials(records.sealer)
        node = node._replace(
            credentials=self.credentials,
            agent=Mock(Agent),
            runner=cast(TaskRunner, SimpleNamespace(forget_all=self._forget_all, remove_all=self._remove_tasks)),
            make_worker=self._worker,
        )
        manager = manager._replace(
            reconciler=cast(Reconciler, SimpleNamespace(wake=self._wake)),
            workers=cast(Workers, self.workers),
            listener=cast(ClusterListener, self.listener),
        )
        manager_role = ManagerRole(records, membership, network, node, manager, self.entrance, opener)
        self.node_role = NodeRole(records, membership, node, manager, manager_role, self.entrance, again)
        self.backups = Backups(around, records, membership, manager, self.node_role)
        self.services = SwarmControl(
            around, records, membership, network, logs, node, manager, self.node_role, self.backups
        )

    async def begin_etcd(self) -> FakeMember:
        """Let this manager have a member of an etcd of the swarm's own; return that."""
        await self.cluster.note_store(await self.etcd_membership.begin(), {})
        return self.etcd.made[-1]

    async def _worker(self, membership: Membership, promoted: Callable[[], None]) -> WorkerRole:
        if self.worker_fails is not None:
            raise self.worker_fails
        return cast(WorkerRole, FakeWorker(membership))

    async def init(self) -> None:
        await self.cluster.init(
            SwarmSpec(), advertise="192.0.2.1", availability="", pools=[], subnet_size=0, data_path_port=0
        )
        await self.services.started()

    async def run(self, service: Service, slot: int = 1, **addresses: str) -> Task:
        """A task that runs, its container on these networks."""
        record = container(f"{service.spec.name}-{slot}")
        record = but(record, state=replace(record.state, status="running"))
        endpoints = {
            name: Endpoint(network_name=name, network_id=f"id-of-{name}", ip_address=address, prefix_len=24)
            for name, address in addresses.items()
        }
        record = but(record, endpoints=endpoints)
        self.containers.records[record.id] = record
        made = task(service, slot=slot, container_id=record.id, node_id=self.cluster.node_id)
        await self.store.save(made)
        return made

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event.type, event.action) for event in self.happened]

    def _wake(self, *service_ids: str) -> None:
        self.woken += 1

    async def _remove_tasks(self) -> list[HuskError]:
        self.removed += 1
        return [self.remove_fails] if self.remove_fails is not None else []

    async def _forget_all(self) -> None:
        self.forgotten += 1
        await self.store.delete(*self.store.tasks.values())


def spec(name: str = "web", *networks: str, ports: Sequence[PortConfig] = (), **changes: Any) -> ServiceSpec:
    """One copy of a program, on these networks, reached by these ports."""
    template = changes.pop("task_template", TaskSpec(container_spec=ContainerSpec(image="busybox")))
    template.networks = [NetworkAttachment(target=network) for network in networks]
    mode = changes.pop("mode", Mode(replicated=Replicated(replicas=1)))
    changes.setdefault("endpoint_spec", EndpointSpec(ports=list(ports)))
    return ServiceSpec(name=name, task_template=template, mode=mode, **changes)


def port(published: int = 0, target: int = 80, protocol: str = "tcp", mode: str = "ingress") -> PortConfig:
    return PortConfig(protocol=protocol, target_port=target, published_port=published, publish_mode=mode)


def task(service: Service, *, slot: int = 1, state: Any = "running", container_id: str = "", **fields: Any) -> Task:
    name = service.spec.name
    own: dict[str, Any] = {"node_id": "n", "spec": service.spec.task_template, "spec_version": service.spec_version}
    return Task(
        id=f"task-{name}-{slot}",
        version=0,
        created_at="",
        created_ns=0,
        updated_at="",
        service_id=service.id,
        service_name=name,
        slot=slot,
        status=TaskStatus(timestamp="", state=state, container_id=container_id),
        **own | fields,
    )
