"""The records of services and tasks. Their specifications keep the API's own field names, as those of containers do.

A record never changes: who wants it to be another writes another (`msgspec.structs.replace`), and memory has that when
the store has taken it (`records`). So what was not written cannot be seen, planned by, or written along by others.
"""

from collections.abc import Iterable
from typing import Literal, TypeGuard, TypeVar

import msgspec
from msgspec import Struct, field

from husk.engine.model.container_config import HealthConfig, Mount, Ulimit

TaskState = Literal[
    "new", "allocated", "pending", "assigned", "accepted", "preparing", "ready", "starting", "running",
    "complete", "shutdown", "failed", "rejected", "remove", "orphaned",
]  # fmt: skip

ALIVE = frozenset({"new", "allocated", "pending", "assigned", "accepted", "preparing", "ready", "starting", "running"})

SECOND = 10**9

T = TypeVar("T")


def shown(value: T, name: str | None = None) -> T:
    """A default that is written out, among others that are left out: clients look for some fields without asking."""
    result: T = field(default_factory=lambda: value, name=name)
    return result


S = TypeVar("S", bound=Struct)


def copied(value: S) -> S:
    """The same once more, with nothing in common: records are shared, and what is in them never changes."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


class DriverSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    name: str = ""
    options: dict[str, str] | None = None


class FileTarget(Struct, kw_only=True, rename="pascal"):
    name: str = ""
    uid: str = field(default="0", name="UID")
    gid: str = field(default="0", name="GID")
    mode: int = 0o444


class SecretReference(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    file: FileTarget | None = None
    secret_id: str = field(default="", name="SecretID")
    secret_name: str = ""


class ConfigReference(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    file: FileTarget | None = None
    runtime: dict[str, object] | None = None
    config_id: str = field(default="", name="ConfigID")
    config_name: str = ""


class DNSConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    nameservers: list[str] = []
    search: list[str] = []
    options: list[str] = []


class SELinuxContext(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    disable: bool = False
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SeccompMode(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """`profile` is the text of a profile, in base64."""

    mode: str = ""
    profile: str = ""


class AppArmorMode(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    mode: str = ""


class Privileges(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    credential_spec: dict[str, object] | None = shown(None)
    se_linux_context: SELinuxContext | None = shown(None, "SELinuxContext")
    seccomp: SeccompMode | None = None
    app_armor: AppArmorMode | None = None
    no_new_privileges: bool = shown(False)


class ContainerSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    image: str = ""
    labels: dict[str, str] = {}
    command: list[str] = []
    args: list[str] = []
    hostname: str = ""
    env: list[str] = []
    dir: str = ""
    user: str = ""
    groups: list[str] = []
    privileges: Privileges | None = None
    tty: bool = field(default=False, name="TTY")
    open_stdin: bool = False
    read_only: bool = False
    mounts: list[Mount] = []
    stop_signal: str = ""
    stop_grace_period: int | None = None
    health_check: HealthConfig | None = field(default=None, name="Healthcheck")
    hosts: list[str] = []
    dns_config: DNSConfig | None = field(default=None, name="DNSConfig")
    secrets: list[SecretReference] = []
    oom_score_adj: int = 0
    configs: list[ConfigReference] = []
    isolation: str = shown("default")
    init: bool | None = None
    sysctls: dict[str, str] = {}
    capability_add: list[str] = []
    capability_drop: list[str] = []
    ulimits: list[Ulimit] = []


class DiscreteResource(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    kind: str = ""
    value: int = 0


class NamedResource(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    kind: str = ""
    value: str = ""


class GenericResource(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """Something that a node is said to have, of which the engine knows no more than that it is counted."""

    named_resource_spec: NamedResource | None = None
    discrete_resource_spec: DiscreteResource | None = None


class Amount(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    nano_cpus: int = field(default=0, name="NanoCPUs")
    memory_bytes: int = 0
    pids: int = 0
    generic_resources: list[GenericResource] = []


class TaskResources(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    limits: Amount | None = None
    reservations: Amount | None = None
    swap_bytes: int | None = None
    memory_swappiness: int | None = None


class TaskRestartPolicy(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    condition: str = shown("any")
    delay: int | None = None
    max_attempts: int = shown(0)
    window: int | None = None


class Platform(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    architecture: str = ""
    os: str = field(default="", name="OS")


class Placement(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    constraints: list[str] = []
    preferences: list[dict[str, object]] = []
    max_replicas: int = 0
    platforms: list[Platform] = []


class NetworkAttachment(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    target: str = ""
    aliases: list[str] = []
    driver_opts: dict[str, str] | None = None


class TaskSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    container_spec: ContainerSpec | None = None
    plugin_spec: dict[str, object] | None = None
    network_attachment_spec: dict[str, object] | None = None
    resources: TaskResources | None = None
    restart_policy: TaskRestartPolicy | None = None
    placement: Placement | None = None
    force_update: int = shown(0)
    runtime: str = ""
    networks: list[NetworkAttachment] = []
    log_driver: DriverSpec | None = None


class Replicated(Struct, kw_only=True, rename="pascal"):
    replicas: int = 1


class ReplicatedJob(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    max_concurrent: int | None = None
    total_completions: int | None = None


class Empty(Struct):
    """An object without fields: `Global`, `GlobalJob`."""


class Mode(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    replicated: Replicated | None = None
    global_: Empty | None = field(default=None, name="Global")
    replicated_job: ReplicatedJob | None = None
    global_job: Empty | None = None

    @property
    def is_job(self) -> bool:
        return self.replicated_job is not None or self.global_job is not None

    @property
    def is_global(self) -> bool:
        return self.global_ is not None or self.global_job is not None


class UpdateConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """A client that says something of an update means all tasks at once, unless it says how many."""

    parallelism: int = shown(0)
    delay: int = 0
    failure_action: str = shown("pause")
    monitor: int = 0
    max_failure_ratio: float = shown(0.0)
    order: str = shown("stop-first")


class PortConfig(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    name: str = ""
    protocol: str = shown("tcp")
    target_port: int = 0
    published_port: int = 0
    publish_mode: str = shown("ingress")


def any_ingress(ports: Iterable[PortConfig]) -> bool:
    """Tell if one of the ports is to answer on every node."""
    return any(port.publish_mode == "ingress" for port in ports)


class EndpointSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    mode: str = shown("vip")
    ports: list[PortConfig] = []


class ServiceSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    name: str = ""
    labels: dict[str, str] = field(default_factory=lambda: {})
    task_template: TaskSpec = field(default_factory=TaskSpec)
    mode: Mode = field(default_factory=Mode)
    update_config: UpdateConfig | None = None
    rollback_config: UpdateConfig | None = None
    networks: list[NetworkAttachment] = []
    endpoint_spec: EndpointSpec | None = None


class VirtualIP(Struct, kw_only=True, frozen=True, rename="pascal", omit_defaults=True):
    network_id: str = field(default="", name="NetworkID")
    addr: str = ""


class UpdateStatus(Struct, kw_only=True, frozen=True, rename="pascal", omit_defaults=True):
    state: str = ""
    started_at: str = ""
    completed_at: str = ""
    message: str = ""


class Service(Struct, kw_only=True, frozen=True):
    """The record of a service. `spec_version` names a state of the task template; tasks carry the one they run.

    Versions are counted by `spec_versions` and never used again, but a rollback returns to the one before.
    """

    id: str
    version: int
    created_at: str
    updated_at: str
    spec: ServiceSpec
    spec_version: int = 1
    spec_versions: int = 1
    previous_spec: ServiceSpec | None = None
    previous_spec_version: int = 0
    previous_ports: list[PortConfig] = []
    update_status: UpdateStatus | None = None
    # When the update began, by the clock that tasks' times are counted by; 0 in records of the first releases.
    update_began_ns: int = 0
    job_iteration: int = 0
    job_started_at: str = ""
    ports: list[PortConfig] = []
    virtual_ips: list[VirtualIP] = []
    # For pulling its image, sealed.
    credentials: bytes = b""


class TaskStatus(Struct, kw_only=True, frozen=True):
    """`timestamp` is for people; `since_ns`, and `started_ns` when it first ran, are what is counted by (`clocks`)."""

    timestamp: str
    state: TaskState
    message: str = ""
    err: str = ""
    container_id: str = ""
    pid: int = 0
    exit_code: int = 0
    since_ns: int = 0
    started_ns: int = 0


class Task(Struct, kw_only=True, frozen=True):
    """The record of a task. It never goes back in its states."""

    id: str
    version: int
    created_at: str
    created_ns: int
    updated_at: str
    service_id: str
    service_name: str
    slot: int
    node_id: str
    spec: TaskSpec
    spec_version: int
    status: TaskStatus
    desired_state: TaskState = "running"
    job_iteration: int | None = None
    restarts: tuple[int, ...] = ()
    # It was made after all tasks of its service that have lower ones; 0 in records of the first releases.
    number: int = 0

    @property
    def name(self) -> str:
        place = str(self.slot) if self.slot or not self.node_id else self.node_id
        return f"{self.service_name}.{place}.{self.id}"

    @property
    def order(self) -> tuple[int, int]:
        """The task's place in the order in which tasks were made: greater is later, whatever clocks say."""
        return self.number, self.created_ns

    @property
    def alive(self) -> bool:
        """True while the task runs, or is on its way to that."""
        return self.status.state in ALIVE

    @property
    def wanted(self) -> bool:
        return self.desired_state in ("running", "complete", "ready")

    @property
    def shown_desired_state(self) -> str:
        """A task that was ended on purpose or has ended by itself is not wanted running any more."""
        if self.alive or self.desired_state in ("remove", self.status.state):
            return self.desired_state
        return "shutdown"


