"""A container's record becomes what the OCI runtime is told. Pure: record and facts about the host in, spec out."""

from collections.abc import Mapping, Sequence

import msgspec

from husk.engine.containers.config import security
from husk.engine.host import EngineHost
from husk.engine.model.container import Container, MountPoint
from husk.engine.model.container_config import HostConfig, ThrottleDevice, WeightDevice
from husk.engine.model.paths import clean
from husk.runtime.assembly.paths import ContainerPaths, cgroup_below
from husk.runtime.seccomp import custom_profile, default_profile
from husk.runtime.seccomp.precompiled import STAND_IN
from husk.runtime.spec import capabilities
from husk.runtime.spec.document import Device, DeviceRule, Resources, Rlimit, RuntimeContainer, SpecMount, Throttle
from husk.runtime.spec.host_facts import clamp
from husk.runtime.spec.users import ProcessUser

DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CPU_PERIOD = 100_000


class Extras(msgspec.Struct, frozen=True):
    """Facts that only the host can tell, looked up before planning."""

    devices: tuple[Device, ...] = ()
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    filtered: bool = False
    """The filter of system calls is among the annotations, and the runtime takes it from there."""
    source_flags: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The options that sources of mounts have on the host (`noexec`, `ro`) and `file` for one, by destination."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The places of sources of mounts while the container is made, by destination, if not where the host has them."""
    device_rules: tuple[DeviceRule, ...] = ()
    block_devices: Mapping[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Numbers of the devices that block I/O limits name, by path."""
    joined: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Paths of the namespaces of other containers that it joins, by OCI type."""
    shm: str = ""
    """A directory of the host that is its /dev/shm, where it shares that."""
    environment: tuple[str, ...] = ()
    """Variables that tell of the containers it is linked to."""


NO_EXTRAS = Extras()


def plan(
    container: Container, paths: ContainerPaths, user: ProcessUser, host: EngineHost, extras: Extras = NO_EXTRAS
) -> tuple[RuntimeContainer, list[str]]:
    """The container as this host can run it, and warnings where that is less than was asked for."""
    config, host_config = container.config, container.host_config
    privileged = host_config.privileged
    options = security.parse(host_config.security_opt, _default_security(host_config, host))
    wanted = RuntimeContainer(
        rootfs=str(paths.rootfs),
        args=(container.path, *container.args),
        env=environment([*extras.environment, *config.env], config.hostname, config.tty, "" if user.listed else "/"),
        cwd=config.working_dir or "/",
        user=user,
        terminal=config.tty,
        console_size=_console_size(host_config),
        hostname=config.hostname,
        domainname=config.domainname,
        read_only_rootfs=host_config.readonly_rootfs,
        capabilities=_capabilities(host_config, host),
        no_new_privileges=options.no_new_privileges,
        apparmor_profile=options.apparmor if host.limits.apparmor else "",
        writable_cgroups=options.writable_cgroups,
        privileged=privileged,
        namespaces={**namespaces(container), **extras.joined},
        mounts=(*shared_memory(host_config, extras.shm), *mounts(container, paths, extras)),
        shm_size=0 if host_config.ipc_mode == "none" else host_config.shm_size,
        resources=resources(host_config, extras.block_devices),
        cgroup_path=cgroup_path(container, paths.cgroup),
        masked_paths=None if host_config.masked_paths is None else tuple(host_config.masked_paths),
        readonly_paths=None if host_config.readonly_paths is None else tuple(host_config.readonly_paths),
        sysctls=host_config.sysctls or {},
        rlimits=rlimits(host_config, host),
        oom_score_adj=host_config.oom_score_adj or None,
        devices=extras.devices,
        device_rules=extras.device_rules,
        seccomp=STAND_IN if extras.filtered else seccomp_profile(host_config, host),
        annotations={**(host_config.annotations or {}), **extras.annotations},
        init_path=host.init_path if wants_init(host_config, host) else "",
        rootfs_propagation=rootfs_propagation(container),
    )
    return clamp(wanted, host.limits)


def wants_init(host_config: HostConfig, host: EngineHost) -> bool:
    """Its own word counts; the daemon's default is for containers whose first process is the first of their own."""
    if host_config.init is None:
        return host.init and bool(host.init_path) and host_config.pid_mode in ("", "private")
    return host_config.init


def _default_security(host_config: HostConfig, host: EngineHost) -> security.SecurityOptions:
    """Privileged containers have no filter, unless they name one themselves."""
    return security.SecurityOptions(
        no_new_privileges=host.no_new_privileges, seccomp="" if host_config.privileged else host.seccomp
    )


def _console_size(host_config: HostConfig) -> tuple[int, int] | None:
    """(height, width) that the terminal has when the program starts."""
    height, width = [*host_config.console_size, 0, 0][:2]
    return (height, width) if height and width else None


def seccomp_profile(host_config: HostConfig, host: EngineHost) -> dict[str, object] | None:
    """The filter of system calls that goes with the container's capabilities, if it is to have one."""
    options = security.parse(host_config.security_opt, _default_security(host_config, host))
    if (own := options.custom_profile) is not None:
        return custom_profile.resolve(own, _capabilities(host_config, host), host.machine, host.kernel)
    if host_config.privileged or options.seccomp_unconfined:
        return None
    return default_profile.profile(_capabilities(host_config, host), host.machine)


def cgroup_path(container: Container, default: str) -> str:
    """Return the path of the container's control groups: below Husk's own parent, or the one that the client names."""
    parent = container.host_config.cgroup_parent
    return cgroup_below(parent, container.id) if parent else default


def rlimits(host_config: HostConfig, host: EngineHost) -> tuple[Rlimit, ...]:
    """Of limits with the same name the later counts. The daemon's own limit of open files is not the containers'."""
    wanted = {limit.name.upper(): limit for limit in host_config.ulimits or []}
    found = [Rlimit(type=f"RLIMIT_{name}", soft=limit.soft, hard=limit.hard) for name, limit in wanted.items()]
    if host.open_files and "NOFILE" not in wanted:
        found.append(Rlimit("RLIMIT_NOFILE", soft=host.open_files, hard=host.limits.hard_limits["RLIMIT_NOFILE"]))
    return tuple(found)


def _capabilities(host_config: HostConfig, host: EngineHost) -> tuple[str, ...]:
    available = host.limits.capabilities
    return capabilities.resolve(host_config.cap_add, host_config.cap_drop, host_config.privileged, available)


def environment(own: Sequence[str], hostname: str, tty: bool, home: str = "") -> tuple[str, ...]:
    """Docker's defaults, replaced or (by a name without a value) removed by the container's own variables.

    The runtime knows the `home` of users that the passwd file lists; to runc that of others is `/`, crun has none.
    """
    defaults = [DEFAULT_PATH, f"HOSTNAME={hostname}", *(["TERM=xterm"] if tty else [])]
    defaults += [f"HOME={home}"] if home else []
    values: dict[str, str] = {}
    for entry in [*defaults, *own]:
        name, separator, value = entry.partition("=")
        if name == "HOME" and separator and not value:
            # To runc an empty one is none; crun would leave it empty.
            values.pop(name, None)
            values |= {name: f"HOME={home}"} if home else {}
        elif separator:
            values[name] = entry
        else:
            values.pop(name, None)
    return tuple(values.values())


def namespaces(container: Container) -> dict[str, str]:
    """OCI namespace types of its own (with the path to join, or empty for a new one); those absent are the host's."""
    host_config = container.host_config
    spaces = {"mount": ""}
    if host_config.network_mode != "host":
        spaces["network"] = container.sandbox_path
    if host_config.pid_mode != "host":
        spaces["pid"] = ""
    if host_config.ipc_mode != "host":
        spaces["ipc"] = ""
    if host_config.uts_mode != "host":
        spaces["uts"] = ""
    if host_config.cgroupns_mode == "private":
        spaces["cgroup"] = ""
    return spaces


def mounts(container: Container, paths: ContainerPaths, extras: Extras = NO_EXTRAS) -> tuple[SpecMount, ...]:
    host_config = container.host_config
    own_files = ("rbind", "rprivate", *(["ro"] if host_config.readonly_rootfs else []))
    result = [
        SpecMount(destination=destination, type="bind", source=str(source), options=own_files)
        for destination, source in (
            ("/etc/resolv.conf", paths.resolv_conf),
            ("/etc/hostname", paths.hostname),
            ("/etc/hosts", paths.hosts),
        )
        if not any(point.destination == destination for point in container.mounts)
    ]
    replacing = {clean(path) for path in host_config.tmpfs or {}}
    for path, options in (host_config.tmpfs or {}).items():
        result.append(tmpfs(path, options))
    for number, point in enumerate(container.mounts):
        if point.destination in replacing:
            continue
        if point.type == "tmpfs":
            result.append(tmpfs(point.destination, point.options))
            continue
        source = str(paths.staging / str(number)) if point.staged else point.source
        source = extras.places.get(point.destination, source)
        how = _how(point, extras.source_flags.get(point.destination, ()))
        result.append(SpecMount(destination=point.destination, type="bind", source=source, options=how))
    return tuple(result)


def _how(point: MountPoint, source_flags: tuple[str, ...]) -> tuple[str, ...]:
    """The options of a mount. crun drops the flags that the source has unless they are repeated, and with `rw`."""
    propagation = point.propagation or "rprivate"
    # crun takes the first letter of rprivate for a wish to bind recursively.
    words = ["rbind", propagation] if point.recursive else ["bind", propagation.removeprefix("r")]
    if not point.rw:
        # Nothing can be mounted below a file, and crun (1.8) opens whatever is `rro` as a directory.
        recursive = point.recursive and point.readonly_recursive and "file" not in source_flags
        words.append("rro" if recursive else "ro")
    return (*words, *(flag for flag in source_flags if flag != "file" and (point.rw or flag != "ro")))


def rootfs_propagation(container: Container) -> str:
    """Return the root's propagation: it must let through that of the mounts in it. Empty for the default."""
    kinds = [point.propagation for point in container.mounts if point.type == "bind"]
    kinds += [word for options in (container.host_config.tmpfs or {}).values() for word in options.split(",")]
    wanted = {kind.removeprefix("r") for kind in kinds}
    if "shared" in wanted:
        return "shared"
    # By default crun makes all mounts private at the end, such as are not to be bound, too.
    return "rslave" if wanted & {"slave", "unbindable"} else ""


_OPPOSITES = {
    **{f"no{word}": word for word in ("exec", "suid", "dev", "atime", "diratime", "relatime", "strictatime")},
    "ro": "rw",
    "async": "sync",
    **{f"{deep}{word}": "propagation" for word in ("private", "shared", "slave", "unbindable") for deep in ("", "r")},
}


def tmpfs(path: str, options: str) -> SpecMount:
    """Docker's safe defaults first; the client's own words override them."""
    words: dict[str, str] = {}
    for word in ["noexec", "nosuid", "nodev", *[word for word in options.split(",") if word]]:
        # Of two words that say the opposite of each other the last one counts.
        meaning = _OPPOSITES.get(word, word)
        words.pop(meaning, None)
        words[meaning] = word
    kept = tuple(word for word in words.values() if word not in ("exec", "suid", "dev"))
    return SpecMount(destination=path, type="tmpfs", source="tmpfs", options=kept)


def shared_memory(host_config: HostConfig, shared: str) -> tuple[SpecMount, ...]:
    """/dev/shm where it is not the container's alone."""
    source = "/dev/shm" if host_config.ipc_mode == "host" else shared
    return (
        (SpecMount("/dev/shm", "bind", source, ("rbind", "rprivate", "nosuid", "noexec", "nodev")),) if source else ()
    )


def block_paths(host_config: HostConfig, weights: bool = True) -> set[str]:
    """The devices that block I/O limits name, with or without those that only a weight is given."""
    return {
        item.path
        for items in (
            host_config.blkio_weight_device if weights else (),
            host_config.blkio_device_read_bps,
            host_config.blkio_device_write_bps,
            host_config.blkio_device_read_iops,
            host_config.blkio_device_write_iops,
        )
        for item in items or ()
    }


def resources(
    host_config: HostConfig, block_devices: Mapping[str, tuple[int, int]] = NO_EXTRAS.block_devices
) -> Resources:
    """Limits of block devices that are not in `block_devices` are left out."""

    def throttles(items: Sequence[ThrottleDevice | WeightDevice] | None) -> tuple[Throttle, ...]:
        return tuple(
            Throttle(*block_devices[item.path], item.rate if isinstance(item, ThrottleDevice) else item.weight)
            for item in items or ()
            if item.path in block_devices
        )

    # A negative quota is none: crun (1.8) has no number for that.
    quota, period = max(0, host_config.cpu_quota) or None, host_config.cpu_period or None
    if host_config.nano_cpus:
        period, quota = CPU_PERIOD, host_config.nano_cpus * CPU_PERIOD // 10**9
    return Resources(
        memory=host_config.memory or None,
        memory_swap=host_config.memory_swap or None,
        memory_reservation=host_config.memory_reservation or None,
        memory_swappiness=host_config.memory_swappiness,
        cpu_shares=host_config.cpu_shares or None,
        cpu_quota=quota,
        cpu_period=period,
        cpuset_cpus=host_config.cpuset_cpus or None,
        cpuset_mems=host_config.cpuset_mems or None,
        pids_limit=host_config.pids_limit or None,
        oom_kill_disable=host_config.oom_kill_disable or None,
        cpu_realtime_period=host_config.cpu_realtime_period or None,
        cpu_realtime_runtime=host_config.cpu_realtime_runtime or None,
        blkio_weight=host_config.blkio_weight or None,
        blkio_weight_device=throttles(host_config.blkio_weight_device),
        blkio_read_bps=throttles(host_config.blkio_device_read_bps),
        blkio_write_bps=throttles(host_config.blkio_device_write_bps),
        blkio_read_iops=throttles(host_config.blkio_device_read_iops),
        blkio_write_iops=throttles(host_config.blkio_device_write_iops),
    )
