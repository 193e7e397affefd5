"""Swarm, nodes, services and tasks on the wire."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType, field

from husk.swarm.model.services import (
    DriverSpec,
    Empty,
    EndpointSpec,
    PortConfig,
    ServiceSpec,
    TaskSpec,
    UpdateStatus,
    VirtualIP,
)
from husk.swarm.model.settings import NodeSpec, SwarmSpec


class ObjectVersion(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    index: int = 0


class Endpoint(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    spec: EndpointSpec | Empty = field(default_factory=Empty)
    ports: list[PortConfig] = []
    virtual_ips: list[VirtualIP] = field(default_factory=list, name="VirtualIPs")


class ServiceStatus(Struct, kw_only=True, rename="pascal"):
    running_tasks: int
    desired_tasks: int
    completed_tasks: int


class JobStatus(Struct, kw_only=True, rename="pascal"):
    job_iteration: ObjectVersion
    last_execution: str


class ServiceDocument(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    spec: ServiceSpec
    previous_spec: ServiceSpec | UnsetType = UNSET
    endpoint: Endpoint
    update_status: UpdateStatus | UnsetType = UNSET
    service_status: ServiceStatus | UnsetType = UNSET
    job_status: JobStatus | UnsetType = UNSET


class ServiceCreated(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    warnings: list[str] | None = None


class Warnings(Struct, kw_only=True, rename="pascal"):
    warnings: list[str] | None = None


class ContainerStatus(Struct, kw_only=True, rename="pascal"):
    container_id: str = field(name="ContainerID")
    pid: int = field(name="PID")
    exit_code: int


class StatusDocument(Struct, kw_only=True, rename="pascal"):
    timestamp: str
    state: str
    message: str
    err: str | UnsetType = UNSET
    container_status: ContainerStatus | UnsetType = UNSET
    port_status: dict[str, object] = {}


class NetworkSpecDocument(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    name: str
    labels: Mapping[str, str]
    driver_configuration: DriverSpec
    i_pv6_enabled: bool = field(default=False, name="IPv6Enabled")
    internal: bool = False
    attachable: bool = False
    ingress: bool = False
    scope: str


class IpamPool(Struct, kw_only=True, rename="pascal"):
    subnet: str
    gateway: str


class IpamOptions(Struct, kw_only=True, rename="pascal"):
    driver: DriverSpec
    configs: list[IpamPool]


class NetworkDocument(Struct, kw_only=True, rename="pascal"):
    """A network of the swarm as tasks refer to it."""

    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    spec: NetworkSpecDocument
    driver_state: DriverSpec
    ipam_options: IpamOptions = field(name="IPAMOptions")


class NetworkAttachmentDocument(Struct, kw_only=True, rename="pascal"):
    network: NetworkDocument
    addresses: list[str]


class TaskDocument(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    labels: dict[str, str] = {}
    spec: TaskSpec
    service_id: str = field(name="ServiceID")
    slot: int | UnsetType = UNSET
    node_id: str = field(name="NodeID")
    status: StatusDocument
    desired_state: str
    networks_attachments: list[NetworkAttachmentDocument] | UnsetType = UNSET
    job_iteration: ObjectVersion | UnsetType = UNSET
    # Cluster volumes, which need plugins.
    volumes: None = None


class ObjectSpecDocument(Struct, kw_only=True, rename="pascal"):
    name: str
    labels: dict[str, str]
    data: str | UnsetType = UNSET
    templating: DriverSpec | UnsetType = UNSET


class ObjectDocument(Struct, kw_only=True, rename="pascal"):
    """A secret or a config."""

    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    spec: ObjectSpecDocument


class ObjectCreated(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")


class NodePlatform(Struct, kw_only=True, rename="pascal"):
    architecture: str
    os: str = field(name="OS")


class NodeResources(Struct, kw_only=True, rename="pascal"):
    nano_cpus: int = field(name="NanoCPUs")
    memory_bytes: int


class TlsInfo(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """The root that is believed, and the one that signs; bytes are in base64."""

    trust_root: str = ""
    cert_issuer_subject: bytes = b""
    cert_issuer_public_key: bytes = b""


class NodeEngine(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    engine_version: str
    labels: dict[str, str] = {}
    plugins: list[dict[str, str]]


class NodeDescription(Struct, kw_only=True, rename="pascal"):
    hostname: str
    platform: NodePlatform
    resources: NodeResources
    engine: NodeEngine
    tls_info: TlsInfo = field(default_factory=lambda: TlsInfo(), name="TLSInfo")


class NodeStatus(Struct, kw_only=True, rename="pascal"):
    state: str
    message: str | UnsetType = UNSET
    addr: str


class ManagerStatus(Struct, kw_only=True, rename="pascal"):
    leader: bool | UnsetType = UNSET
    reachability: str
    addr: str


class NodeDocument(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    spec: NodeSpec
    description: NodeDescription
    status: NodeStatus
    manager_status: ManagerStatus | UnsetType = UNSET


class NodeUpdate(NodeSpec):
    """The new spec of a node. A role or an availability that is not given stays."""

    role: str = ""
    availability: str = ""


class JoinTokens(Struct, kw_only=True, rename="pascal"):
    worker: str
    manager: str


class SwarmDocument(Struct, kw_only=True, rename="pascal"):
    id: str = field(name="ID")
    version: ObjectVersion
    created_at: str
    updated_at: str
    spec: SwarmSpec
    tls_info: TlsInfo = field(default_factory=lambda: TlsInfo(), name="TLSInfo")
    root_rotation_in_progress: bool = False
    default_addr_pool: list[str]
    subnet_size: int
    data_path_port: int
    join_tokens: JoinTokens


class InitRequest(Struct, kw_only=True, rename="pascal"):
    listen_addr: str = ""
    advertise_addr: str = ""
    data_path_addr: str = ""
    data_path_port: int = 0
    default_addr_pool: list[str] = []
    force_new_cluster: bool = False
    subnet_size: int = 0
    spec: SwarmSpec = field(default_factory=SwarmSpec)
    availability: str = ""
    auto_lock_managers: bool = False


class JoinRequest(Struct, kw_only=True, rename="pascal"):
    listen_addr: str = ""
    advertise_addr: str = ""
    data_path_addr: str = ""
    remote_addrs: list[str] = []
    join_token: str = ""
    availability: str = ""


class UnlockKey(Struct, kw_only=True, rename="pascal"):
    unlock_key: str = ""
