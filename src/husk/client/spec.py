"""The description of a container, in Python's words, and as the API writes it. Pure: no engine is asked here."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from husk.errors import InvalidParameter
from husk.text.digits import read_number

# A size: bytes, or a number with a unit as docker writes it: `64m`, `1.5g`.
Size = int | str
# One word is taken apart as a shell does; a list stays as it is.
Command = str | Sequence[str] | None
_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?) *([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_NANO = 1_000_000_000
_MOST_RESTARTS = (1 << 31) - 1


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the host, a volume or memory, at a place in the container.

    Mount(target="/data", source="/srv/data", read_only=True)
    Mount(target="/cache", source="cache", type="volume")
    """

    target: str  #: The path in the container
    source: str = ""  #: The path on the host, or the name of the volume or image
    type: str = "bind"  #: `bind`, `volume`, `tmpfs` or `image`
    read_only: bool = False  #: True if it cannot be written to
    #: Fields that only some types have, as the API has them: `BindOptions`, `VolumeOptions`, `TmpfsOptions`
    options: Mapping[str, Any] = {}


class Healthcheck(msgspec.Struct, frozen=True, kw_only=True):
    """A test that tells whether a container does its work; times in seconds.

    Healthcheck(test=["CMD", "curl", "-f", "http://localhost"], interval=5, retries=3)
    """

    test: Command  #: The command; a string is run by the container's shell, an empty list tests nothing
    interval: float = 0  #: The time between two tests
    timeout: float = 0  #: The time that a test may take
    retries: int = 0  #: The number of failures in a row that make it unhealthy
    start_period: float = 0  #: The time at the beginning in which failures do not count
    start_interval: float = 0  #: The time between two tests in that period


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A container to be: the keywords of `run`, `container` and `containers.create`.

    ContainerSpec(image="busybox", command=["sleep", "60"], memory="64m", ports={"80/tcp": 8080})
    """

    image: str  #: The image, by name or id
    command: Command = None  #: The command and its arguments; that of the image if None
    name: str = ""  #: The name; one is invented if empty
    entrypoint: Command = None  #: The program that gets the command as arguments; that of the image if None
    #: Variables: `{"NAME": "value"}` or `["NAME=value"]`; None takes one of the image away
    environment: Mapping[str, str | None] | Sequence[str] = ()
    labels: Mapping[str, str] = {}  #: Labels
    user: str = ""  #: The user, as `name`, `name:group` or numbers
    working_dir: str = ""  #: The directory that it starts in
    hostname: str = ""  #: The name of its host
    domainname: str = ""  #: The domain of its host
    tty: bool = False  #: True for a terminal
    stdin: bool = False  #: True if it may be written to; its input ends with that of the first client
    platform: str = ""  #: The platform, as `linux/arm64`

    # what it sees
    mounts: Sequence[Mount] = ()  #: Mounts
    volumes: Sequence[str] = ()  #: Mounts as `docker run -v` takes them: `/host:/there:ro`, `name:/there`
    volumes_from: Sequence[str] = ()  #: Containers whose mounts it gets, as `name:ro`
    tmpfs: Mapping[str, str] = {}  #: Directories in memory, with options: `{"/run": "size=1m"}`
    devices: Sequence[str] = ()  #: Devices of the host: `/dev/fuse`, `/dev/a:/dev/b:rw`
    shm_size: Size = 0  #: The size of `/dev/shm`: bytes, or with a unit as `64m`
    read_only: bool = False  #: True if its root cannot be written to

    # its network
    network: str = ""  #: A network, or `bridge`, `host`, `none`, `container:NAME`
    aliases: Sequence[str] = ()  #: More names on its network
    ip: str = ""  #: Its address; one is chosen if empty
    ip6: str = ""  #: Its address of IPv6; one is chosen if empty
    mac_address: str = ""  #: Its MAC address; one is chosen if empty
    #: Ports in the container (`80`, `53/udp`) and those of the host: a number, (address, number), None for any, or a
    #: list
    ports: Mapping[str | int, Any] = {}
    expose: Sequence[str | int] = ()  #: Ports that it listens on
    publish_all_ports: bool = False  #: True to publish all of these on any port of the host
    dns: Sequence[str] = ()  #: Servers for names
    dns_search: Sequence[str] = ()  #: Domains that names are looked up in
    dns_opt: Sequence[str] = ()  #: Options for looking up names
    extra_hosts: Sequence[str] = ()  #: More lines for `/etc/hosts`: `name:address`
    links: Sequence[str] = ()  #: Other containers that it sees by other names, as `container:name`

    # its limits
    memory: Size = 0  #: The most memory: bytes, or with a unit as `64m`
    memory_reservation: Size = 0  #: The memory that it keeps when the host has little: bytes, or with a unit as `64m`
    memory_swap: Size = 0  #: The most memory with swap: bytes, or with a unit as `64m`; -1 for no limit
    cpus: float = 0  #: The most processors, as `1.5`
    cpu_shares: int = 0  #: Its part of the processors beside others
    cpuset_cpus: str = ""  #: The processors that it may use, as `0-2`
    cpuset_mems: str = ""  #: The memory nodes that it may use
    pids_limit: int | None = None  #: The most processes
    ulimits: Mapping[str, int | tuple[int, int]] = {}  #: Limits by name: a number, or (soft, hard)
    blkio_weight: int = 0  #: Its part of the disk beside others
    storage_opt: Mapping[str, str] = {}  #: Options for its files, as `size`
    oom_kill_disable: bool = False  #: True to wait, and not to kill, when memory is short
    oom_score_adj: int = 0  #: How early the kernel kills it when the host has no memory

    # what it may
    privileged: bool = False  #: True for all capabilities and devices
    cap_add: Sequence[str] = ()  #: Capabilities that it gets
    cap_drop: Sequence[str] = ()  #: Capabilities that it does not get
    security_opt: Sequence[str] = ()  #: `no-new-privileges`, `seccomp=…` and so on
    group_add: Sequence[str] = ()  #: More groups of its user
    sysctls: Mapping[str, str] = {}  #: Settings of the kernel for it
    ipc_mode: str = ""  #: `private`, `shareable`, `host` or `container:NAME`
    pid_mode: str = ""  #: `host` or `container:NAME`
    uts_mode: str = ""  #: `host`
    userns_mode: str = ""  #: `host`
    cgroupns: str = ""  #: `private` or `host`
    cgroup_parent: str = ""  #: The control group above its own
    runtime: str = ""  #: The name of an OCI runtime

    # its life
    init: bool | None = None  #: True for an init process that reaps others; the engine decides if None
    auto_remove: bool = False  #: True to remove it at its end
    restart: str = ""  #: `no`, `always`, `unless-stopped` or `on-failure:3`
    stop_signal: str = ""  #: The signal that asks it to end
    stop_timeout: int | None = None  #: Seconds until it is killed
    healthcheck: Healthcheck | None = None  #: The test of its health; that of the image if None
    log_driver: str = ""  #: The log driver; the engine's own if empty
    log_opts: Mapping[str, str] = {}  #: Options of the log driver

    extra_config: Mapping[str, Any] = {}  #: Fields of the API that have no name here, merged into the document
    extra_host_config: Mapping[str, Any] = {}  #: The same, merged into its `HostConfig`


def document(spec: ContainerSpec) -> dict[str, Any]:
    """The body of `POST /containers/create`; InvalidParameter says which keyword cannot be understood."""
    exposed: dict[str, Any] = {_port(port): {} for port in (*spec.expose, *spec.ports)}
    config: dict[str, Any] = {
        "Image": spec.image,
        "Cmd": words(spec.command),
        "Entrypoint": words(spec.entrypoint),
        "Env": environment(spec.environment),
        "Labels": dict(spec.labels),
        "User": spec.user,
        "WorkingDir": spec.working_dir,
        "Hostname": spec.hostname,
        "Domainname": spec.domainname,
        "Tty": spec.tty,
        "OpenStdin": spec.stdin,
        "StdinOnce": spec.stdin,
        "AttachStdin": spec.stdin,
        "AttachStdout": True,
        "AttachStderr": True,
        "ExposedPorts": exposed,
        "StopSignal": spec.stop_signal or None,
        "Healthcheck": None if spec.healthcheck is None else healthcheck_document(spec.healthcheck),
        "HostConfig": {**_host_config(spec), **spec.extra_host_config},
        **spec.extra_config,
    }
    if endpoint := _endpoint(spec):
        config["NetworkingConfig"] = {"EndpointsConfig": {spec.network or "default": endpoint}}
    said = _said(config)
    return said if spec.stop_timeout is None else {**said, "StopTimeout": spec.stop_timeout}


def _host_config(spec: ContainerSpec) -> dict[str, Any]:
    restart, _, number = spec.restart.partition(":")
    if (times := read_number(number or "0", most=_MOST_RESTARTS)) is None:
        raise InvalidParameter(f"restart: {spec.restart!r} is no policy: expected for example on-failure:3")
    config: dict[str, Any] = {
        "Binds": list(spec.volumes),
        "VolumesFrom": list(spec.volumes_from),
        "Mounts": [mount_document(mount) for mount in spec.mounts],
        "Tmpfs": dict(spec.tmpfs),
        "Devices": [_device(device) for device in spec.devices],
        "ShmSize": size(spec.shm_size),
        "ReadonlyRootfs": spec.read_only,
        "NetworkMode": spec.network,
        "PortBindings": {_port(port): _bindings(port, where) for port, where in spec.ports.items()},
        "PublishAllPorts": spec.publish_all_ports,
        "Dns": list(spec.dns),
        "DnsSearch": list(spec.dns_search),
        "DnsOptions": list(spec.dns_opt),
        "ExtraHosts": list(spec.extra_hosts),
        "Links": list(spec.links),
        "Memory": size(spec.memory),
        "MemoryReservation": size(spec.memory_reservation),
        "MemorySwap": size(spec.memory_swap),
        "NanoCpus": round(spec.cpus * _NANO),
        "CpuShares": spec.cpu_shares,
        "CpusetCpus": spec.cpuset_cpus,
        "CpusetMems": spec.cpuset_mems,
        "PidsLimit": spec.pids_limit,
        "Ulimits": [ulimit(name, limit) for name, limit in spec.ulimits.items()],
        "BlkioWeight": spec.blkio_weight,
        "StorageOpt": dict(spec.storage_opt),
        "OomKillDisable": spec.oom_kill_disable or None,
        "OomScoreAdj": spec.oom_score_adj,
        "Privileged": spec.privileged,
        "CapAdd": list(spec.cap_add),
        "CapDrop": list(spec.cap_drop),
        "SecurityOpt": list(spec.security_opt),
        "GroupAdd": list(spec.group_add),
        "Sysctls": dict(spec.sysctls),
        "IpcMode": spec.ipc_mode,
        "PidMode": spec.pid_mode,
        "UTSMode": spec.uts_mode,
        "UsernsMode": spec.userns_mode,
        "CgroupnsMode": spec.cgroupns,
        "CgroupParent": spec.cgroup_parent,
        "Runtime": spec.runtime,
        "AutoRemove": spec.auto_remove,
        "RestartPolicy": {"Name": restart, "MaximumRetryCount": times} if restart else {},
        "LogConfig": {"Type": spec.log_driver, "Config": dict(spec.log_opts)}
        if spec.log_driver or spec.log_opts
        else {},
    }
    said = _said(config)
    return said if spec.init is None else {**said, "Init": spec.init}


def _said(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that have a value; the rest is left to the engine."""
    return {name: value for name, value in config.items() if value}


