"""From the flags of `run` and `create` to what the library makes a container of. Pure but for files that flags name."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from husk.cli.containers.environment import environment, labels
from husk.cli.containers.mounts import binds, mount, tmpfs
from husk.cli.containers.networks import networking
from husk.cli.containers.ports import exposed, published
from husk.cli.kit.read import mapping, seconds
from husk.client.spec import ContainerSpec, nanoseconds, size
from husk.errors import InvalidParameter
from husk.text.digits import read_number

# Flags whose value goes into a keyword of the same name.
_SAME = (
    *("cgroup_parent", "cgroupns", "cpuset_cpus", "cpuset_mems", "domainname", "hostname", "log_driver", "name"),
    *("platform", "runtime", "stop_signal", "stop_timeout", "user", "cap_add", "cap_drop", "dns", "dns_search"),
    *("volumes_from", "group_add", "auto_remove", "init", "oom_kill_disable", "pids_limit", "privileged"),
    *("publish_all", "read_only", "restart", "tty"),
)
_CPUS = re.compile(r"[0-9]{0,9}\.?[0-9]{0,9}")
_RENAMED = {"publish_all": "publish_all_ports"}
_SIZES = ("memory", "memory_reservation", "memory_swap", "shm_size")
_STREAMS = ("stdin", "stdout", "stderr")


def spec_of(image: str, command: Sequence[str], flags: Mapping[str, Any], detached: bool) -> ContainerSpec:
    """InvalidParameter says which flag cannot be understood."""
    named, nameless = binds(flags["volume"])
    network, endpoints = networking(
        flags["network"],
        flags["network_alias"],
        flags["ip"],
        flags["ip6"],
        flags["mac_address"],
        flags["link_local_ip"],
    )
    same = {_RENAMED.get(name, name): flags[name] for name in _SAME}
    sizes: dict[str, Any] = {name: size_of(name, flags[name]) for name in _SIZES if flags[name]}
    return ContainerSpec(
        image=image,
        command=list(command) or None,
        entrypoint=None if flags["entrypoint"] is None else [flags["entrypoint"]],
        environment=environment(flags["env_file"], flags["env"]),
        labels=labels(flags["label_file"], flags["label"]),
        working_dir=flags["workdir"],
        stdin=flags["interactive"],
        mounts=[mount(text) for text in flags["mount"]],
        volumes=named,
        tmpfs=tmpfs(flags["tmpfs"]),
        devices=flags["device"],
        network=network,
        ports=published(flags["publish"]),
        expose=exposed(flags["expose"]),
        dns_opt=flags["dns_option"],
        extra_hosts=[_host(text) for text in flags["add_host"]],
        links=flags["link"],
        cpus=cpus_of(flags["cpus"]),
        cpu_shares=flags["cpu_shares"] or 0,
        ulimits=dict(ulimit_of(text) for text in flags["ulimit"]),
        blkio_weight=flags["blkio_weight"] or 0,
        storage_opt=mapping("storage-opt", flags["storage_opt"]),
        oom_score_adj=flags["oom_score_adj"] or 0,
        security_opt=[_security(text) for text in flags["security_opt"] if text != "systempaths=unconfined"],
        sysctls=mapping("sysctl", flags["sysctl"]),
        ipc_mode=flags["ipc"],
        pid_mode=flags["pid"],
        uts_mode=flags["uts"],
        userns_mode=flags["userns"],
        log_opts=mapping("log-opt", flags["log_opt"]),
        extra_config=_config(flags, nameless, endpoints, detached),
        extra_host_config=_host_config(flags),
        **same,
        **sizes,
    )


def attached(flags: Mapping[str, Any], detached: bool) -> dict[str, bool]:
    """Tell for each stream if the client takes part in it: those of `-a`, else output, and input with `-i`."""
    wanted = [stream.lower() for stream in flags["attach"]]
    for stream in wanted:
        if stream not in _STREAMS:
            raise InvalidParameter(
                f'invalid argument "{stream}" for "-a, --attach" flag: valid streams are STDIN, STDOUT and STDERR'
            )
    if detached:
        return dict.fromkeys(_STREAMS, False)
    if wanted:
        return {stream: stream in wanted for stream in _STREAMS}
    return {"stdin": flags["interactive"], "stdout": True, "stderr": True}


def _config(
    flags: Mapping[str, Any], nameless: Mapping[str, Any], endpoints: Mapping[str, Any], detached: bool
) -> dict[str, Any]:
    streams = attached(flags, detached)
    config: dict[str, Any] = {f"Attach{stream.capitalize()}": here for stream, here in streams.items()}
    config["StdinOnce"] = flags["interactive"] and streams["stdin"]
    if nameless:
        config["Volumes"] = dict(nameless)
    if endpoints:
        config["NetworkingConfig"] = {"EndpointsConfig": dict(endpoints)}
    if check := _healthcheck(flags):
        config["Healthcheck"] = check
    return config


def _host_config(flags: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "Annotations": mapping("annotation", flags["annotation"]),
        "BlkioDeviceReadBps": _throttled("device-read-bps", flags, "Rate", size),
        "BlkioDeviceReadIOps": _throttled("device-read-iops", flags, "Rate", int),
        "BlkioDeviceWriteBps": _throttled("device-write-bps", flags, "Rate", size),
        "BlkioDeviceWriteIOps": _throttled("device-write-iops", flags, "Rate", int),
        "BlkioWeightDevice": _throttled("blkio-weight-device", flags, "Weight", int),
        "CpuPeriod": flags["cpu_period"],
        "CpuQuota": flags["cpu_quota"],
        "CpuRealtimePeriod": flags["cpu_rt_period"],
        "CpuRealtimeRuntime": flags["cpu_rt_runtime"],
        "DeviceCgroupRules": list(flags["device_cgroup_rule"]),
        "DeviceRequests": _gpus(flags["gpus"]),
        "MemorySwappiness": flags["memory_swappiness"],
        "VolumeDriver": flags["volume_driver"],
    }
    found = {name: value for name, value in config.items() if value not in (None, "", [], {})}
    if flags["init"] is False:
        found["Init"] = False  # else the engine's own setting counts
    if "systempaths=unconfined" in flags["security_opt"]:
        found |= {"MaskedPaths": [], "ReadonlyPaths": []}
    return found


def _throttled(flag: str, flags: Mapping[str, Any], amount: str, read: Callable[[str], int]) -> list[dict[str, Any]]:
    """Read limits of devices: `/dev/sda:1mb`."""
    found = []
    for text in flags[flag.replace("-", "_")]:
        path, _, limit = text.rpartition(":")
        try:
            found.append({"Path": path, amount: read(limit)})
        except (InvalidParameter, ValueError):
            path = ""
        if not path.startswith("/dev/"):
            raise InvalidParameter(f'invalid argument "{text}" for "--{flag}" flag: expected /dev/NAME:LIMIT')
    return found


def _healthcheck(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Read the health check out of the flags; parts that no flag gives stay as the image has them."""
    times = {
        name: seconds(flags[f"health_{flag}"], f"--health-{flag.replace('_', '-')}")
        for name, flag in (
            ("Interval", "interval"),
            ("Timeout", "timeout"),
            ("StartPeriod", "start_period"),
            ("StartInterval", "start_interval"),
        )
        if flags[f"health_{flag}"]
    }
    command, retries = flags["health_cmd"], flags["health_retries"]
    if flags["no_healthcheck"]:
        if times or command or retries:
            raise InvalidParameter("--no-healthcheck conflicts with --health-* options")
        return {"Test": ["NONE"]}
    found: dict[str, Any] = {name: nanoseconds(value) for name, value in times.items()}
    if command:
        found["Test"] = ["CMD-SHELL", command]
    if retries:
        found["Retries"] = retries
    return found


