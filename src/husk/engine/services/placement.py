"""Nodes as placement sees them, and the constraints that services set for them. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from husk.engine.services.model import Placement
from husk.errors import InvalidParameter
from husk.patterns import pattern

_CONSTRAINT = pattern(r"\s*([a-z_][a-z0-9_.\-/]*)\s*(==|!=)\s*(.*\S)\s*", re.IGNORECASE)
_KEYS = ("node.id", "node.hostname", "node.ip", "node.role", "node.platform.os", "node.platform.arch")


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
        """Is nothing known of its tasks any more? Others take their places."""
        return self.state == "down"

    @property
    def takes_tasks(self) -> bool:
        return self.state == "ready" and self.availability == "active"


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


@lru_cache(maxsize=1024)
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
