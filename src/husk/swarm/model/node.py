"""The record of a node of the swarm: what is wanted of it, what it is, and how it is. Pure.

Who writes which part: clients the `spec`; the node itself, through a manager, its `description`; the leader `status`
and `manager`. Each writes on the version it has seen (`SwarmRecords.amend` tries again when another was faster).
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from husk.engine.logs.options import DRIVERS
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.settings import NodeSpec
from husk.text.endpoints import MANAGER_PORT
from husk.version import CLUSTER_PROTOCOL

NETWORK_DRIVERS = ("bridge", "host", "ipvlan", "macvlan", "null", "overlay")

# The guard of what makes a node a manager, or takes one from the swarm, which must have one.
MANAGERS = "managers"

NodeState = Literal["unknown", "down", "ready", "disconnected"]
Reachability = Literal["unknown", "unreachable", "reachable"]


class Machine(Struct, frozen=True):
    """The facts of the host that the daemon runs on, which is a node of the swarm."""

    hostname: str = ""
    architecture: str = ""
    cpus: int = 1
    memory: int = 0
    # That of the engine.
    version: str = ""


class NodeDescription(Struct, kw_only=True, frozen=True):
    hostname: str = ""
    os: str = "linux"
    architecture: str = ""
    nano_cpus: int = 0
    memory: int = 0
    # What else the node is said to have, by kind.
    generic: dict[str, int] = {}
    engine_version: str = ""
    engine_labels: dict[str, str] = {}
    # (type, name)
    plugins: list[tuple[str, str]] = []
    # What it reaches by other ways than the swarm's networks, as subnets: none of these may be one of them.
    subnets: list[str] = []
    # Its version of the cluster protocol; 0 where its release had none yet.
    protocol: int = 0


class NodeStatus(Struct, kw_only=True, frozen=True):
    """`since_ns` is when the state was last found to be another one."""

    # A `NodeState`; what only a newer release knows is kept, and such a node gets no tasks and keeps those it has.
    state: str = "unknown"
    addr: str = ""
    message: str = ""
    since_ns: int = 0


class ManagerStatus(Struct, kw_only=True, frozen=True):
    """Of managers only. Who leads is told by the record `leader`."""

    # A `Reachability`, or what a newer release says.
    reachability: str = "reachable"
    addr: str = ""


class Node(Struct, kw_only=True, frozen=True):
    id: str
    version: int
    created_at: str
    updated_at: str
    spec: NodeSpec = field(default_factory=NodeSpec)
    description: NodeDescription = field(default_factory=NodeDescription)
    status: NodeStatus = field(default_factory=NodeStatus)
    manager: ManagerStatus | None = None
    # By which the other hosts' packets of networks come to it, where that is another address than `status.addr`.
    data_path: str = ""
    # Its public key of WireGuard, and the UDP port for it: what others need for encrypted networks. Empty, and 0, until
    # it has been on one; written by the node itself, through a manager.
    tunnel_key: str = ""
    tunnel_port: int = 0
    # Of a manager with a member of the swarm's own etcd: its port for clients; 0 for the usual one.
    store_port: int = 0
    # `SwarmRoot.key_id` of the root that signed the node's certificate.
    issuer: bytes = b""

    @property
    def is_manager(self) -> bool:
        return self.spec.role == "manager"

    @property
    def data_address(self) -> str:
        """The address that packets of networks go to."""
        return self.data_path or self.status.addr

    @property
    def facts(self) -> NodeFacts:
        """The node as placement sees it."""
        return NodeFacts(
            id=self.id,
            hostname=self.description.hostname,
            role=self.spec.role,
            availability=self.spec.availability,
            os=self.description.os,
            architecture=self.description.architecture,
            address=self.status.addr,
            labels=self.spec.labels,
            engine_labels=self.description.engine_labels,
            nano_cpus=self.description.nano_cpus,
            memory=self.description.memory,
            generic=self.description.generic,
            state=self.status.state,
            lost_ns=self.status.since_ns,
            plugins=frozenset(self.description.plugins) if self.description.plugins else None,
        )


def describe(
    machine: Machine, engine_labels: dict[str, str], *, overlays: bool = True, subnets: Sequence[str] = ()
) -> NodeDescription:
    """This host, as its node tells it to the swarm; without `overlays` it cannot be on the swarm's networks."""
    plugins = [("Log", name) for name in sorted(DRIVERS) if name != "none"]
    plugins += [("Network", name) for name in NETWORK_DRIVERS if overlays or name != "overlay"] + [("Volume", "local")]
    return NodeDescription(
        hostname=machine.hostname,
        architecture=machine.architecture,
        nano_cpus=machine.cpus * 10**9,
        memory=machine.memory,
        engine_version=machine.version,
        engine_labels=engine_labels,
        plugins=plugins,
        subnets=list(subnets),
        protocol=CLUSTER_PROTOCOL,
    )


def manager_at(address: str, port: int = MANAGER_PORT) -> ManagerStatus:
    told = f"[{address}]" if ":" in address else address
    return ManagerStatus(addr=f"{told}:{port}")
