"""May a container be made like this? Checks a request, says what is wrong in Docker's words, and changes nothing.

What Docker can do and Husk cannot yet is refused here with 501, never accepted and ignored.
"""

import ipaddress
import os
import re

from husk.engine.containers.model import Config, EndpointRequest, HealthConfig, HostConfig
from husk.engine.containers.mounts import check_target, wanted_mounts
from husk.engine.containers.signals import parse_signal
from husk.engine.networks import requests as network_requests
from husk.errors import InvalidParameter, NotImplementedYet

MIN_MEMORY = 6 * 1024 * 1024
RESTART_POLICIES = ("", "no", "always", "unless-stopped", "on-failure")
LOG_DRIVERS = ("", "json-file", "none")
_LOG_DRIVERS_OF_DOCKER = ("local", "journald", "syslog", "fluentd", "gelf", "awslogs", "splunk", "gcplogs", "etwlogs")
_PORT = re.compile(r"\d{1,5}(-\d{1,5})?(/(tcp|udp|sctp))?", re.ASCII | re.IGNORECASE)
# Docker takes any name; the kernel takes 64 bytes, and a space or a '#' would end the name in /etc/hosts.
_HOSTNAME = re.compile(r"[^\x00-\x20\x7f#]{1,64}")
_CPUSET = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)

_SECURITY_OPTIONS = (
    "no-new-privileges", "no-new-privileges=true", "no-new-privileges=false", "seccomp=unconfined", "seccomp=builtin",
    "apparmor=unconfined", "label=disable",
)  # fmt: skip

_MISSING = (
    "links", "storage_opt", "device_requests",
    "blkio_weight_device", "blkio_device_read_bps", "blkio_device_write_bps", "blkio_device_read_iops",
    "blkio_device_write_iops", "cpu_realtime_period", "cpu_realtime_runtime", "devices", "device_cgroup_rules",
    "cgroup", "cpu_count", "cpu_percent", "io_maximum_iops", "io_maximum_bandwidth",
    "cgroup_parent", "oom_kill_disable",
)  # fmt: skip


def check(config: Config, host: HostConfig, endpoints: dict[str, EndpointRequest]) -> None:
    """Raise for the first thing that is wrong."""
    _check_config(config)
    _check_missing(config, host, endpoints)
    _check_resources(host)
    _check_policies(host)
    _check_namespaces(host)
    if config.hostname and host.uts_mode == "host":
        raise InvalidParameter("conflicting options: hostname and the UTS mode")
    _check_names(host)
    network_requests.check(config, host, endpoints)
    wanted_mounts(host)


def check_update(request: HostConfig, merged: HostConfig) -> None:
    """As `check`, for limits and policy that a container gets later: `merged` is what it would have then."""
    for name in _MISSING:
        if getattr(request, name):
            raise NotImplementedYet(f"{_wire_name(name)} is not implemented by Husk yet")
    _check_policies(request)
    _check_resources(merged)


def _check_config(config: Config) -> None:
    for name in (config.hostname, config.domainname):
        if name and (_HOSTNAME.fullmatch(name) is None or len(name.encode()) > 64):
            raise InvalidParameter(f"invalid hostname format: {name}")
    if config.working_dir and not config.working_dir.startswith("/"):
        raise InvalidParameter(
            f"the working directory '{config.working_dir}' is invalid, it needs to be an absolute path"
        )
    if config.stop_signal:
        parse_signal(config.stop_signal)
    if config.stop_timeout is not None and config.stop_timeout < -1:
        raise InvalidParameter(f"invalid stop timeout: {config.stop_timeout}")
    for entry in config.env:
        if not entry or entry.startswith("="):
            raise InvalidParameter(f"invalid environment variable: {entry}")
    if config.healthcheck is not None:
        _check_health(config.healthcheck)
    strings = [*config.env, *(config.cmd or []), *(config.entrypoint or []), config.user, config.working_dir]
    if any("\0" in text for text in strings):
        raise InvalidParameter("a configuration value contains a NUL character")
    for port in config.exposed_ports or {}:
        if _PORT.fullmatch(port) is None:
            raise InvalidParameter(f"invalid port specification: {port}")


