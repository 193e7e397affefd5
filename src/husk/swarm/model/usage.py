"""The room that tasks take of their node: counts, reservations, ports, and how often services failed there. Pure."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import TypeVar

from husk.swarm.model.services import SECOND, Amount, Service, Task

K = TypeVar("K")
# (protocol, number)
Port = tuple[str, int]

# So many failures of a service within this time, and its next tasks go elsewhere if they can.
MANY_FAILURES = 5
FAILURE_WINDOW = 300 * SECOND


class NodeUsage:
    """The room that is taken of one node. `tasks` counts those that are to run, `services` them by service."""

    __slots__ = ("failures", "generic", "memory", "nano_cpus", "ports", "services", "tasks")

    def __init__(self) -> None:
        self.tasks = 0
        self.services: Counter[str] = Counter()
        self.nano_cpus = 0
        self.memory = 0
        self.generic: Counter[str] = Counter()
        self.ports: Counter[Port] = Counter()
        # (service, version of its template) → when its tasks failed here
        self.failures: dict[tuple[str, int], deque[int]] = {}

    def add(self, use: "TaskUsage", sign: int = 1) -> None:
        """Take a task in, or with -1 out again."""
        if use.counts:
            self.tasks += sign
            _count(self.services, use.service_id, sign)
        self.nano_cpus += sign * use.nano_cpus
        self.memory += sign * use.memory
        for kind, number in use.generic:
            _count(self.generic, kind, sign * number)
        for port in use.ports:
            _count(self.ports, port, sign)

    def failed(self, service_id: str, spec_version: int, moment: int) -> None:
        self.failures.setdefault((service_id, spec_version), deque(maxlen=MANY_FAILURES)).append(moment)

    def fails(self, service_id: str, spec_version: int, now: int) -> int:
        """Count the failures of the service here lately; 0 where they are few (`MANY_FAILURES`)."""
        moments = self.failures.get((service_id, spec_version), ())
        recent = sum(1 for moment in moments if now - moment < FAILURE_WINDOW)
        return recent if recent >= MANY_FAILURES else 0


class TaskUsage:
    """The room that one task takes of its node."""

    __slots__ = ("counts", "generic", "memory", "nano_cpus", "ports", "service_id")

    def __init__(self, task: Task, ports: Iterable[Port] = ()) -> None:
        wanted = reserved(task)
        self.service_id = task.service_id
        self.counts = task.wanted
        self.nano_cpus = wanted.nano_cpus if wanted else 0
        self.memory = wanted.memory_bytes if wanted else 0
        self.generic = discrete(wanted) if wanted else ()
        self.ports = tuple(ports)


def reserved(task: Task) -> Amount | None:
    return task.spec.resources.reservations if task.spec.resources else None


def discrete(amount: Amount) -> tuple[tuple[str, int], ...]:
    """The generic resources that are counted, as (kind, number)."""
    found = (resource.discrete_resource_spec for resource in amount.generic_resources)
    return tuple((one.kind, one.value) for one in found if one is not None)


def host_ports(service: Service) -> tuple[Port, ...]:
    """The ports of their nodes that a service's tasks have."""
    return tuple((p.protocol, p.published_port) for p in service.ports if p.publish_mode == "host" and p.published_port)


def takes_room(task: Task) -> bool:
    """Tell if a task is on its node, or on its way there or from there."""
    return task.alive and task.status.state != "pending" and bool(task.node_id)


def _count(counter: Counter[K], key: K, number: int) -> None:
    """Add, and keep nothing of what is zero: nodes see many services come and go."""
    counter[key] += number
    if not counter[key]:
        del counter[key]
