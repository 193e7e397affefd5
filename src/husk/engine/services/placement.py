"""Whether a task may run on this node: constraints, limits per node and room for reservations. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from husk.engine.services.model import Amount, Placement, Platform, TaskSpec
from husk.errors import InvalidParameter
from husk.patterns import pattern

_CONSTRAINT = pattern(r"\s*([a-z_][a-z0-9_.\-/]*)\s*(==|!=)\s*(.*\S)\s*", re.IGNORECASE)
_KEYS = ("node.id", "node.hostname", "node.ip", "node.role", "node.platform.os", "node.platform.arch")


# Names that others give to a kernel's word for its machine.
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}

# (protocol, number)
Port = tuple[str, int]


class NodeFacts(msgspec.Struct, frozen=True):
    """The node as placement sees it."""

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


class Constraint(msgspec.Struct, frozen=True):
    key: str
    equal: bool
    value: str

    def holds(self, node: NodeFacts) -> bool:
        return self._matches(node) == self.equal

    def _matches(self, node: NodeFacts) -> bool:
        key = self.key.lower()
        if key.startswith("node.labels."):
            return node.labels.get(self.key[len("node.labels.") :], "") == self.value
        if key.startswith("engine.labels."):
            return node.engine_labels.get(self.key[len("engine.labels.") :], "") == self.value
        actual = {
            "node.id": node.id,
            "node.hostname": node.hostname,
            "node.ip": node.address,
            "node.role": node.role,
            "node.platform.os": node.os,
            "node.platform.arch": node.architecture,
        }[key]
        return actual.lower() == self.value.lower()


def parse_constraint(text: str) -> Constraint:
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise InvalidParameter(f"constraint expected one operator from ==, !=: {text!r}")
    key = match[1]
    if key.lower() not in _KEYS and not re.match(r"(node|engine)\.labels\..", key, re.IGNORECASE):
        raise InvalidParameter(f"invalid constraint key: {key}")
    return Constraint(key, match[2] == "==", match[3])


def suits(placement: Placement | None, node: NodeFacts) -> bool:
    """Do the constraints hold? Tasks leave a node that they hold on no more."""
    return placement is None or all(parse_constraint(text).holds(node) for text in placement.constraints)


def refusal(
    spec: TaskSpec,
    node: NodeFacts,
    here: int,
    reserved: Iterable[Amount],
    ports: Collection[Port] = (),
    taken: Collection[Port] = (),
) -> str:
    """Why a new task cannot be placed, empty if it can. `here` counts the service's tasks on the node already.

    `ports` of the node itself are wanted, `taken` are those that tasks have.
    """
    if node.availability != "active":
        return "no suitable node (1 node not available for new tasks)"
    placement = spec.placement
    if not suits(placement, node):
        return "no suitable node (scheduling constraints not satisfied on 1 node)"
    if placement is not None:
        if placement.platforms and not any(_is_platform(wanted, node) for wanted in placement.platforms):
            return "no suitable node (unsupported platform on 1 node)"
        if placement.max_replicas and here >= placement.max_replicas:
            return "no suitable node (max replicas per node limit exceed)"
    if any(port in taken for port in ports):
        return "no suitable node (host-mode port already in use on 1 node)"
    wanted = spec.resources.reservations if spec.resources else None
    if wanted is not None:
        others = list(reserved)
        cpus = sum(amount.nano_cpus for amount in others) + wanted.nano_cpus
        memory = sum(amount.memory_bytes for amount in others) + wanted.memory_bytes
        # What is generic must be declared by the node, and this one declares nothing of the kind.
        if cpus > node.nano_cpus or memory > node.memory or wanted.generic_resources:
            return "no suitable node (insufficient resources on 1 node)"
    return ""


def _is_platform(wanted: Platform, node: NodeFacts) -> bool:
    """What a platform leaves open, any node has."""
    return wanted.os.lower() in ("", node.os) and _architecture(wanted.architecture) in ("", node.architecture)


def _architecture(name: str) -> str:
    return _ARCHITECTURES.get(name.lower(), name.lower())
