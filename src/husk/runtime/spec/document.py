"""The input of the OCI runtime: a container's configuration becomes the `config.json` of its bundle.

Pure: the engine has looked everything up before (users, paths, devices, what the host allows); this module knows
Docker's defaults and the OCI vocabulary. The defaults themselves are in `husk.runtime.spec.document`.

Defaults that a container gets though nobody asked for them: programs in Docker containers rely on them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from husk.runtime.spec.users import ProcessUser, resolve_user

__all__ = [
    "Device",
    "DeviceRule",
    "ProcessUser",
    "Resources",
    "Rlimit",
    "RuntimeContainer",
    "SpecMount",
    "Throttle",
    "oci_spec",
    "resolve_user",
]

INIT_PATH = "/sbin/docker-init"

OCI_VERSION = "1.0.2"

Json = dict[str, object]
SHM_SIZE = 64 * 1024 * 1024

NAMESPACES = MappingProxyType({"mount": "", "network": "", "uts": "", "pid": "", "ipc": ""})

# Files that tell about the host or let a container change it: replaced by an empty file or directory.
MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)

READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

# Programs without root may listen on low ports and send pings: the network namespace is the container's own.
NETWORK_SYSCTLS = MappingProxyType(
    {"net.ipv4.ip_unprivileged_port_start": "0", "net.ipv4.ping_group_range": "0 2147483647"}
)

# type, major, minor, access: any node may be made, these may be used: null, zero, full, random, urandom, tty, console,
# ptmx, ptys.
DEVICE_RULES: tuple[tuple[str, int | None, int | None, str], ...] = (
    ("c", None, None, "m"),
    ("b", None, None, "m"),
    ("c", 1, 3, "rwm"),
    ("c", 1, 5, "rwm"),
    ("c", 1, 7, "rwm"),
    ("c", 1, 8, "rwm"),
    ("c", 1, 9, "rwm"),
    ("c", 5, 0, "rwm"),
    ("c", 5, 1, "rwm"),
    ("c", 5, 2, "rwm"),
    ("c", 136, None, "rwm"),
)


class SpecMount(msgspec.Struct, frozen=True):
    destination: str
    type: str = "bind"
    source: str = ""
    options: tuple[str, ...] = ()


class Device(msgspec.Struct, frozen=True):
    """A device node to make in the container."""

    path: str
    type: str
    major: int
    minor: int
    file_mode: int = 0o666
    uid: int = 0
    gid: int = 0


class DeviceRule(msgspec.Struct, frozen=True):
    """A line of the device whitelist; `None` numbers mean all."""

    allow: bool
    type: str = "a"
    major: int | None = None
    minor: int | None = None
    access: str = "rwm"


class Rlimit(msgspec.Struct, frozen=True):
    """`type` is the kernel's name (RLIMIT_NOFILE); -1 is unlimited."""

    type: str
    soft: int
    hard: int


class Throttle(msgspec.Struct, frozen=True):
    """A limit (or weight) of block I/O for one device."""

    major: int
    minor: int
    value: int


class Resources(msgspec.Struct, frozen=True):
    """Limits in the kernel's units; None is unset. `memory_swap` is memory plus swap, -1 unlimited."""

    memory: int | None = None
    memory_swap: int | None = None
    memory_reservation: int | None = None
    memory_swappiness: int | None = None
    oom_kill_disable: bool | None = None
    cpu_shares: int | None = None
    cpu_quota: int | None = None
    cpu_period: int | None = None
    cpu_realtime_runtime: int | None = None
    cpu_realtime_period: int | None = None
    cpuset_cpus: str | None = None
    cpuset_mems: str | None = None
    pids_limit: int | None = None
    blkio_weight: int | None = None
    blkio_weight_device: tuple[Throttle, ...] = ()
    blkio_read_bps: tuple[Throttle, ...] = ()
    blkio_write_bps: tuple[Throttle, ...] = ()
    blkio_read_iops: tuple[Throttle, ...] = ()
    blkio_write_iops: tuple[Throttle, ...] = ()


