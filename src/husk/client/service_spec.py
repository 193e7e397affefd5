"""The description of a service, in Python's words, and as the API writes it. Pure: no engine is asked here."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from husk.client.spec import (
    Command,
    Healthcheck,
    Mount,
    Size,
    environment,
    healthcheck_document,
    mount_document,
    nanoseconds,
    size,
    ulimit,
    words,
)
from husk.errors import InvalidParameter
from husk.text.digits import read_number

_NANO = 1_000_000_000
REPLICATED, GLOBAL, REPLICATED_JOB, GLOBAL_JOB = "replicated", "global", "replicated-job", "global-job"


class ServiceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A secret or config as a file of a service's tasks; `reference` of these makes one.

    await engine.services.create("app:1", secrets=[secret.reference("password", mode=0o400)])
    """

    id: str
    name: str
    filename: str
    uid: str = "0"
    gid: str = "0"
    mode: int = 0o444


class UpdateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The way to replace tasks when a service changes; times in seconds.

    UpdateConfig(parallelism=1, delay=5, failure_action="rollback", order="start-first")
    """

    parallelism: int = 1  # 0 for all at once
    delay: float = 0
    failure_action: str = "pause"  # or continue, rollback
    monitor: float = 0
    max_failure_ratio: float = 0
    order: str = "stop-first"  # or start-first


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The rule for following a task that has ended by another one; times in seconds.

    RestartPolicy(condition="on-failure", max_attempts=3)
    """

    condition: str = "any"  # or none, on-failure
    delay: float = 5
    max_attempts: int = 0  # 0 for no limit
    window: float = 0


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A service to be: the keywords of `services.create` and of `Service.update`, by the names of `ContainerSpec`.

    ServiceSpec(image="app:1", name="web", replicas=3, ports={"80/tcp": 8080})
    """

    image: str
    command: Command = None
    name: str = ""
    entrypoint: Command = None
    environment: Mapping[str, str | None] | Sequence[str] = ()
    labels: Mapping[str, str] = {}
    container_labels: Mapping[str, str] = {}
    user: str = ""
    groups: Sequence[str] = ()
    working_dir: str = ""
    hostname: str = ""
    tty: bool = False
    stdin: bool = False
    init: bool | None = None
    read_only: bool = False
    stop_signal: str = ""
    stop_grace_period: float | None = None  # seconds
    healthcheck: Healthcheck | None = None

    # what its tasks see
    mounts: Sequence[Mount] = ()
    secrets: Sequence[ServiceFile] = ()
    configs: Sequence[ServiceFile] = ()
    extra_hosts: Sequence[str] = ()  # `address name`
    dns: Sequence[str] = ()
    dns_search: Sequence[str] = ()
    dns_opt: Sequence[str] = ()
    sysctls: Mapping[str, str] = {}
    cap_add: Sequence[str] = ()
    cap_drop: Sequence[str] = ()
    ulimits: Mapping[str, int | tuple[int, int]] = {}

    # how many, and where
    mode: str = REPLICATED  # or global, replicated-job, global-job
    replicas: int | None = None  # of a job: how many tasks are to end well
    max_concurrent: int | None = None  # of a job
    constraints: Sequence[str] = ()  # `node.labels.disk==ssd`
    max_replicas: int = 0  # per node

    # its network
    networks: Sequence[str] = ()
    endpoint_mode: str = ""  # vip or dnsrr
    # Port in a task (`80`, `53/udp`) to the published one; None for any.
    ports: Mapping[str | int, int | None] = {}
    publish_mode: str = "ingress"  # or host

    # its limits, and what is kept free for it
    memory: Size = 0
    cpus: float = 0
    pids_limit: int = 0
    memory_reservation: Size = 0
    cpus_reservation: float = 0

    # its life
    restart_policy: RestartPolicy | None = None
    update_config: UpdateConfig | None = None
    rollback_config: UpdateConfig | None = None
    log_driver: str = ""
    log_opts: Mapping[str, str] = {}

    # Fields of the API that have no name here: merged into the document.
    extra: Mapping[str, Any] = {}


def document(spec: ServiceSpec) -> dict[str, Any]:
    """The body of `POST /services/create`."""
    usual = ServiceSpec(image="")
    given = {name: getattr(spec, name) for name in spec.__struct_fields__}
    said = {name: value for name, value in given.items() if value != getattr(usual, name)}
    return changed({}, {"image": spec.image, **said})


def changed(current: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A specification of the API with some keywords of `ServiceSpec` said anew; what is not said stays as it is."""
    if unknown := given.keys() - set(ServiceSpec.__struct_fields__):
        raise InvalidParameter(f"a service knows no {', '.join(sorted(unknown))}. ServiceSpec lists what it knows")
    document = copy.deepcopy(dict(current))
    for name, (path, write) in _PLACES.items():
        if name in given:
            _put(document, path, write(given[name]))
    if given.keys() & {"mode", "replicas", "max_concurrent"} or not current:
        document["Mode"] = _mode(current.get("Mode") or {}, given)
    if given.keys() & {"ports", "publish_mode"}:
        mode = str(given.get("publish_mode", "ingress"))
        _put(
            document, ("EndpointSpec", "Ports"), [_port(port, at, mode) for port, at in given.get("ports", {}).items()]
        )
    return _merged(document, given.get("extra", {}))