def _check_health(check: HealthConfig) -> None:
    for name, value in (
        ("Interval", check.interval),
        ("Timeout", check.timeout),
        ("StartPeriod", check.start_period),
        ("StartInterval", check.start_interval),
    ):
        if value and value < 1_000_000:
            raise InvalidParameter(f"{name} in Healthcheck cannot be less than 1ms")
    if check.retries < 0:
        raise InvalidParameter("Retries in Healthcheck cannot be negative")
    if check.test and check.test[0] in ("CMD", "CMD-SHELL") and len(check.test) == 1:
        raise InvalidParameter(f"Test in Healthcheck has no command behind {check.test[0]}")


def _check_missing(config: Config, host: HostConfig, endpoints: dict[str, EndpointRequest]) -> None:
    for name in _MISSING:
        if getattr(host, name):
            raise NotImplementedYet(f"HostConfig.{_wire_name(name)} is not implemented by Husk yet")
    if host.isolation not in ("", "default"):
        raise InvalidParameter(f"invalid isolation '{host.isolation}' on linux")


def _wire_name(attribute: str) -> str:
    fields = dict(zip(HostConfig.__struct_fields__, HostConfig.__struct_encode_fields__, strict=True))
    return fields[attribute]


def _check_resources(host: HostConfig) -> None:
    if host.memory and host.memory < MIN_MEMORY:
        raise InvalidParameter("Minimum memory limit allowed is 6MB")
    if host.memory == 0 and host.memory_swap > 0:
        raise InvalidParameter("You should always set the Memory limit when using Memoryswap limit, see usage")
    if 0 < host.memory_swap < host.memory:
        raise InvalidParameter("Minimum memoryswap limit should be larger than memory limit, see usage")
    if host.memory_swap < -1 or host.memory < 0 or host.memory_reservation < 0:
        raise InvalidParameter("memory limits cannot be negative")
    if 0 < host.memory < host.memory_reservation:
        raise InvalidParameter("Minimum memory limit can not be less than memory reservation limit, see usage")
    if 0 < host.memory_reservation < MIN_MEMORY:
        raise InvalidParameter("Minimum memory reservation allowed is 6MB")
    if host.memory_swappiness is not None and not -1 <= host.memory_swappiness <= 100:
        raise InvalidParameter(f"Invalid value: {host.memory_swappiness}, valid memory swappiness range is 0-100")
    if host.nano_cpus and host.cpu_period:
        raise InvalidParameter("Conflicting options: Nano CPUs and CPU Period cannot both be set")
    if host.nano_cpus and host.cpu_quota:
        raise InvalidParameter("Conflicting options: Nano CPUs and CPU Quota cannot both be set")
    cpus = os.cpu_count() or 1
    if host.nano_cpus < 0 or host.nano_cpus > cpus * 10**9:
        raise InvalidParameter(f"range of CPUs is from 0.01 to {cpus}.00, as there are only {cpus} CPUs available")
    if host.cpu_shares < 0:
        raise InvalidParameter(f"invalid CPU shares ({host.cpu_shares}): value must be a positive integer")
    if host.cpu_period and not 1000 <= host.cpu_period <= 1_000_000:
        raise InvalidParameter("CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)")
    if 0 < host.cpu_quota < 1000:
        raise InvalidParameter("CPU cfs quota can not be less than 1ms (i.e. 1000)")
    if host.blkio_weight and not 10 <= host.blkio_weight <= 1000:
        raise InvalidParameter("Range of blkio weight is from 10 to 1000")
    if host.shm_size < 0:
        raise InvalidParameter("SHM size can not be less than 0")
    if not -1000 <= host.oom_score_adj <= 1000:
        raise InvalidParameter(f"Invalid value {host.oom_score_adj}, range for oom score adj is [-1000, 1000]")
    _check_cpuset("cpuset cpus", host.cpuset_cpus, _online("/sys/devices/system/cpu/online"), "CPUs")
    _check_cpuset("cpuset mems", host.cpuset_mems, _online("/sys/devices/system/node/online"), "memory nodes")