class RuntimeContainer(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a container that its runtime needs. None for paths lists means Docker's default.

    `namespaces` maps an OCI type (pid, network, ipc, uts, mount, cgroup, user) to the path of a namespace to join, or
    to "" for a new one; a type that is absent is shared with the host. A mount whose destination is one of the default
    mounts takes that one's place.
    """

    rootfs: str
    args: tuple[str, ...]
    env: tuple[str, ...] = ()
    cwd: str = "/"
    user: ProcessUser = msgspec.field(default_factory=ProcessUser)
    terminal: bool = False
    hostname: str = ""
    domainname: str = ""
    read_only_rootfs: bool = False
    capabilities: tuple[str, ...] = ()
    no_new_privileges: bool = False
    apparmor_profile: str = ""
    writable_cgroups: bool = False
    privileged: bool = False
    namespaces: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(NAMESPACES))
    mounts: tuple[SpecMount, ...] = ()
    shm_size: int = SHM_SIZE  # 0: no /dev/shm
    resources: Resources = msgspec.field(default_factory=Resources)
    cgroup_path: str = ""
    devices: tuple[Device, ...] = ()
    device_rules: tuple[DeviceRule, ...] = ()
    masked_paths: tuple[str, ...] | None = None
    readonly_paths: tuple[str, ...] | None = None
    sysctls: Mapping[str, str] = msgspec.field(default_factory=dict)
    rlimits: tuple[Rlimit, ...] = ()
    oom_score_adj: int | None = None
    seccomp: Mapping[str, object] | None = None
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    init_path: str = ""
    console_size: tuple[int, int] | None = None
    rootfs_propagation: str = ""


def oci_spec(spec: RuntimeContainer, cgroup_v2: bool) -> Json:
    """The bundle's `config.json`."""
    linux: Json = {
        "cgroupsPath": spec.cgroup_path,
        "namespaces": [_namespace(kind, path) for kind, path in spec.namespaces.items()],
        "resources": _resources(spec, cgroup_v2),
        "devices": [_device(device) for device in spec.devices],
        "maskedPaths": _paths(spec, spec.masked_paths, MASKED_PATHS),
        "readonlyPaths": _paths(spec, spec.readonly_paths, READONLY_PATHS),
        "sysctl": _sysctls(spec),
        "seccomp": spec.seccomp,
        "rootfsPropagation": spec.rootfs_propagation or None,
    }
    return {
        "ociVersion": OCI_VERSION,
        "process": _process(spec),
        "root": {"path": spec.rootfs, "readonly": spec.read_only_rootfs},
        **({"hostname": spec.hostname} if spec.hostname and "uts" in spec.namespaces else {}),
        "mounts": [_mount(mount) for mount in _mounts(spec)],
        "linux": _present(linux),
        **({"annotations": dict(spec.annotations)} if spec.annotations else {}),
    }


def _process(spec: RuntimeContainer) -> Json:
    capabilities = list(spec.capabilities)
    process: Json = {
        "terminal": spec.terminal,
        "user": _present(
            {"uid": spec.user.uid, "gid": spec.user.gid, "additionalGids": list(spec.user.additional_gids) or None}
        ),
        "args": [INIT_PATH, "--", *spec.args] if spec.init_path else list(spec.args),
        "env": list(spec.env),
        "cwd": spec.cwd or "/",
        # Nothing inheritable or ambient: an unprivileged user in the container starts without capabilities.
        "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
        "noNewPrivileges": spec.no_new_privileges,
        "apparmorProfile": spec.apparmor_profile or None,
        "oomScoreAdj": spec.oom_score_adj,
        "rlimits": [_rlimit(limit) for limit in spec.rlimits] or None,
    }
    if spec.terminal and spec.console_size and all(spec.console_size):
        process["consoleSize"] = {"height": spec.console_size[0], "width": spec.console_size[1]}
    return _present(process)


def _mounts(spec: RuntimeContainer) -> list[SpecMount]:
    own = {mount.destination.rstrip("/") for mount in spec.mounts}
    mounts = [mount for mount in _default_mounts(spec) if mount.destination not in own]
    # A parent is mounted before what lies below it, whatever order the client wrote.
    mounts += sorted(spec.mounts, key=lambda mount: mount.destination.rstrip("/").count("/"))
    if spec.init_path:
        mounts.append(SpecMount(INIT_PATH, "bind", spec.init_path, ("bind", "ro")))
    return mounts


def _default_mounts(spec: RuntimeContainer) -> list[SpecMount]:
    access = "rw" if spec.privileged else "ro"
    safe = ("nosuid", "noexec", "nodev")
    terminals = ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")
    mounts = [
        SpecMount("/proc", "proc", "proc", safe),
        SpecMount("/dev", "tmpfs", "tmpfs", ("nosuid", "strictatime", "mode=755", "size=65536k")),
        SpecMount("/dev/pts", "devpts", "devpts", terminals),
        SpecMount("/sys", "sysfs", "sysfs", (*safe, access)),
        SpecMount("/sys/fs/cgroup", "cgroup", "cgroup", (*safe, "rw" if spec.writable_cgroups else access)),
        SpecMount("/dev/mqueue", "mqueue", "mqueue", safe),
    ]
    if "ipc" not in spec.namespaces:
        mounts.append(SpecMount("/dev/shm", "bind", "/dev/shm", ("rbind",)))
    elif spec.shm_size:
        mounts.append(SpecMount("/dev/shm", "tmpfs", "shm", (*safe, "mode=1777", f"size={spec.shm_size}")))
    return mounts


def _paths(spec: RuntimeContainer, own: tuple[str, ...] | None, default: tuple[str, ...]) -> list[str]:
    if spec.privileged:
        return []
    return list(default if own is None else own)


def _sysctls(spec: RuntimeContainer) -> dict[str, str] | None:
    sysctls: dict[str, str] = {}
    own = spec.namespaces.get("network") == ""
    # A namespace that is there has them already (`network/sandbox.py`), and the runtime would pay for writing them
    # beside many others: a millisecond beside 1,000.
    if own and not spec.privileged and "user" not in spec.namespaces:
        sysctls |= NETWORK_SYSCTLS
    if spec.domainname and "uts" in spec.namespaces:
        # The OCI field for it is newer than the runtimes of Debian 12.
        sysctls["kernel.domainname"] = spec.domainname
    return sysctls | dict(spec.sysctls) or None


def _resources(spec: RuntimeContainer, cgroup_v2: bool) -> Json:
    limits = spec.resources
    if spec.privileged:
        rules = [DeviceRule(True)]
    else:
        rules = [DeviceRule(False), *(DeviceRule(True, *rule) for rule in DEVICE_RULES), *spec.device_rules]
    memory: Json = {
        "limit": limits.memory,
        "swap": limits.memory_swap,
        "reservation": limits.memory_reservation,
        # Neither exists in the second version of the memory controller.
        "swappiness": None if cgroup_v2 else limits.memory_swappiness,
        "disableOOMKiller": None if cgroup_v2 else limits.oom_kill_disable or None,
    }
    cpu: Json = {
        "shares": limits.cpu_shares,
        "quota": limits.cpu_quota,
        "period": limits.cpu_period,
        "realtimeRuntime": limits.cpu_realtime_runtime,
        "realtimePeriod": limits.cpu_realtime_period,
        "cpus": limits.cpuset_cpus or None,
        "mems": limits.cpuset_mems or None,
    }
    block: Json = {
        "weight": limits.blkio_weight,
        "weightDevice": [_throttle(item, "weight") for item in limits.blkio_weight_device] or None,
        "throttleReadBpsDevice": [_throttle(item, "rate") for item in limits.blkio_read_bps] or None,
        "throttleWriteBpsDevice": [_throttle(item, "rate") for item in limits.blkio_write_bps] or None,
        "throttleReadIOPSDevice": [_throttle(item, "rate") for item in limits.blkio_read_iops] or None,
        "throttleWriteIOPSDevice": [_throttle(item, "rate") for item in limits.blkio_write_iops] or None,
    }
    return _present(
        {
            "devices": [_device_rule(rule) for rule in rules],
            "memory": _present(memory) or None,
            "cpu": _present(cpu) or None,
            "blockIO": _present(block) or None,
            "pids": None if limits.pids_limit is None else {"limit": limits.pids_limit},
        }
    )


def oci_resources(spec: RuntimeContainer, cgroup_v2: bool) -> Json:
    """The limits alone, as a runtime takes them for a running container; its devices stay as they are."""
    return {name: value for name, value in _resources(spec, cgroup_v2).items() if name != "devices"}


def _namespace(kind: str, path: str) -> Json:
    return {"type": kind, "path": path} if path else {"type": kind}


def _mount(mount: SpecMount) -> Json:
    return {
        "destination": mount.destination,
        "type": mount.type,
        "source": mount.source,
        "options": list(mount.options),
    }


def _device(device: Device) -> Json:
    return {
        "path": device.path,
        "type": device.type,
        "major": device.major,
        "minor": device.minor,
        "fileMode": device.file_mode,
        "uid": device.uid,
        "gid": device.gid,
    }


def _device_rule(rule: DeviceRule) -> Json:
    return _present(
        {"allow": rule.allow, "type": rule.type, "major": rule.major, "minor": rule.minor, "access": rule.access}
    )


def _rlimit(limit: Rlimit) -> Json:
    # OCI numbers are unsigned; -1 is the kernel's RLIM_INFINITY.
    return {"type": limit.type, "soft": limit.soft % 2**64, "hard": limit.hard % 2**64}


def _throttle(item: Throttle, name: str) -> Json:
    return {"major": item.major, "minor": item.minor, name: item.value}


def _present(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}
