"""The daemon on the wire: version, info and events."""

from msgspec import UNSET, Struct, UnsetType, field


class Platform(Struct, kw_only=True, rename="pascal"):
    name: str


class ComponentVersion(Struct, kw_only=True, rename="pascal"):
    name: str
    version: str
    details: dict[str, str]


class SystemVersion(Struct, kw_only=True, rename="pascal"):
    platform: Platform
    components: list[ComponentVersion]
    version: str
    api_version: str
    min_api_version: str = field(name="MinAPIVersion")
    git_commit: str
    go_version: str
    os: str
    arch: str
    kernel_version: str
    experimental: bool | UnsetType = UNSET
    build_time: str


class PluginsInfo(Struct, kw_only=True, rename="pascal"):
    volume: list[str]
    network: list[str]
    authorization: list[str] | None
    log: list[str]


class IndexConfig(Struct, kw_only=True, rename="pascal"):
    name: str
    mirrors: list[str]
    secure: bool
    official: bool


class FirewallBackend(Struct, kw_only=True, rename="pascal"):
    driver: str


class RegistryConfig(Struct, kw_only=True, rename="pascal"):
    # Gone since 1.49, and null before.
    allow_nondistributable_artifacts_cidrs: UnsetType | None = field(
        default=UNSET, name="AllowNondistributableArtifactsCIDRs"
    )
    allow_nondistributable_artifacts_hostnames: UnsetType | None = UNSET
    index_configs: dict[str, IndexConfig]
    insecure_registry_cidrs: list[str] = field(name="InsecureRegistryCIDRs")
    mirrors: list[str] | None


class RuntimeInfo(Struct, kw_only=True):
    path: str
    runtime_args: list[str] | UnsetType = field(default=UNSET, name="runtimeArgs")
    # Since 1.44.
    status: dict[str, str] | UnsetType = UNSET


class SwarmInfo(Struct, kw_only=True, rename="pascal"):
    node_id: str = field(default="", name="NodeID")
    node_addr: str = ""
    local_node_state: str = "inactive"
    control_available: bool = False
    error: str = ""
    remote_managers: list[dict[str, str]] | None = None
    nodes: int | UnsetType = UNSET
    managers: int | UnsetType = UNSET
    cluster: dict[str, object] | UnsetType = UNSET


class Commit(Struct, kw_only=True):
    id: str = field(name="ID")


class AddressPool(Struct, kw_only=True, rename="pascal"):
    base: str
    size: int


class SystemInfo(Struct, kw_only=True, rename="pascal"):
    """`docker info`."""

    id: str = field(name="ID")
    containers: int
    containers_running: int
    containers_paused: int
    containers_stopped: int
    images: int
    driver: str
    driver_status: list[list[str]]
    plugins: PluginsInfo
    memory_limit: bool
    swap_limit: bool
    cpu_cfs_period: bool
    cpu_cfs_quota: bool
    cpu_shares: bool = field(name="CPUShares")
    cpu_set: bool = field(name="CPUSet")
    pids_limit: bool
    # Gone since 1.42 and 1.50; dockerd 28 tells older clients these.
    kernel_memory: bool | UnsetType = UNSET
    bridge_nf_iptables: bool | UnsetType = UNSET
    bridge_nf_ip6tables: bool | UnsetType = field(default=UNSET, name="BridgeNfIp6tables")
    ipv4_forwarding: bool = field(name="IPv4Forwarding")
    debug: bool
    nfd: int = field(name="NFd")
    oom_kill_disable: bool
    ngoroutines: int = field(name="NGoroutines")
    system_time: str
    logging_driver: str
    cgroup_driver: str
    cgroup_version: str
    nevents_listener: int = field(name="NEventsListener")
    kernel_version: str
    operating_system: str
    os_version: str = field(name="OSVersion")
    os_type: str = field(name="OSType")
    architecture: str
    index_server_address: str
    registry_config: RegistryConfig
    ncpu: int = field(name="NCPU")
    mem_total: int
    generic_resources: list[str] | None = None
    docker_root_dir: str
    http_proxy: str
    https_proxy: str
    no_proxy: str
    name: str
    labels: list[str]
    experimental_build: bool
    server_version: str
    runtimes: dict[str, RuntimeInfo]
    default_runtime: str
    swarm: SwarmInfo
    live_restore_enabled: bool
    isolation: str
    init_binary: str
    containerd_commit: Commit
    runc_commit: Commit
    init_commit: Commit
    security_options: list[str]
    default_address_pools: list[AddressPool] | UnsetType = UNSET
    # Since 1.49.
    firewall_backend: FirewallBackend | UnsetType = UNSET
    cdi_spec_dirs: list[str] = field(name="CDISpecDirs")
    warnings: list[str] | None


class EventActor(Struct, kw_only=True):
    id: str = field(name="ID")
    attributes: dict[str, str] = field(name="Attributes")


class EventMessage(Struct, kw_only=True):
    """One event. The three fields in front repeat the rest; the API dropped them in 1.52."""

    status: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    from_: str | UnsetType = field(default=UNSET, name="from")
    type: str = field(name="Type")
    action: str = field(name="Action")
    actor: EventActor = field(name="Actor")
    scope: str
    time: int
    time_nano: int = field(name="timeNano")