def words(command: Command) -> list[str] | None:
    """A command as a list; one string is taken apart as a shell does it."""
    if command is None:
        return None
    return shlex.split(command) if isinstance(command, str) else list(command)


def environment(given: Mapping[str, str | None] | Sequence[str]) -> list[str]:
    """`NAME=value` for each; a name alone takes a variable of the image away."""
    if isinstance(given, Mapping):
        return [name if value is None else f"{name}={value}" for name, value in given.items()]
    return list(given)


def size(value: Size) -> int:
    """Bytes. InvalidParameter for what is no size."""
    if isinstance(value, int):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        if value.strip() == "-1":
            return -1
        raise InvalidParameter(f"invalid size: {value!r}: expected for example 64m or 1g")
    return int(float(found[1]) * (1 << _UNITS[found[2].lower()]))


def nanoseconds(seconds: float) -> int:
    return round(seconds * _NANO)


def _endpoint(spec: ContainerSpec) -> dict[str, Any]:
    addresses = {"IPv4Address": spec.ip, "IPv6Address": spec.ip6}
    endpoint = {
        "Aliases": list(spec.aliases),
        "IPAMConfig": {name: value for name, value in addresses.items() if value},
        "MacAddress": spec.mac_address,
    }
    return {name: value for name, value in endpoint.items() if value}


