"""Nodes as placement sees them, and the constraints that services set for them. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network

import msgspec

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

# What was ever taken, here and in former releases: records are read with it.
_CONSTRAINT = pattern(r"\s*([a-z_][a-z0-9_.\-/]*)\s*(==|!=)\s*(.*)", re.IGNORECASE | re.DOTALL)
# What dockerd takes.
_KEY = pattern(r"[a-z_][a-z0-9\-_.]+", re.IGNORECASE)
_VALUE = pattern(r"[a-z0-9:\-_ \t\n\f\r.*()?+\[\]\\^$|/]+", re.IGNORECASE)
_REFUSED = "rpc error: code = Unknown desc = "


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
