"""A client's description of a container that it wants: the part that an image may carry too, and the host's part.

These types keep the API's own field names, because the API's vocabulary is the engine's own here and the same document
is what the store holds. Everything else on the wire is translated at the edge.
"""

from msgspec import Struct, field


class HealthConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    test: list[str] = []
    interval: int = 0
    timeout: int = 0
    retries: int = 0
    start_period: int = 0
    start_interval: int = 0


class ExecConfig(Struct, kw_only=True, rename="pascal", frozen=True):
    """Another process in a container, as a client describes it."""

    user: str = ""
    privileged: bool = False
    tty: bool = False
    console_size: list[int] | None = None
    attach_stdin: bool = False
    attach_stderr: bool = False
    attach_stdout: bool = False
    detach_keys: str = ""
    env: list[str] = []
    working_dir: str = ""
    cmd: list[str] = []


class ContainerConfig(Struct, kw_only=True, rename="pascal", frozen=True):
    """The portable part: what an image may carry too."""

    hostname: str = ""
    domainname: str = ""
    user: str = ""
    attach_stdin: bool = False
    attach_stdout: bool = False
    attach_stderr: bool = False
    exposed_ports: dict[str, dict[str, object]] | None = None
    tty: bool = False
    open_stdin: bool = False
    stdin_once: bool = False
    env: list[str] = []
    cmd: list[str] | None = None
    healthcheck: HealthConfig | None = None
    args_escaped: bool = False
    image: str = ""
    volumes: dict[str, dict[str, object]] | None = None
    working_dir: str = ""
    entrypoint: list[str] | None = None
    network_disabled: bool = False
    mac_address: str = ""
    on_build: list[str] | None = None
    labels: dict[str, str] = {}
    stop_signal: str | None = None
    stop_timeout: int | None = None
    shell: list[str] | None = None


class RestartPolicy(Struct, kw_only=True, rename="pascal", frozen=True):
    name: str = ""
    maximum_retry_count: int = 0


class LogConfig(Struct, kw_only=True, rename="pascal", frozen=True):
    type: str = ""
    config: dict[str, str] = {}


class PortBinding(Struct, kw_only=True, rename="pascal", frozen=True):
    host_ip: str = ""
    host_port: str = ""


class DeviceMapping(Struct, kw_only=True, rename="pascal", frozen=True):
    path_on_host: str = ""
    path_in_container: str = ""
    cgroup_permissions: str = ""


class DeviceRequest(Struct, kw_only=True, rename="pascal", frozen=True):
    driver: str = ""
    count: int = 0
    device_ids: list[str] | None = field(default=None, name="DeviceIDs")
    capabilities: list[list[str]] | None = None
    options: dict[str, str] | None = None


class ThrottleDevice(Struct, kw_only=True, rename="pascal", frozen=True):
    path: str = ""
    rate: int = 0


class WeightDevice(Struct, kw_only=True, rename="pascal", frozen=True):
    path: str = ""
    weight: int = 0


class Ulimit(Struct, kw_only=True, rename="pascal", frozen=True):
    name: str = ""
    soft: int = 0
    hard: int = 0


class BindOptions(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    propagation: str = ""
    non_recursive: bool = False
    create_mountpoint: bool = False
    read_only_non_recursive: bool = False
    read_only_force_recursive: bool = False


class DriverConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    name: str = ""
    options: dict[str, str] | None = None


class VolumeOptions(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    no_copy: bool = False
    labels: dict[str, str] | None = None
    driver_config: DriverConfig | None = None
    subpath: str = ""


class ImageOptions(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    subpath: str = ""


class TmpfsOptions(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    size_bytes: int = 0
    mode: int = 0
    options: list[list[str]] | None = None


class Mount(Struct, kw_only=True, rename="pascal", omit_defaults=True, frozen=True):
    type: str = ""
    source: str = ""
    target: str = ""
    read_only: bool = False
    consistency: str = ""
    bind_options: BindOptions | None = None
    volume_options: VolumeOptions | None = None
    image_options: ImageOptions | None = None
    tmpfs_options: TmpfsOptions | None = None
    cluster_options: dict[str, object] | None = None


class HostConfig(Struct, kw_only=True, rename="pascal", frozen=True):
    """The part that belongs to this host: limits, namespaces, mounts, network, policies."""

    binds: list[str] | None = None
    container_id_file: str = field(default="", name="ContainerIDFile")
    log_config: LogConfig = field(default_factory=LogConfig)
    network_mode: str = ""
    port_bindings: dict[str, list[PortBinding] | None] | None = None
    restart_policy: RestartPolicy = field(default_factory=RestartPolicy)
    auto_remove: bool = False
    volume_driver: str = ""
    volumes_from: list[str] | None = None
    mounts: list[Mount] | None = None
    console_size: list[int] = field(default_factory=lambda: [0, 0])
    annotations: dict[str, str] | None = None
    cap_add: list[str] | None = None
    cap_drop: list[str] | None = None
    cgroupns_mode: str = ""
    dns: list[str] | None = None
    dns_options: list[str] | None = None
    dns_search: list[str] | None = None
    extra_hosts: list[str] | None = None
    group_add: list[str] | None = None
    ipc_mode: str = ""
    cgroup: str = ""
    links: list[str] | None = None
    oom_score_adj: int = 0
    pid_mode: str = ""
    privileged: bool = False
    publish_all_ports: bool = False
    readonly_rootfs: bool = False
    security_opt: list[str] | None = None
    storage_opt: dict[str, str] | None = None
    tmpfs: dict[str, str] | None = None
    uts_mode: str = field(default="", name="UTSMode")
    userns_mode: str = ""
    shm_size: int = 0
    sysctls: dict[str, str] | None = None
    runtime: str = ""
    isolation: str = ""
    masked_paths: list[str] | None = None
    readonly_paths: list[str] | None = None
    cpu_shares: int = 0
    memory: int = 0
    nano_cpus: int = 0
    cgroup_parent: str = ""
    blkio_weight: int = 0
    blkio_weight_device: list[WeightDevice] | None = None
    blkio_device_read_bps: list[ThrottleDevice] | None = None
    blkio_device_write_bps: list[ThrottleDevice] | None = None
    blkio_device_read_iops: list[ThrottleDevice] | None = field(default=None, name="BlkioDeviceReadIOps")
    blkio_device_write_iops: list[ThrottleDevice] | None = field(default=None, name="BlkioDeviceWriteIOps")
    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_realtime_period: int = 0
    cpu_realtime_runtime: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    devices: list[DeviceMapping] | None = None
    device_cgroup_rules: list[str] | None = None
    device_requests: list[DeviceRequest] | None = None
    memory_reservation: int = 0
    memory_swap: int = 0
    memory_swappiness: int | None = None
    oom_kill_disable: bool | None = None
    init: bool | None = None
    pids_limit: int | None = None
    ulimits: list[Ulimit] | None = None
    cpu_count: int = 0
    cpu_percent: int = 0
    io_maximum_iops: int = field(default=0, name="IOMaximumIOps")
    io_maximum_bandwidth: int = field(default=0, name="IOMaximumBandwidth")


class EndpointRequest(Struct, kw_only=True, rename="pascal", frozen=True):
    """A client's wishes for a container on one network."""

    ipam_config: dict[str, object] | None = field(default=None, name="IPAMConfig")
    links: list[str] | None = None
    mac_address: str = ""
    aliases: list[str] | None = None
    driver_opts: dict[str, str] | None = None
    gw_priority: int = 0
