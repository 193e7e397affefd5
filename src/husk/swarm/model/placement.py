"""Nodes as placement sees them, and the constraints that services set for them. Pure.

The room that tasks take of their node: counts, reservations, ports, and how often services failed there.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TypeVar

import msgspec

from husk.errors import InvalidParameter
from husk.swarm.model.services import SECOND, Amount, Service, Task
from husk.text.patterns import pattern

# What was ever taken, here and in former releases: records are read with it.
_CONSTRAINT = pattern(r"\s*([a-z_][a-z0-9_.\-/]*)\s*(==|!=)\s*(.*)", re.IGNORECASE | re.DOTALL)
# What dockerd takes.
_KEY = pattern(r"[a-z_][a-z0-9\-_.]+", re.IGNORECASE)
_VALUE = pattern(r"[a-z0-9:\-_ \t\n\f\r.*()?+\[\]\\^$|/]+", re.IGNORECASE)
_REFUSED = "rpc error: code = Unknown desc = "
K = TypeVar("K")
# (protocol, number)
Port = tuple[str, int]

# So many failures of a service within this time, and its next tasks go elsewhere if they can.
MANY_FAILURES = 5
FAILURE_WINDOW = 300 * SECOND


class NodeFacts(msgspec.Struct, frozen=True):
    """A node as placement sees it.

    `state` is ready, down, disconnected or unknown; `lost_ns` is when a node that is down was last heard of. `generic`
    counts what the node is said to have besides processors and memory. `plugins` are (type, name), None where nobody
    has told of them.
    """

    id: str
    hostname: str
    role: str = "manager"
    availability: str = "active"
    os: str = "linux"
    architecture: str = "x86_64"
    address: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    engine_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    nano_cpus: int = 0
    memory: int = 0
    state: str = "ready"
    lost_ns: int = 0
    generic: Mapping[str, int] = msgspec.field(default_factory=dict)
    plugins: frozenset[tuple[str, str]] | None = None

    @property
    def lost(self) -> bool:
        """True while nothing is known of the node's tasks any more. Other tasks take their places."""
        return self.state == "down"

    @property
    def takes_tasks(self) -> bool:
        return self.state == "ready" and self.availability == "active"


class PlacementConstraint(msgspec.Struct, frozen=True):
    key: str
    equal: bool
    value: str

    def holds(self, node: NodeFacts) -> bool:
        """On no node where it asks for what nodes have not, whichever way: as with dockerd."""
        found = self._matches(node)
        return found is not None and found == self.equal

    def _matches(self, node: NodeFacts) -> bool | None:
        key = self.key.lower()
        for prefix, labels in (("node.labels.", node.labels), ("engine.labels.", node.engine_labels)):
            if key.startswith(prefix) and key != prefix:
                actual = labels.get(self.key[len(prefix) :], "")
                return actual.lower() == self.value.lower()
        if key == "node.ip":
            return _within(node.address, self.value)
        facts = {
            "node.id": node.id,
            "node.hostname": node.hostname,
            "node.role": node.role,
            "node.platform.os": node.os,
            "node.platform.arch": node.architecture,
        }
        return facts[key].lower() == self.value.lower() if key in facts else None


def _within(address: str, wanted: str) -> bool | None:
    """Tell if an address is the wanted one, or in the wanted subnet; None if `wanted` is neither."""
    try:
        subnet = ip_network(wanted, strict=False)
    except ValueError:
        return None
    try:
        return ip_address(address) in subnet
    except ValueError:
        return False


def check_constraint(text: str) -> None:
    """Raise for what dockerd would not take from a client."""
    for operator in ("==", "!="):
        key, found, value = (part.strip() for part in text.partition(operator))
        if found and not _KEY.fullmatch(key):
            raise InvalidParameter(f"{_REFUSED}key '{key}' is invalid")
        if found and not _VALUE.fullmatch(value):
            raise InvalidParameter(f"{_REFUSED}value '{value}' is invalid")
        if found:
            return
    raise InvalidParameter(_REFUSED + "constraint expected one operator from ==, !=")


@lru_cache(maxsize=1024)
def parse_constraint(text: str) -> PlacementConstraint:
    """One that was taken, be it by a former release: that took more."""
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise InvalidParameter(_REFUSED + "constraint expected one operator from ==, !=")
    if not (value := match[3].rstrip()):
        raise InvalidParameter(_REFUSED + "value '' is invalid")
    return PlacementConstraint(match[1], match[2] == "==", value)


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
