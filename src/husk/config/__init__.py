"""The configuration of the daemon: settings, their defaults, and the names derived from them.

The keys are dockerd's. Two daemons with different data roots share a host because everything a daemon creates outside
its directories (bridge, nftables table, cgroup parent) carries a name derived here.

The parts of the daemon know these types alone. A start makes them:

    keys                     the table of dockerd's flags and keys, and what Husk makes of each
    settings                 what a `daemon.json` and a command line may hold, and the reading of it
    values, networks, builder, remarks, ulimits, etcd_address   rules for what a setting may be, and messages
    load                     flags and file become a `Config`
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

DEFAULT_HOST = "unix:///run/husk.sock"
DEFAULT_DATA_ROOT = Path("/var/lib/husk")
DEFAULT_EXEC_ROOT = Path("/run/husk")


class RuntimeConfig(msgspec.Struct, frozen=True):
    """An OCI runtime that containers may name: its program and extra arguments."""

    path: str
    args: tuple[str, ...] = ()


class AddressPool(msgspec.Struct, frozen=True):
    """Networks without a subnet of their own get one of `size` bits out of `base`."""

    base: str
    size: int


class TlsConfig(msgspec.Struct, frozen=True):
    """The certificates that a listener on TCP shows and asks for; None for a file that is absent and was not named."""

    verify: bool
    ca: Path
    cert: Path | None
    key: Path | None


class DefaultUlimit(msgspec.Struct, frozen=True):
    name: str
    soft: int
    hard: int


class Proxies(msgspec.Struct, frozen=True):
    """The proxies between the daemon and registries."""

    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""


NO_PROXIES = Proxies()


class DefaultBridge(msgspec.Struct, frozen=True):
    """The differences of the default network from one that nobody said anything about."""

    ipv6: bool = False
    bip6: str = ""
    fixed_cidr: str = ""
    fixed_cidr_v6: str = ""
    default_gateway: str = ""
    default_gateway_v6: str = ""
    icc: bool = True
    ip_masq: bool = True
    mtu: int = 0
    # The address of the host that ports are published on; empty for all.
    ip: str = ""


class ContainerDefaults(msgspec.Struct, frozen=True):
    """The settings of containers that do not say otherwise; empty and 0 for what Husk and the host decide."""

    default_ipc_mode: str = "private"
    default_shm_size: int = 64 << 20
    default_cgroupns_mode: str = ""
    cgroup_parent: str = ""
    default_ulimits: tuple[DefaultUlimit, ...] = ()
    # The path of a profile, `builtin` or `unconfined`.
    seccomp_profile: str = "builtin"
    no_new_privileges: bool = False
    init: bool = False
    dns: tuple[str, ...] = ()
    dns_opts: tuple[str, ...] = ()
    dns_search: tuple[str, ...] = ()


class CacheRule(msgspec.Struct, frozen=True):
    """A rule for the part of the cache of builds that may go, and when."""

    types: tuple[str, ...] = ()
    unused_for: str = ""  # a duration: `48h`
    keep: int = 0  # bytes that may stay
    all: bool = False  # also what images share, and what frontends have made


# Microseconds: a quota of processors is for each of these.
CPU_PERIOD = 100_000


class StepCeiling(msgspec.Struct, frozen=True):
    """The most that each process of a build gets, whatever it asks for; 0 for as much as there is."""

    memory: int = 0  # bytes
    cpu_quota: int = 0  # microseconds of processors in each tenth of a second


NO_CEILING = StepCeiling()


class BuilderConfig(msgspec.Struct, frozen=True):
    """The settings of builds, and of what is kept of them; without rules those of dockerd are taken."""

    collects: bool = True
    keep: int = 0  # bytes of the cache that may stay; 0: a tenth of the disk
    rules: tuple[CacheRule, ...] = ()
    insecure: bool = False  # may a step ask for all privileges?
    host_network: bool = True
    limits: StepCeiling = NO_CEILING


class DashboardConfig(msgspec.Struct, frozen=True):
    """Web pages for people: where they are, which other names that address has, and whether they change anything."""

    address: str
    names: tuple[str, ...] = ()
    read_only: bool = False


# Of a member of etcd, for clients and for other members.
ETCD_PORTS = (2379, 2380)


class ClusterStoreConfig(msgspec.Struct, frozen=True):
    """An etcd that exists, for the records of a swarm; CA, certificate and key by which both sides know each other."""

    address: str
    certificates: tuple[Path, Path, Path] | None = None


class Config(msgspec.Struct, frozen=True):
    """Settings of one daemon, complete and validated."""

    hosts: tuple[str, ...] = (DEFAULT_HOST,)
    data_root: Path = DEFAULT_DATA_ROOT
    exec_root: Path = DEFAULT_EXEC_ROOT
    pidfile: Path | None = None
    log_level: str = "info"
    # Husk's own: a thread watches the event loop and logs what holds it.
    debug_stalls: bool = False
    log_format: str = "text"
    insecure_registries: tuple[str, ...] = ()
    registry_mirrors: tuple[str, ...] = ()
    default_runtime: str = ""
    runtimes: Mapping[str, RuntimeConfig] = msgspec.field(default_factory=dict)
    # A reload takes over the runtimes of a file that names some, or none with an empty object.
    runtimes_in_file: bool = False
    bridge: str = ""
    # What the default bridge is called where nothing else has that name; empty for the name that marks this daemon.
    usual_bridge: str = ""
    bip: str = ""
    default_address_pools: tuple[AddressPool, ...] = ()
    labels: tuple[str, ...] = ()
    log_driver: str = "json-file"
    log_opts: Mapping[str, str] = msgspec.field(default_factory=dict)
    group: str = "docker"
    tls: TlsConfig | None = None
    # Nobody said whether TCP is to be guarded by TLS: only this machine may reach it.
    loopback_only: bool = True
    containers: ContainerDefaults = ContainerDefaults()
    init_path: str = ""
    default_bridge: DefaultBridge = DefaultBridge()
    default_network_opts: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)
    ip_forward: bool = True
    host_gateway_ips: tuple[str, ...] = ()
    proxies: Proxies = Proxies()
    max_concurrent_downloads: int = 3
    max_concurrent_uploads: int = 5
    max_download_attempts: int = 5
    # Seconds that the daemon's end waits for what is under way; None for as long as it takes.
    shutdown_timeout: float | None = 15.0
    # Whether containers outlive the daemon; else they end with it.
    live_restore: bool = True
    features: Mapping[str, bool] = msgspec.field(default_factory=dict)
    experimental: bool = False
    builder: BuilderConfig = BuilderConfig()
    # Husk's own: web pages; None for none.
    dashboard: DashboardConfig | None = None
    # Husk's own: the most bytes that one layer may unpack to; 0 is no limit.
    max_layer_size: int = 0
    # `host:port` of the Prometheus metrics; empty for none.
    metrics_addr: str = ""
    # Husk's own: of how many containers the metrics tell each one's own.
    metrics_containers: int = 1000
    # Husk's own: the file that changes are written to; None for none.
    audit_log: Path | None = None
    cluster_store: ClusterStoreConfig | None = None
    # Husk's own: the UDP port at which other hosts of a swarm reach this one for encrypted networks.
    wireguard_port: int = 51820
    # Husk's own: of a manager's member of etcd, for clients and for the other members.
    swarm_etcd_ports: tuple[int, int] = ETCD_PORTS
    # An address or an interface; empty for the address that leads out.
    swarm_default_advertise_addr: str = ""
    # What was asked for and means something else here, or nothing: one line each for the log.
    remarks: tuple[str, ...] = ()

    @property
    def instance(self) -> str:
        """Marks this daemon's things on the host: `husk`, or `husk-1a2b3c` for another data root."""
        if self.data_root == DEFAULT_DATA_ROOT:
            return "husk"
        return "husk-" + hashlib.sha256(str(self.data_root).encode()).hexdigest()[:6]

    @property
    def bridge_name(self) -> str:
        """Name of the default bridge's interface (at most 15 characters, a kernel limit)."""
        if self.bridge or self.usual_bridge:
            return self.bridge or self.usual_bridge
        return "husk0" if self.instance == "husk" else self.instance.replace("husk-", "hk-") + "-0"

    @property
    def without_bridge(self) -> bool:
        """There is no default network: Docker's word for that."""
        return self.bridge == "none"

    @property
    def nft_table(self) -> str:
        return self.instance

    @property
    def tunnel_name(self) -> str:
        """Name of the interface that encrypted networks run over."""
        return f"wg-{self.instance}"

    @property
    def cgroup_parent(self) -> str:
        return "/" + self.instance
