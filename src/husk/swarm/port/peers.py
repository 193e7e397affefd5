"""The callers on the cluster port, and what they may ask for. Pure."""

from collections.abc import Mapping
from ssl import cert_time_to_seconds
from typing import Any, Literal, NamedTuple, Protocol

from husk.errors import Forbidden, HuskError, Unauthorized
from husk.swarm.ca.holders import Holder, Role, holder_of

Access = Literal["anybody", "node", "manager"]
"""The role that a caller must have."""


class Peer(NamedTuple):
    """The other end of a connection: `holder` as its certificate says, which we have verified; None if it has none."""

    address: str
    holder: Holder | None = None
    ends: float = 0.0
    # In DER.
    certificate: bytes = b""

    @property
    def node(self) -> str:
        """For handlers that only nodes reach."""
        assert self.holder is not None
        return self.holder.node

    def __str__(self) -> str:
        return f"node {self.holder.node} at {self.address}" if self.holder else f"somebody at {self.address}"


class Members(Protocol):
    """The nodes that belong to the swarm now, whatever certificates say."""

    @property
    def swarm(self) -> str:
        """Its id."""
        ...

    def role(self, node: str) -> Role | None:
        """None for a node that does not belong to it, or not any more."""
        ...


def peer_of(address: str, certificate: Mapping[str, Any] | None, form: bytes | None = None) -> Peer | None:
    """From what the ssl module tells of a certificate that it has verified. None: it is no node's."""
    if not certificate:
        return Peer(address)
    holder = holder_of(certificate)
    return Peer(address, holder, cert_time_to_seconds(certificate["notAfter"]), form or b"") if holder else None


def refusal(peer: Peer, access: Access, members: Members, now: float) -> HuskError | None:
    """Return the error for a peer that may not ask; None if it may. Checked at each call: connections live for long."""
    if access == "anybody":
        return None
    holder = peer.holder
    if holder is None:
        return Unauthorized("this needs a certificate of the swarm, and none was shown")
    if holder.swarm != members.swarm:
        return Forbidden("the certificate is one of another swarm")
    if now >= peer.ends:
        return Unauthorized("the certificate has expired since the connection was made")
    role = members.role(holder.node)
    if role is None:
        return Forbidden(f"node {holder.node} does not belong to the swarm")
    if access == "manager" and (role, holder.role) != ("manager", "manager"):
        return Forbidden("this is for managers only")
    return None
