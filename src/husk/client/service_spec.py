"""The description of a service, in Python's words, and as the API writes it. Pure: no engine is asked here."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from husk.client.misspelt import require_known
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

    id: str  #: The id of the secret or config
    name: str  #: Its name
    filename: str  #: The name of the file
    uid: str = "0"  #: The owner
    gid: str = "0"  #: The group
    mode: int = 0o444  #: The permissions


class UpdateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The way to replace tasks when a service changes; times in seconds.

    UpdateConfig(parallelism=1, delay=5, failure_action="rollback", order="start-first")
    """

    parallelism: int = 1  #: Tasks at a time; 0 for all at once
    delay: float = 0  #: The time between two
    failure_action: str = "pause"  #: `pause`, `continue` or `rollback`
    monitor: float = 0  #: The time in which the end of a new task counts as a failure
    max_failure_ratio: float = 0  #: The part of failures that is borne
    order: str = "stop-first"  #: `stop-first` or `start-first`


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The rule for following a task that has ended by another one; times in seconds.

    RestartPolicy(condition="on-failure", max_attempts=3)
    """

    condition: str = "any"  #: `any`, `none` or `on-failure`
    delay: float = 5  #: The time before the next task
    max_attempts: int = 0  #: The most tasks in a row; 0 for no limit
    window: float = 0  #: The time after which a task counts as run well


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A service to be: the keywords of `services.create` and of `Service.update`, by the names of `ContainerSpec`.

    ServiceSpec(image="app:1", name="web", replicas=3, ports={"80/tcp": 8080})
    """

    image: str  #: The image
    command: Command = None  #: The command and its arguments; that of the image if None
    name: str = ""  #: The name; one is invented if empty
    entrypoint: Command = None  #: The program that gets the command as arguments; that of the image if None
    environment: Mapping[str, str | None] | Sequence[str] = ()  #: Variables: `{"NAME": "value"}` or `["NAME=value"]`
    labels: Mapping[str, str] = {}  #: Labels of the service
    container_labels: Mapping[str, str] = {}  #: Labels of its containers
    user: str = ""  #: The user, as `name`, `name:group` or numbers
    groups: Sequence[str] = ()  #: More groups of the user
    working_dir: str = ""  #: The directory that tasks start in
    hostname: str = ""  #: The name of their host; a template may name what differs between tasks
    tty: bool = False  #: True for a terminal
    stdin: bool = False  #: True if tasks may be written to
    init: bool | None = None  #: True for an init process that reaps others; the engine decides if None
    read_only: bool = False  #: True if their root cannot be written to
    stop_signal: str = ""  #: The signal that asks a task to end
    stop_grace_period: float | None = None  #: Seconds until it is killed
    healthcheck: Healthcheck | None = None  #: The test of their health; that of the image if None

    # what its tasks see
    mounts: Sequence[Mount] = ()  #: Mounts
    secrets: Sequence[ServiceFile] = ()  #: Secrets, as files: `secret.reference()`
    configs: Sequence[ServiceFile] = ()  #: Configs, as files: `config.reference()`
    extra_hosts: Sequence[str] = ()  #: More lines for `/etc/hosts`: `address name`
    dns: Sequence[str] = ()  #: Servers for names
    dns_search: Sequence[str] = ()  #: Domains that names are looked up in
    dns_opt: Sequence[str] = ()  #: Options for looking up names
    sysctls: Mapping[str, str] = {}  #: Settings of the kernel for tasks
    cap_add: Sequence[str] = ()  #: Capabilities that they get
    cap_drop: Sequence[str] = ()  #: Capabilities that they do not get
    ulimits: Mapping[str, int | tuple[int, int]] = {}  #: Limits by name: a number, or (soft, hard)

    # how many, and where
    mode: str = REPLICATED  #: `replicated`, `global`, `replicated-job` or `global-job`
    replicas: int | None = None  #: The number of copies; of a job the number of tasks that are to end well
    max_concurrent: int | None = None  #: Of a job: the most tasks at a time
    constraints: Sequence[str] = ()  #: Conditions for nodes: `node.labels.disk==ssd`
    max_replicas: int = 0  #: The most tasks on a node; 0 for no limit

    # its network
    networks: Sequence[str] = ()  #: Networks, by name or id
    endpoint_mode: str = ""  #: `vip` or `dnsrr`
    ports: Mapping[str | int, int | None] = {}  #: Ports in a task (`80`, `53/udp`) and the published ones; None for any
    publish_mode: str = "ingress"  #: `ingress` or `host`

    # its limits, and what is kept free for it
    memory: Size = 0  #: The most memory of a task: bytes, or with a unit as `64m`
    cpus: float = 0  #: The most processors of a task
    pids_limit: int = 0  #: The most processes of a task
    memory_reservation: Size = 0  #: The memory that a node must have free: bytes, or with a unit as `64m`
    cpus_reservation: float = 0  #: The processors that a node must have free

    # its life
    restart_policy: RestartPolicy | None = None  #: The rule for tasks that have ended
    update_config: UpdateConfig | None = None  #: The way to change tasks
    rollback_config: UpdateConfig | None = None  #: The way to go back
    log_driver: str = ""  #: The log driver; the node's own if empty
    log_opts: Mapping[str, str] = {}  #: Options of the log driver

    extra: Mapping[str, Any] = {}  #: Fields of the API that have no name here, merged into the document


def document(spec: ServiceSpec) -> dict[str, Any]:
    """The body of `POST /services/create`."""
    usual = ServiceSpec(image="")
    given = {name: getattr(spec, name) for name in spec.__struct_fields__}
    said = {name: value for name, value in given.items() if value != getattr(usual, name)}
    return changed({}, {"image": spec.image, **said})


def changed(current: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A specification of the API with some keywords of `ServiceSpec` said anew; what is not said stays as it is."""
    require_known(given, ServiceSpec.__struct_fields__, "a service", "ServiceSpec")
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
