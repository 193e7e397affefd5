"""Containers on the wire: what `create` takes, what `list`, `inspect` and `wait` answer.

A container's files on the wire.

Answers of `top`, `update` and `prune` of containers.
"""

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType, field

from husk.engine.model.container import Health
from husk.engine.model.container_config import EndpointRequest, HostConfig, PortBinding


class NetworkingConfig(Struct, kw_only=True, rename="pascal"):
    endpoints_config: dict[str, EndpointRequest] = {}


class CreateExtras(Struct, kw_only=True, rename="pascal"):
    """The parts of a create request beside the fields of `Config`, which stand at its top level."""

    host_config: HostConfig = field(default_factory=HostConfig)
    networking_config: NetworkingConfig = field(default_factory=NetworkingConfig)


class RunHostConfig(Struct, kw_only=True, rename="pascal"):
    auto_remove: bool = False


class RunExtras(Struct, kw_only=True, rename="pascal"):
    """The parts of its request that a run needs before the container is made. Ours: dockerd has no such operation."""

    input: bytes | None = None
    host_config: RunHostConfig = field(default_factory=RunHostConfig)


class CreateResponse(Struct, kw_only=True, rename="pascal"):
    id: str
    warnings: list[str]


class WaitError(Struct, kw_only=True, rename="pascal"):
    message: str


class WaitResponse(Struct, kw_only=True, rename="pascal"):
    status_code: int
    error: WaitError | UnsetType = UNSET
    # Ours: what it is when nobody can look at it any more. Left out where it is false, as dockerd always does.
    oom_killed: bool | UnsetType = field(default=UNSET, name="OOMKilled")


class Port(Struct, kw_only=True, rename="pascal"):
    ip: str | UnsetType = field(default=UNSET, name="IP")
    private_port: int
    public_port: int | UnsetType = UNSET
    type: str


class EndpointSettings(Struct, kw_only=True, rename="pascal"):
    """A container on one network."""

    ipam_config: dict[str, object] | None = field(default=None, name="IPAMConfig")
    links: list[str] | None = None
    aliases: list[str] | None = None
    mac_address: str = ""
    driver_opts: dict[str, str] | None = None
    gw_priority: int = 0
    network_id: str = field(default="", name="NetworkID")
    endpoint_id: str = field(default="", name="EndpointID")
    gateway: str = ""
    ip_address: str = field(default="", name="IPAddress")
    ip_prefix_len: int = field(default=0, name="IPPrefixLen")
    ipv6_gateway: str = field(default="", name="IPv6Gateway")
    global_ipv6_address: str = field(default="", name="GlobalIPv6Address")
    global_ipv6_prefix_len: int = field(default=0, name="GlobalIPv6PrefixLen")
    dns_names: list[str] | None = field(default=None, name="DNSNames")


class SummaryHostConfig(Struct, kw_only=True, rename="pascal"):
    network_mode: str
    annotations: dict[str, str] | UnsetType = UNSET


class SummaryNetworks(Struct, kw_only=True, rename="pascal"):
    networks: dict[str, EndpointSettings]


class HealthSummary(Struct, kw_only=True, rename="pascal"):
    status: str
    failing_streak: int


class MountPoint(Struct, kw_only=True, rename="pascal"):
    """Something that is mounted in a container."""

    type: str
    name: str | UnsetType = UNSET
    source: str
    destination: str
    driver: str | UnsetType = UNSET
    mode: str
    rw: bool = field(name="RW")
    propagation: str


class ContainerSummary(Struct, kw_only=True, rename="pascal"):
    """One line of `docker ps`."""

    id: str
    names: list[str]
    image: str
    image_id: str = field(name="ImageID")
    command: str
    created: int
    ports: list[Port]
    size_rw: int | UnsetType = UNSET
    size_root_fs: int | UnsetType = UNSET
    labels: dict[str, str]
    state: str
    status: str
    host_config: SummaryHostConfig
    network_settings: SummaryNetworks
    mounts: list[MountPoint]
    health: HealthSummary | UnsetType = UNSET


class ContainerState(Struct, kw_only=True, rename="pascal"):
    status: str
    running: bool
    paused: bool
    restarting: bool
    oom_killed: bool = field(name="OOMKilled")
    dead: bool
    pid: int
    exit_code: int
    error: str
    started_at: str
    finished_at: str
    health: Health | UnsetType = UNSET


class DriverData(Struct, kw_only=True, rename="pascal"):
    data: dict[str, str] | None
    name: str


class NetworkSettings(Struct, kw_only=True, rename="pascal"):
    """Those that repeat the default bridge were taken out of the API in 1.52; `Gateway` and `IPAddress` stay here."""

    bridge: str | UnsetType = UNSET
    sandbox_id: str = field(default="", name="SandboxID")
    sandbox_key: str = ""
    ports: dict[str, list[PortBinding] | None] = {}
    hairpin_mode: bool | UnsetType = UNSET
    link_local_ipv6_address: str | UnsetType = field(default=UNSET, name="LinkLocalIPv6Address")
    link_local_ipv6_prefix_len: int | UnsetType = field(default=UNSET, name="LinkLocalIPv6PrefixLen")
    secondary_ip_addresses: UnsetType | None = field(default=UNSET, name="SecondaryIPAddresses")
    secondary_ipv6_addresses: UnsetType | None = field(default=UNSET, name="SecondaryIPv6Addresses")
    endpoint_id: str | UnsetType = field(default=UNSET, name="EndpointID")
    gateway: str | UnsetType = UNSET
    global_ipv6_address: str | UnsetType = field(default=UNSET, name="GlobalIPv6Address")
    global_ipv6_prefix_len: int | UnsetType = field(default=UNSET, name="GlobalIPv6PrefixLen")
    ip_address: str | UnsetType = field(default=UNSET, name="IPAddress")
    ip_prefix_len: int | UnsetType = field(default=UNSET, name="IPPrefixLen")
    ipv6_gateway: str | UnsetType = field(default=UNSET, name="IPv6Gateway")
    mac_address: str | UnsetType = UNSET
    networks: dict[str, EndpointSettings] = {}


class ContainerInspect(Struct, kw_only=True, rename="pascal"):
    """`docker inspect` of a container."""

    id: str
    created: str
    path: str
    args: Sequence[str]
    state: ContainerState
    image: str
    resolv_conf_path: str
    hostname_path: str
    hosts_path: str
    log_path: str
    name: str
    restart_count: int
    driver: str
    platform: str
    mount_label: str = ""
    process_label: str = ""
    app_armor_profile: str = ""
    exec_ids: list[str] | None = field(default=None, name="ExecIDs")
    host_config: dict[str, object]
    graph_driver: DriverData
    size_rw: int | UnsetType = UNSET
    size_root_fs: int | UnsetType = UNSET
    mounts: list[MountPoint]
    config: dict[str, object]
    network_settings: NetworkSettings


class PathStat(Struct, kw_only=True, rename="camel"):
    """The file that a path names; `mode` has Go's bits."""

    name: str
    size: int
    mode: int
    mtime: str
    link_target: str


class Change(Struct, kw_only=True, rename="pascal"):
    path: str
    kind: int


class TopResponse(Struct, kw_only=True, rename="pascal"):
    processes: list[list[str]] | None
    titles: list[str]


class UpdateResponse(Struct, kw_only=True, rename="pascal"):
    warnings: list[str] | None


class PruneResponse(Struct, kw_only=True, rename="pascal"):
    containers_deleted: list[str] | None
    space_reclaimed: int
