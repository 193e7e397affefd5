"""How does a container's record become what the OCI runtime is told? Pure: record and host facts in, spec out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from husk.engine.containers.model import Container, HostConfig, MountPoint
from husk.engine.containers.mounts import needs_staging
from husk.engine.host import Host
from husk.runtime import capabilities, seccomp
from husk.runtime.limits import clamp
from husk.runtime.spec import ContainerSpec, Device, Mount, Resources, Rlimit, User

DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CPU_PERIOD = 100_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where the container's things lie on the host."""

    rootfs: Path
    hosts: Path
    hostname: Path
    resolv_conf: Path
    cgroup_path: str
    staging: Path = Path()


@dataclass(frozen=True, slots=True)
class Extras:
    """What only the host can tell, looked up before planning."""

    devices: tuple[Device, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


NO_EXTRAS = Extras()


def plan(
    container: Container, place: Place, user: User, host: Host, extras: Extras = NO_EXTRAS
) -> tuple[ContainerSpec, list[str]]:
    """The container as this host can run it, and warnings where that is less than was asked for."""
    config, host_config = container.config, container.host_config
    privileged = host_config.privileged
    wanted = ContainerSpec(
        rootfs=str(place.rootfs),
        args=(container.path, *container.args),
        env=environment(config.env, config.hostname, config.tty),
        cwd=config.working_dir or "/",
        user=user,
        terminal=config.tty,
        hostname=config.hostname,
        domainname=config.domainname,
        read_only_rootfs=host_config.readonly_rootfs,
        capabilities=_capabilities(host_config, host),
        no_new_privileges=_no_new_privileges(host_config.security_opt or []),
        privileged=privileged,
        namespaces=namespaces(container),
        mounts=mounts(container, place),
        shm_size=host_config.shm_size,
        resources=resources(host_config),
        cgroup_path=place.cgroup_path,
        masked_paths=None if host_config.masked_paths is None else tuple(host_config.masked_paths),
        readonly_paths=None if host_config.readonly_paths is None else tuple(host_config.readonly_paths),
        sysctls=host_config.sysctls or {},
        rlimits=tuple(
            Rlimit(type=f"RLIMIT_{limit.name.upper()}", soft=limit.soft, hard=limit.hard)
            for limit in host_config.ulimits or []
        ),
        oom_score_adj=host_config.oom_score_adj or None,
        devices=extras.devices,
        seccomp=seccomp_profile(host_config, host),
        annotations={**(host_config.annotations or {}), **extras.annotations},
        init_path=host.init_path if host_config.init else "",
        rootfs_propagation=rootfs_propagation(container),
    )
    return clamp(wanted, host.limits)


def seccomp_profile(host_config: HostConfig, host: Host) -> dict[str, object] | None:
    """The filter of system calls that goes with the container's capabilities, if it is to have one."""
    if host_config.privileged or _unconfined(host_config.security_opt or []):
        return None
    return seccomp.profile(_capabilities(host_config, host), host.machine)


def _capabilities(host_config: HostConfig, host: Host) -> tuple[str, ...]:
    available = host.limits.capabilities
    return capabilities.resolve(host_config.cap_add, host_config.cap_drop, host_config.privileged, available)


def environment(own: Sequence[str], hostname: str, tty: bool) -> tuple[str, ...]:
    """Docker's defaults, replaced or (by a name without a value) removed by the container's own variables."""
    defaults = [DEFAULT_PATH, f"HOSTNAME={hostname}", *(["TERM=xterm"] if tty else [])]
    values: dict[str, str] = {}
    for entry in [*defaults, *own]:
        name, separator, _ = entry.partition("=")
        if separator:
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


def mounts(container: Container, place: Place) -> tuple[Mount, ...]:
    host_config = container.host_config
    result = [
        Mount(destination=destination, type="bind", source=str(source), options=("rbind", "rprivate"))
        for destination, source in (
            ("/etc/resolv.conf", place.resolv_conf),
            ("/etc/hostname", place.hostname),
            ("/etc/hosts", place.hosts),
        )
        if not any(point.destination == destination for point in container.mounts)
    ]
    if host_config.ipc_mode == "host":
        result.append(Mount(destination="/dev/shm", type="bind", source="/dev/shm", options=("rbind", "rprivate")))
    for path, options in (host_config.tmpfs or {}).items():
        result.append(tmpfs(path, options))
    for number, point in enumerate(container.mounts):
        if point.type == "tmpfs":
            result.append(tmpfs(point.destination, point.options))
            continue
        source = str(place.staging / str(number)) if needs_staging(point) else point.source
        result.append(Mount(destination=point.destination, type="bind", source=source, options=_how(point)))
    return tuple(result)


def _how(point: MountPoint) -> tuple[str, ...]:
    readonly = "rro" if point.recursive and point.readonly_recursive else "ro"
    return (
        "rbind" if point.recursive else "bind",
        point.propagation or "rprivate",
        "rw" if point.rw else readonly,
    )


def rootfs_propagation(container: Container) -> str:
    """What is mounted with propagation needs a root that lets it through."""
    wanted = {point.propagation.removeprefix("r") for point in container.mounts if point.type == "bind"}
    if "shared" in wanted:
        return "shared"
    return "rslave" if "slave" in wanted else ""


def tmpfs(path: str, options: str) -> Mount:
    """Docker's safe defaults first; the client's own words override them."""
    words = ["noexec", "nosuid", "nodev", *[word for word in options.split(",") if word]]
    for positive in ("exec", "suid", "dev"):
        if positive in words:
            words = [word for word in words if word not in (positive, "no" + positive)]
    return Mount(destination=path, type="tmpfs", source="tmpfs", options=tuple(words))


def resources(host_config: HostConfig) -> Resources:
    quota, period = host_config.cpu_quota or None, host_config.cpu_period or None
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
        pids_limit=host_config.pids_limit,
        blkio_weight=host_config.blkio_weight or None,
    )


def _no_new_privileges(options: Sequence[str]) -> bool:
    return any(option.replace(":", "=") in ("no-new-privileges", "no-new-privileges=true") for option in options)


def _unconfined(options: Sequence[str]) -> bool:
    return any(option.replace(":", "=") == "seccomp=unconfined" for option in options)
