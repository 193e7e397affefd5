"""Holders of certificates: the common name is the node's id, the unit its role, the organization its swarm. Pure."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

Role = Literal["manager", "worker"]
_PREFIX = "swarm-"
# What a node asks for in the certificate of whom it takes for a manager, whatever the address is that it called.
MANAGER_NAME = _PREFIX + "manager"


class Holder(NamedTuple):
    node: str
    role: Role
    swarm: str

    @property
    def unit(self) -> str:
        return _PREFIX + self.role


def holder_of(certificate: Mapping[str, Any]) -> Holder | None:
    """Read the holder of a certificate in what the ssl module tells of it; None for a certificate that is no node's."""
    parts: dict[str, list[str]] = {}
    for group in certificate.get("subject", ()):
        for name, value in group:
            parts.setdefault(name, []).append(value)
    names = [parts.get(name, []) for name in ("commonName", "organizationalUnitName", "organizationName")]
    if any(len(values) != 1 or not values[0] for values in names):
        return None
    node, unit, swarm = (values[0] for values in names)
    role = role_of(unit)
    return Holder(node, role, swarm) if role is not None else None


def role_of(unit: str) -> Role | None:
    role = unit.removeprefix(_PREFIX)
    return cast("Role", role) if unit.startswith(_PREFIX) and role in ("manager", "worker") else None