def _put(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for part in path[:-1]:
        if document.get(part) is None:
            document[part] = {}
        document = document[part]
    document[path[-1]] = value


def _merged(document: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in extra.items():
        both = isinstance(value, Mapping) and isinstance(document.get(name), dict)
        document[name] = _merged(document[name], value) if both else value
    return document


def _mode(current: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"Replicated": REPLICATED, "Global": GLOBAL, "ReplicatedJob": REPLICATED_JOB, "GlobalJob": GLOBAL_JOB}
    now = next((kinds[name] for name in current if name in kinds), REPLICATED)
    kind, replicas = given.get("mode", now), given.get("replicas")
    if kind not in kinds.values():
        raise InvalidParameter(f"mode: {kind!r} is none: expected {', '.join(kinds.values())}")
    if kind in (GLOBAL, GLOBAL_JOB):
        if replicas is not None:
            raise InvalidParameter(f"a {kind} service has one task on each node: replicas cannot be said")
        return {"Global" if kind == GLOBAL else "GlobalJob": {}}
    if kind == REPLICATED:
        before = (current.get("Replicated") or {}).get("Replicas", 1)
        return {"Replicated": {"Replicas": before if replicas is None else replicas}}
    job = dict(current.get("ReplicatedJob") or {})
    if replicas is not None:
        job["TotalCompletions"] = replicas
    if given.get("max_concurrent") is not None:
        job["MaxConcurrent"] = given["max_concurrent"]
    return {"ReplicatedJob": job}


def _port(port: str | int, published: int | None, mode: str) -> dict[str, Any]:
    said, _, protocol = str(port).partition("/")
    if (number := read_number(said, most=0xFFFF)) is None:
        raise InvalidParameter(f"ports: {port!r} is no port: expected for example 80 or 53/udp")
    found = {"TargetPort": number, "Protocol": protocol or "tcp", "PublishMode": mode}
    return {**found, "PublishedPort": published} if published else found


def _file(reference: ServiceFile, kind: str) -> dict[str, Any]:
    target = {"Name": reference.filename, "UID": reference.uid, "GID": reference.gid, "Mode": reference.mode}
    return {f"{kind}ID": reference.id, f"{kind}Name": reference.name, "File": target}


def _update_config(config: UpdateConfig | None) -> dict[str, Any] | None:
    if config is None:
        return None
    return {
        "Parallelism": config.parallelism,
        "Delay": nanoseconds(config.delay),
        "FailureAction": config.failure_action,
        "Monitor": nanoseconds(config.monitor),
        "MaxFailureRatio": config.max_failure_ratio,
        "Order": config.order,
    }


def _restart_policy(policy: RestartPolicy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    return {
        "Condition": policy.condition,
        "Delay": nanoseconds(policy.delay),
        "MaxAttempts": policy.max_attempts,
        "Window": nanoseconds(policy.window),
    }


_CONTAINER = ("TaskTemplate", "ContainerSpec")
_LIMITS = ("TaskTemplate", "Resources", "Limits")
_RESERVED = ("TaskTemplate", "Resources", "Reservations")
_DNS = (*_CONTAINER, "DNSConfig")


def _same(value: Any) -> Any:
    return value


# Where each keyword has its place in the API's document, and how it is written there.
_PLACES: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "name": (("Name",), _same),
    "labels": (("Labels",), dict),
    "image": ((*_CONTAINER, "Image"), _same),
    "command": ((*_CONTAINER, "Args"), words),
    "entrypoint": ((*_CONTAINER, "Command"), words),
    "environment": ((*_CONTAINER, "Env"), environment),
    "container_labels": ((*_CONTAINER, "Labels"), dict),
    "user": ((*_CONTAINER, "User"), _same),
    "groups": ((*_CONTAINER, "Groups"), list),
    "working_dir": ((*_CONTAINER, "Dir"), _same),
    "hostname": ((*_CONTAINER, "Hostname"), _same),
    "tty": ((*_CONTAINER, "TTY"), _same),
    "stdin": ((*_CONTAINER, "OpenStdin"), _same),
    "init": ((*_CONTAINER, "Init"), _same),
    "read_only": ((*_CONTAINER, "ReadOnly"), _same),
    "stop_signal": ((*_CONTAINER, "StopSignal"), _same),
    "stop_grace_period": ((*_CONTAINER, "StopGracePeriod"), lambda value: value and nanoseconds(value)),
    "healthcheck": ((*_CONTAINER, "Healthcheck"), lambda check: check and healthcheck_document(check)),
    "mounts": ((*_CONTAINER, "Mounts"), lambda mounts: [mount_document(mount) for mount in mounts]),
    "secrets": ((*_CONTAINER, "Secrets"), lambda files: [_file(file, "Secret") for file in files]),
    "configs": ((*_CONTAINER, "Configs"), lambda files: [_file(file, "Config") for file in files]),
    "extra_hosts": ((*_CONTAINER, "Hosts"), list),
    "dns": ((*_DNS, "Nameservers"), list),
    "dns_search": ((*_DNS, "Search"), list),
    "dns_opt": ((*_DNS, "Options"), list),
    "sysctls": ((*_CONTAINER, "Sysctls"), dict),
    "cap_add": ((*_CONTAINER, "CapabilityAdd"), list),
    "cap_drop": ((*_CONTAINER, "CapabilityDrop"), list),
    "ulimits": ((*_CONTAINER, "Ulimits"), lambda limits: [ulimit(*each) for each in limits.items()]),
    "constraints": (("TaskTemplate", "Placement", "Constraints"), list),
    "max_replicas": (("TaskTemplate", "Placement", "MaxReplicas"), _same),
    "networks": (("TaskTemplate", "Networks"), lambda names: [{"Target": name} for name in names]),
    "endpoint_mode": (("EndpointSpec", "Mode"), _same),
    "memory": ((*_LIMITS, "MemoryBytes"), size),
    "cpus": ((*_LIMITS, "NanoCPUs"), lambda count: round(count * _NANO)),
    "pids_limit": ((*_LIMITS, "Pids"), _same),
    "memory_reservation": ((*_RESERVED, "MemoryBytes"), size),
    "cpus_reservation": ((*_RESERVED, "NanoCPUs"), lambda count: round(count * _NANO)),
    "restart_policy": (("TaskTemplate", "RestartPolicy"), _restart_policy),
    "update_config": (("UpdateConfig",), _update_config),
    "rollback_config": (("RollbackConfig",), _update_config),
    "log_driver": (("TaskTemplate", "LogDriver", "Name"), _same),
    "log_opts": (("TaskTemplate", "LogDriver", "Options"), dict),
}
