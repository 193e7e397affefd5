"""Checks of a request for a container: they say what is wrong in Docker's words, and change nothing.

What Docker can do and Husk cannot yet is refused here with 501, never accepted and ignored.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Mapping

import msgspec

from husk.engine.containers.config import limits, security
from husk.engine.containers.config.mounts import check_target, wanted_mounts
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HealthConfig, HostConfig
from husk.engine.model.paths import check_length, clean
from husk.engine.model.signals import parse_signal
from husk.engine.networks import requests as network_requests
from husk.engine.networks.port_requests import are_many
from husk.errors import InvalidParameter, NotImplementedYet
from husk.runtime.assembly.procfs import check_name
from husk.text.patterns import pattern

MOST_LABELS = 1 << 19
RESTART_POLICIES = ("", "no", "always", "unless-stopped", "on-failure")
_PORT = pattern(r"\d{1,5}(-\d{1,5})?(/(tcp|udp|sctp))?", re.ASCII | re.IGNORECASE)
# Docker takes any name; the kernel takes 64 bytes, and a space or a '#' would end the name in /etc/hosts.
_HOSTNAME = pattern(r"[^\x00-\x20\x7f#]{1,64}")

# What dockerd takes in an update and leaves as it is.
_FIXED = (
    "blkio_weight_device", "blkio_device_read_bps", "blkio_device_write_bps", "blkio_device_read_iops",
    "blkio_device_write_iops", "devices", "device_cgroup_rules", "device_requests", "cgroup_parent",
    "oom_kill_disable", "ulimits",
)  # fmt: skip


# Of each list: what is in one is looked at several times, here and at every start. Ports and mounts have their own.
MOST_ENTRIES = 4096
# Of variables, words of a command and exposed ports: the kernel takes few more.
MOST_WORDS = 1 << 16


async def check_aside(config: ContainerConfig, host: HostConfig, endpoints: dict[str, EndpointRequest]) -> None:
    """As `check`, in a thread where that takes a while: nobody else has the request."""
    if are_many(config, host):
        await asyncio.to_thread(check, config, host, endpoints)
    else:
        check(config, host, endpoints)


def check(config: ContainerConfig, host: HostConfig, endpoints: dict[str, EndpointRequest]) -> None:
    """Raise for the first thing that is wrong."""
    _check_sizes(config, host, endpoints)
    check_labels(config.labels)
    check_text(config)
    check_text(host)
    for request in endpoints.values():
        check_text(request)
    _check_config(config)
    _check_isolation(host)
    limits.check(host)
    _check_policies(host)
    _check_namespaces(host)
    security.check(host.security_opt)
    limits.check_sysctls(host)
    _check_storage(host)
    if any(not 0 <= value <= 0xFFFF for value in host.console_size):
        raise InvalidParameter(f"invalid ConsoleSize {host.console_size}: height and width are between 0 and 65535")
    if "" in (host.annotations or {}):
        raise InvalidParameter("invalid Annotations: the empty string is not permitted as an annotation key")
    if config.hostname and host.uts_mode == "host":
        raise InvalidParameter("conflicting options: hostname and the UTS mode")
    _check_names(host)
    network_requests.check(config, host, endpoints)
    wanted_mounts(host)


def _check_sizes(config: ContainerConfig, host: HostConfig, endpoints: dict[str, EndpointRequest]) -> None:
    for value, prefix, most in ((config, "", MOST_WORDS), (host, "HostConfig.", MOST_ENTRIES)):
        for name, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            if name not in ("labels", "port_bindings"):
                _check_size(prefix + wire, getattr(value, name), most)
    _check_size("EndpointsConfig", endpoints, MOST_ENTRIES)


def _check_size(what: str, entries: object, most: int) -> None:
    if isinstance(entries, list | dict) and len(entries) > most:
        raise InvalidParameter(f"too many entries in {what}: {most} at most are taken")


def check_text(value: msgspec.Struct) -> None:
    """Raise for what no path, argument or line of a file can hold. Labels are never any of that."""
    if rb"\u0000" not in msgspec.json.encode(value):
        return  # nearly always, and a fraction of the walk below
    found = [msgspec.to_builtins(getattr(value, name)) for name in value.__struct_fields__ if name != "labels"]
    while found:
        one = found.pop()
        if isinstance(one, str):
            if "\0" in one:
                raise InvalidParameter("a configuration value contains a NUL character")
        elif isinstance(one, dict):
            found += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            found += one


def check_labels(labels: Mapping[str, str]) -> None:
    """Every event and every list has them, so they have a limit, which no tool's labels come near to."""
    if sum(map(len, labels)) + sum(map(len, labels.values())) > MOST_LABELS:
        raise InvalidParameter(f"labels take more than {MOST_LABELS} characters")