def size_of(name: str, text: str) -> int:
    try:
        return size(text)
    except InvalidParameter:
        flag = name.replace("_", "-")
        raise InvalidParameter(f'invalid argument "{text}" for "--{flag}" flag: invalid size: {text!r}') from None


def cpus_of(text: str, flag: str = "cpus") -> float:
    if not _CPUS.fullmatch(text or "0"):
        raise InvalidParameter(f'invalid argument "{text}" for "--{flag}" flag: expected for example 1.5')
    return float(text or 0)


def ulimit_of(text: str) -> tuple[str, int | tuple[int, int]]:
    name, _, limits = text.partition("=")
    soft, _, hard = limits.partition(":")
    try:
        return name, (int(soft), int(hard or soft))
    except ValueError:
        expected = "expected NAME=SOFT[:HARD]"
        raise InvalidParameter(f'invalid argument "{text}" for "--ulimit" flag: {expected}') from None


def _host(text: str) -> str:
    """`name:address`, or `name=address`."""
    name, _, address = text.partition("=") if "=" in text else text.partition(":")
    if not name or not address:
        raise InvalidParameter(f'invalid argument "{text}" for "--add-host" flag: expected HOST:IP')
    return f"{name}:{address.strip('[]')}"


def _security(text: str) -> str:
    """A profile is read here: the engine has no files of ours."""
    name, _, value = text.replace(":", "=", 1).partition("=") if "=" not in text else text.partition("=")
    if name != "seccomp" or value in ("unconfined", "builtin"):
        return text
    try:
        return f"seccomp={Path(value).read_text()}"
    except OSError as error:
        raise InvalidParameter(f"opening seccomp profile ({value}) failed: {error.strerror}") from None


def _gpus(text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    number = read_number(text)
    count = -1 if text == "all" else number or 0
    request: dict[str, Any] = {
        "Driver": "",
        "Count": count,
        "Capabilities": [["gpu"]],
        "DeviceIDs": None,
        "Options": {},
    }
    for field in text.split(","):
        key, _, value = field.strip().partition("=")
        if key == "device":
            request["DeviceIDs"] = value.split(",")
        elif key == "driver":
            request["Driver"] = value
        elif key == "count":
            if (number := read_number(value or "0")) is None and value != "all":
                raise InvalidParameter(f'invalid argument "{text}" for "--gpus" flag: count must be an integer')
            request["Count"] = -1 if number is None else number
    return [request]
