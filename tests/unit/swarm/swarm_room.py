"""A swarm on doubles of its networks and containers: what it declares is real and in a store of its own."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from husk.engine.containers.service import Containers
from husk.engine.model.container import Container, Endpoint
from husk.engine.model.events import Event, Events
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks.balancing import VirtualService
from husk.engine.networks.service import Networks
from husk.errors import HuskError, NotFound
from husk.network.balance import BalancedPort
from husk.storage.secrets.member_key import MemberKey
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore
from husk.swarm.backup.backups import Backups
from husk.swarm.control import SwarmControl
from husk.swarm.logs.broker import LogBroker
from husk.swarm.logs.task_logs import TaskLogs
from husk.swarm.manager.listener import ClusterListener
from husk.swarm.manager.objects import Objects
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.manager.role import ManagerRole
from husk.swarm.manager.workers import Workers
from husk.swarm.membership.certificates import Certificates
from husk.swarm.membership.cluster import Cluster
from husk.swarm.membership.etcd_membership import EtcdMembership
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.node import Machine
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
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import Membership
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.networks import SwarmNetworks
from husk.swarm.network.sharing import NetworkSharing
from husk.swarm.node.agent import Agent
from husk.swarm.node.credentials import PullCredentials
from husk.swarm.node.runner import Runner
from husk.swarm.node.worker import WorkerRole
from husk.swarm.port.log_messages import Asked
from husk.swarm.role import NodeRole
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.text.endpoints import Endpoint as Endpoint_
from tests.support.memory import NoMounts
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
    def __init__(self, find: Callable[[str], Network]) -> None:
        self._find = find

    async def take(self, network: Network) -> list[str]:
        prefix = network.subnet.removesuffix("0/24")
        host = next(n for n in range(100, 200) if f"{prefix}{n}" not in network.service_addresses)
        network.service_addresses.append(f"{prefix}{host}")
        return [f"{prefix}{host}/24"]

    async def give_back(self, network: Network, address: str) -> None:
        self._find(network.id)
        if address in network.service_addresses:
            network.service_addresses.remove(address)


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
        self.service_addresses = FakeServiceAddresses(self.find)
        self.fails: HuskError | None = None
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


class FakeBroker:
    """Reads what it is given, of any node."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.gives: list[bytes] = []
        self.fails: HuskError | None = None

    async def pieces(self, asked: Asked) -> AsyncGenerator[bytes]:
        self.asked.append(asked)
        for piece in self.gives:
            yield piece
        if self.fails is not None:
            raise self.fails


class SwarmRoom:
    def __init__(self, directory: Path, state: StateStore, hostname: str = "alpha") -> None:
        self.state = state
        self.store = SwarmRecords.load(SqliteStore(state))
        self.sealer = Sealer(directory / "swarm.key")
        self.cluster = Cluster(state, self.store, self.sealer, {}, Machine(hostname=hostname))
        self.networks, self.containers = FakeNetworks(), FakeContainers()
        self.happened: list[Event] = []
        self.woken = 0
        self.forgotten = 0
        self.removed = 0
        self.remove_fails: HuskError | None = None
        self.events = Events()
        self.events.observe(self.happened.append)
        networks = cast(Networks, self.networks)
        self.endpoints = Endpoints(
            store=self.store,
            networks=networks,
            node_id=lambda: self.cluster.node_id,
            find_container=self.containers.find,
        )
        self.swarm_networks = SwarmNetworks(store=self.store, cluster=self.cluster, networks=networks)
        self.nodes = Nodes(self.store, self.cluster)
        self.certificates = Certificates(self.store, self.cluster, self.sealer, directory / "swarm.node")
        self.listener = FakeGateway()
        self.workers = FakeWorkers()
        self.worker_fails: HuskError | None = None
        self.broker = cast(LogBroker, FakeBroker())
        key = MemberKey(directory / "swarm.etcd" / "member.key", directory / "run", self.sealer, NoMounts())
        self.etcd_membership = EtcdMembership(self.store, self.cluster, self.sealer, directory / "swarm.etcd", key=key)
        manager_role = ManagerRole(
            store=self.store,
            cluster=self.cluster,
            certificates=self.certificates,
            sealer=self.sealer,
            etcd_membership=self.etcd_membership,
            listener=cast(ClusterListener, self.listener),
            workers=cast(Workers, self.workers),
            shared=None,
            sharing=cast(NetworkSharing, SimpleNamespace(switched=lambda told: None, end=lambda: None)),
            embedded=lambda: SqliteStore(state),
            woken=self._wake,
            demoted=lambda: self.node_role.demoted(),
        )
        self.node_role = NodeRole(
            manager_role=manager_role,
            store=self.store,
            cluster=self.cluster,
            certificates=self.certificates,
            listener=cast(ClusterListener, self.listener),
            workers=cast(Workers, self.workers),
            worker=self._worker,
            remove_tasks=self._remove_tasks,
        )
        self.services = SwarmControl(
            store=self.store,
            cluster=self.cluster,
            reconciler=cast(Reconciler, SimpleNamespace(wake=self._wake)),
            agent=cast(Agent, SimpleNamespace(wake_all=lambda: None)),
            runner=cast(Runner, SimpleNamespace(forget_all=self._forget_all, remove_all=self._remove_tasks)),
            endpoints=self.endpoints,
            networks=self.swarm_networks,
            nodes=self.nodes,
            certificates=self.certificates,
            listener=cast(ClusterListener, self.listener),
            secrets=self._objects("secret"),
            configs=self._objects("config"),
            credentials=PullCredentials(self.sealer),
            containers=cast(Containers, self.containers),
            logs=TaskLogs(cast(Containers, self.containers), self.cluster, self.store, lambda: self.broker),
            events=self.events,
            workers=cast(Workers, self.workers),
            node_role=self.node_role,
            backups=lambda: self.backups,
        )
        self.backups = Backups(
            store=self.store,
            cluster=self.cluster,
            sealer=self.sealer,
            certificates=self.certificates,
            networks=networks,
            listener=cast(ClusterListener, self.listener),
            node_role=self.node_role,
        )

    async def _worker(self, membership: Membership) -> WorkerRole:
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
        record.state = replace(record.state, status="running")
        record.endpoints = {
            name: Endpoint(network_name=name, network_id=f"id-of-{name}", ip_address=address, prefix_len=24)
            for name, address in addresses.items()
        }
        self.containers.records[record.id] = record
        made = task(service, slot=slot, container_id=record.id, node_id=self.cluster.node_id)
        await self.store.save(made)
        return made

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event.type, event.action) for event in self.happened]

    def _objects(self, kind: Any) -> Objects:
        return Objects(kind, store=self.store, cluster=self.cluster, sealer=self.sealer, events=self.events)

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