def _check_cpuset(what: str, text: str, available: str, kind: str) -> None:
    if not text:
        return
    if _CPUSET.fullmatch(text) is None or not all(_expand(part) for part in text.split(",")):
        raise InvalidParameter(f"Invalid value {text} for {what}")
    if not _expand(text) <= _expand(available):
        raise InvalidParameter(f"Requested {kind} are not available - requested {text}, available: {available}")


def _expand(text: str) -> set[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _online(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return "0"


def _check_policies(host: HostConfig) -> None:
    policy = host.restart_policy
    if policy.name not in RESTART_POLICIES:
        raise InvalidParameter(
            f"invalid restart policy: unknown policy '{policy.name}'; use one of 'no', 'always', 'on-failure', "
            "or 'unless-stopped'"
        )
    if policy.name == "on-failure" and policy.maximum_retry_count < 0:
        raise InvalidParameter("invalid restart policy: maximum retry count cannot be negative")
    # Older clients send a count without a name, which means no policy.
    if policy.name not in ("", "on-failure") and policy.maximum_retry_count:
        negative = " and cannot be negative" if policy.maximum_retry_count < 0 else ""
        raise InvalidParameter(
            f"invalid restart policy: maximum retry count can only be used with 'on-failure'{negative}"
        )
    if host.auto_remove and policy.name not in ("", "no"):
        raise InvalidParameter("can't create 'AutoRemove' container with restart policy")
    if host.log_config.type not in LOG_DRIVERS:
        if host.log_config.type in _LOG_DRIVERS_OF_DOCKER:
            raise NotImplementedYet(f"log driver {host.log_config.type} is not implemented by Husk yet")
        raise InvalidParameter(f"logger: no log driver named '{host.log_config.type}' is registered")
    if host.log_config.config:
        option = sorted(host.log_config.config)[0]
        raise NotImplementedYet(f"log option {option} is not implemented by Husk yet")


def _check_namespaces(host: HostConfig) -> None:
    for field, words, value, accepted in (
        ("PidMode", "PID", host.pid_mode, ("", "host", "private")),
        ("IpcMode", "IPC", host.ipc_mode, ("", "host", "private", "shareable")),
        ("UTSMode", "UTS", host.uts_mode, ("", "host", "private")),
        ("CgroupnsMode", "cgroup namespace", host.cgroupns_mode, ("", "host", "private")),
        ("UsernsMode", "userns", host.userns_mode, ("", "host")),
    ):
        if value in accepted:
            continue
        if value.startswith("container:") or (field, value) == ("IpcMode", "none"):
            kind = value.partition(":")[0]
            raise NotImplementedYet(f"HostConfig.{field} {kind} is not implemented by Husk yet")
        raise InvalidParameter(f"invalid {words} mode: {value}")
    if host.network_mode.startswith("ns:"):
        raise NotImplementedYet("HostConfig.NetworkMode ns:<path> is not implemented by Husk yet")
    for option in host.security_opt or []:
        if re.sub("[=:]", "=", option, count=1) not in _SECURITY_OPTIONS:
            raise NotImplementedYet(f"security option {option[:80]} is not implemented by Husk yet")


def _check_names(host: HostConfig) -> None:
    for entry in host.extra_hosts or []:
        name, separator, address = entry.replace("=", ":", 1).partition(":")
        if not name or not separator or re.search(r"[\s#]", name):
            raise InvalidParameter(f'bad format for add-host: "{entry}"')
        if address != "host-gateway" and not _is_address(address.strip("[]")):
            raise InvalidParameter(f'invalid IP address in add-host: "{address}"')
    for server in host.dns:
        if not _is_address(server):
            raise InvalidParameter(f"{server} is not an ip address")
    for word in [*host.dns_search, *host.dns_options]:
        if not word or re.search(r"[\s#;]", word):
            raise InvalidParameter(f"invalid DNS search domain or option: {word!r}")
    for path in host.tmpfs or {}:
        check_target(path)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