def check_image(config: ContainerConfig) -> None:
    """As `check`, for what a container has from its image."""
    check_text(config)
    check_labels(config.labels)
    check_length(config.working_dir)
    for path in config.volumes or {}:
        check_length(path)


def check_update(request: HostConfig, merged: HostConfig) -> list[str]:
    """As `check`, for limits and policy that a container gets later: `merged` is what it would have then.

    Returns warnings about what an update does not change; dockerd says nothing there.
    """
    _check_policies(request)
    limits.check(merged)
    given = [_wire_name(name) for name in _FIXED if getattr(request, name)]
    return [f"{name} is fixed when a container is created: the update does not change it" for name in given]


def _check_config(config: ContainerConfig) -> None:
    for name in (config.hostname, config.domainname):
        if name and (_HOSTNAME.fullmatch(name) is None or len(name.encode()) > 64):
            raise InvalidParameter(f"invalid hostname format: {name}")
    if config.working_dir and not config.working_dir.startswith("/"):
        raise InvalidParameter(
            f"the working directory '{config.working_dir}' is invalid, it needs to be an absolute path"
        )
    check_length(config.working_dir)
    for path in config.volumes or {}:
        check_length(path)
    if config.stop_signal:
        parse_signal(config.stop_signal)
    for entry in config.env:
        if not entry or entry.startswith("="):
            raise InvalidParameter(f"invalid environment variable: {entry}")
    if config.healthcheck is not None:
        _check_health(config.healthcheck)
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


def _check_isolation(host: HostConfig) -> None:
    if host.isolation not in ("", "default"):
        raise InvalidParameter(f"invalid isolation ({host.isolation}): linux only supports 'default'")


def _wire_name(attribute: str) -> str:
    fields = dict(zip(HostConfig.__struct_fields__, HostConfig.__struct_encode_fields__, strict=True))
    return fields[attribute]


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


def _check_namespaces(host: HostConfig) -> None:
    for words, value, accepted, joins in (
        ("PID", host.pid_mode, ("", "host", "private"), True),
        ("IPC", host.ipc_mode, ("", "none", "host", "private", "shareable"), True),
        ("UTS", host.uts_mode, ("", "host", "private"), False),
        ("cgroup namespace", host.cgroupns_mode, ("", "host", "private"), False),
        ("userns", host.userns_mode, ("", "host"), False),
    ):
        joined = joins and value.startswith("container:") and value != "container:"
        if value not in accepted and not joined:
            raise InvalidParameter(f"invalid {words} mode: {value}")
    if host.network_mode.startswith("ns:"):
        raise NotImplementedYet("HostConfig.NetworkMode ns:<path> is not implemented by Husk yet")


def _check_storage(host: HostConfig) -> None:
    for name in host.storage_opt or {}:
        if name.lower() != "size":
            raise InvalidParameter(f"Unknown option {name}")
        # It needs project quotas on the data root, which overlayfs directories do not have here.
        raise InvalidParameter("--storage-opt is supported only for overlay over xfs with 'pquota' mount option")


def _check_names(host: HostConfig) -> None:
    for entry in host.extra_hosts or []:
        name, separator, address = entry.replace("=", ":", 1).partition(":")
        if not name or not separator or re.search(r"[\s#]", name):
            raise InvalidParameter(f'bad format for add-host: "{entry}"')
        if address != "host-gateway" and not _is_address(address.strip("[]")):
            raise InvalidParameter(f'invalid IP address in add-host: "{address}"')
    for server in host.dns or []:
        if not _is_address(server):
            raise InvalidParameter(f"{server} is not an ip address")
    for word in [*(host.dns_search or []), *(host.dns_options or [])]:
        if not word or re.search(r"[\s#;]", word):
            raise InvalidParameter(f"invalid DNS search domain or option: {word!r}")
    for path in host.tmpfs or {}:
        check_target(path)
        check_name("tmpfs", clean(path))


def _is_address(text: str) -> bool:
    """A kernel's function first, which takes a tenth of the time: there may be thousands of them."""
    try:
        socket.inet_pton(socket.AF_INET, text)
        return True
    except (OSError, ValueError):
        pass
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
