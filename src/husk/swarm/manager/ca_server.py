"""The swarm as its cluster port sees it: who belongs to it, who may join it, who gets which certificate."""

import ipaddress
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec

from husk.errors import InvalidParameter
from husk.swarm import ca, port
from husk.swarm.ca.holders import Role
from husk.swarm.manager.workers import check
from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model import settings
from husk.swarm.model.clocks import CLOCK
from husk.swarm.model.ids import new_id
from husk.swarm.model.node import Node, NodeDescription, NodeStatus, manager_at
from husk.swarm.model.settings import NodeSpec
from husk.swarm.model.swarm import Trust
from husk.swarm.port.assignment_messages import decoded
from husk.swarm.port.crowding import peer_address, place_of
from husk.swarm.port.peers import Peer
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import NEW
from husk.text.endpoints import MANAGER_PORT

# Between two looks at what nodes should have, when nothing happens here: another manager may have changed it.
_LOOK = 5.0


class CAServer:
    """The engine's side of `husk.swarm.port`: its `Members` and its `CertificateServicer`."""

    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        certificates: NodeCertificates,
        admitted: Callable[[str], object],
        several: Callable[[], Awaitable[None]],
    ) -> None:
        """`admitted` hears of a node that has joined. `several` sees that there can be another manager."""
        self._several = several
        self._store = store
        self._cluster = cluster
        self._certificates = certificates
        self._admitted = admitted

    @property
    def swarm(self) -> str:
        return self._cluster.record.id

    def role(self, node: str) -> Role | None:
        found = self._store.nodes.get(node)
        return None if found is None else cast("Role", found.spec.role)

    def is_home(self, address: str) -> bool:
        """Tell if the address is that of a node."""
        place = place_of(address)
        return any(place_of(node.status.addr) == place for node in self._store.nodes.values())

    def root(self) -> bytes:
        return self._roots().root.certificate.encode()

    def tokens(self) -> "port.certificates.Tokens":
        swarm = self._cluster.shown
        return port.certificates.Tokens(swarm.worker_token, swarm.manager_token)

    async def admit(
        self, role: Role, request: "port.messages.JoinRequest", address: str
    ) -> "port.messages.CertificateReply":
        availability = settings.availability(request.availability)
        description = decoded(request.description or b"{}", NodeDescription)
        description = msgspec.structs.replace(description, hostname=request.hostname or description.hostname)
        check(description)
        told, data_path = _address(request.address) or _seen(address), _address(request.data_path_address)
        if role == "manager":
            await self._several()
        now = CLOCK.stamp()
        node = Node(
            id=new_id(),
            version=NEW,
            created_at=now,
            updated_at=now,
            spec=NodeSpec(role=role, availability=availability or "active"),
            description=description,
            status=NodeStatus(state="unknown", addr=told),
            manager=manager_at(told, request.port or MANAGER_PORT) if role == "manager" else None,
            data_path=data_path,
        )
        async with self._certificates.steady:
            node = msgspec.structs.replace(node, issuer=self._roots().signing.key_id)
            certificate = await self._certificates.issue(node.id, role, request.request)
            await self._store.save(node)
        self._admitted(node.id)
        return self._reply(certificate)

    async def renew(self, node: str, request: bytes) -> "port.messages.CertificateReply":
        record = self._store.nodes[node]
        certificate = await self._certificates.issue(node, cast("Role", record.spec.role), request)
        return self._reply(certificate)

    def wanted(self, peer: Peer) -> "port.certificates.WantedCertificate":
        """By the certificate that it shows: one that it was given may have been lost on the way to it."""
        trust, node, issuer = self._roots(), self._store.nodes.get(peer.node), ca.authority.issuer_of(peer.certificate)
        self._certificates.note(peer.node, issuer)
        renew = node is not None and (
            issuer != trust.signing.key_id or (peer.holder is not None and node.spec.role != peer.holder.role)
        )
        return port.certificates.WantedCertificate(trust.roots.encode(), renew, self._managers())

    async def changed(self) -> None:
        await self._certificates.changed(_LOOK)

    def _roots(self) -> Trust:
        trust = self._cluster.swarm.trust
        assert trust is not None
        return trust

    def _reply(self, certificate: bytes) -> "port.messages.CertificateReply":
        roots = self._roots().roots.encode()
        return port.messages.CertificateReply(certificate=certificate, roots=roots, managers=list(self._managers()))

    def _managers(self) -> tuple[str, ...]:
        return tuple(node.manager.addr for node in self._store.nodes.values() if node.manager is not None)


def _address(text: str) -> str:
    """As all know it: others are told of it, and send packets there. What follows a `%` may be any text, and says
    nothing to other hosts."""
    if not text:
        return ""
    try:
        found = None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or found.is_unspecified or found.is_multicast:
        raise InvalidParameter(f"a node has an IP address, not {text[:64]!r}")
    return str(found)


def _seen(address: str) -> str:
    """Of a node that does not say where it is: the address that it comes from. One that counts on a single link means
    another host on another link, or none."""
    found = peer_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.is_link_local:
        raise InvalidParameter(
            f"this node comes from {found}, by which only hosts on the same link find it: join with an address "
            "that all nodes can reach (docker swarm join --advertise-addr)"
        )
    return address if found is None else str(found)