class ObjectSpec(Struct, kw_only=True, rename="pascal", omit_defaults=True):
    """A secret or a config as a client declares it; the value is in base64."""

    name: str = ""
    labels: dict[str, str] = {}
    data: str = ""
    driver: DriverSpec | None = None
    templating: DriverSpec | None = None


class ClusterObject(Struct, kw_only=True, frozen=True):
    """The record of a secret or a config. Its value never leaves it but to tasks, and for configs to who asks."""

    id: str
    kind: Literal["secret", "config"]
    version: int
    created_at: str
    updated_at: str
    name: str
    labels: dict[str, str]
    sealed: bytes
    templating: DriverSpec | None = None

    @property
    def context(self) -> str:
        return f"{self.kind} {self.id}"


def is_reached(task: Task) -> bool:
    """Tell if others are led to a task: it runs, is healthy where that is looked at, and is to go on."""
    return task.wanted and task.status.state == "running"


def is_assigned(task: Task) -> bool:
    """Tell if a node has been told to run the task. A pending task waits for that, whatever node it may name."""
    return task.status.state != "pending" and bool(task.node_id)


def is_given(task: Task | None, node_id: str) -> TypeGuard[Task]:
    """Tell if there is such a task, and this node has been told to run it."""
    return task is not None and task.node_id == node_id and is_assigned(task)