def mount_document(mount: Mount) -> dict[str, Any]:
    """A mount as the API writes it."""
    return {
        "Type": mount.type,
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        **mount.options,
    }


def _device(text: str) -> dict[str, str]:
    host, _, rest = text.partition(":")
    inside, _, rights = rest.partition(":")
    return {"PathOnHost": host, "PathInContainer": inside or host, "CgroupPermissions": rights or "rwm"}


def ulimit(name: str, limit: int | tuple[int, int]) -> dict[str, Any]:
    """A limit as the API writes it: one number is soft and hard."""
    soft, hard = limit if isinstance(limit, tuple) else (limit, limit)
    return {"Name": name, "Soft": soft, "Hard": hard}


def _port(port: str | int) -> str:
    text = str(port)
    return text if "/" in text else f"{text}/tcp"


def _bindings(port: str | int, where: Any) -> list[dict[str, str]]:
    if isinstance(where, list):
        return [binding for each in where for binding in _bindings(port, each)]
    if where is None:
        return [{"HostIp": "", "HostPort": ""}]
    if isinstance(where, int | str):
        return [{"HostIp": "", "HostPort": str(where)}]
    if isinstance(where, tuple) and len(where) == 2:
        return [{"HostIp": str(where[0]), "HostPort": "" if where[1] is None else str(where[1])}]
    raise InvalidParameter(f"ports: {where!r} for {port} is no place: expected 8080, ('127.0.0.1', 80), None or a list")


def healthcheck_document(check: Healthcheck) -> dict[str, Any]:
    """A test as the API writes it; nothing to test with means none, also where the image has one."""
    test = ["CMD-SHELL", check.test] if isinstance(check.test, str) else list(check.test or ["NONE"])
    if not isinstance(check.test, str) and test[:1] not in (["CMD"], ["CMD-SHELL"], ["NONE"]):
        test = ["CMD", *test]
    return {
        "Test": test,
        "Interval": nanoseconds(check.interval),
        "Timeout": nanoseconds(check.timeout),
        "Retries": check.retries,
        "StartPeriod": nanoseconds(check.start_period),
        "StartInterval": nanoseconds(check.start_interval),
    }
