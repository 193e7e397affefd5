"""A swarm without an engine: its CA, its nodes, and a cluster port on the loopback."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator

from husk.swarm.ca import authority
from husk.swarm.ca.authority import Root, Signer
from husk.swarm.ca.holders import Holder, Role
from husk.swarm.ca.identity import Identity
from husk.swarm.ca.tokens import new_token
from husk.swarm.port.certificates import CertificateHandlers, Tokens, WantedCertificate
from husk.swarm.port.messages import CertificateReply, JoinRequest
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort
from husk.swarm.transport.listener import listen
from husk.text.endpoints import HostPort


class PortedSwarm:
    """The part of an engine that the port asks; `roles` are its nodes."""

    def __init__(self, root: Root | None = None) -> None:
        self.swarm = secrets.token_hex(6)
        self.now = root or authority.new_root(time.time())
        self.next: Root | None = None
        self.roles: dict[str, Role] = {"first": "manager"}
        self.asked: list[tuple[JoinRequest, str]] = []
        self._tokens = Tokens(new_token(self.now.certificate), new_token(self.now.certificate))
        self._changed = asyncio.Event()
        self.endpoint = HostPort("127.0.0.1", 0)

    # as members

    def role(self, node: str) -> Role | None:
        return self.roles.get(node)

    # as the servicer of certificates

    def root(self) -> bytes:
        return self.now.certificate

    def tokens(self) -> Tokens:
        return self._tokens

    async def admit(self, role: Role, request: JoinRequest, address: str) -> CertificateReply:
        node = f"n{len(self.roles)}"
        reply = self._issue(request.request, node, role)
        self.roles[node] = role
        self.asked.append((request, address))
        return reply

    async def renew(self, node: str, request: bytes) -> CertificateReply:
        return self._issue(request, node, self.roles[node])

    def wanted(self, peer: Peer) -> WantedCertificate:
        assert peer.certificate and peer.holder is not None
        return WantedCertificate(self.roots, peer.holder.role != self.roles[peer.node], (str(self.endpoint),))

    async def changed(self) -> None:
        await self._changed.wait()

    # what tests do

    @property
    def roots(self) -> bytes:
        return self.now.certificate + (self.next.certificate if self.next else b"")

    def change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def identity(self, node: str, role: Role, life: float = 3600, swarm: str = "") -> Identity:
        key, request = authority.new_request()
        holder = Holder(node, role, swarm or self.swarm)
        chain = authority.issue(request, holder, Signer(self.now), life, time.time())
        return Identity(self.roots, chain, key)

    def _issue(self, request: bytes, node: str, role: Role) -> CertificateReply:
        signer = Signer(self.next, (authority.bridge(self.next, self.now),)) if self.next else Signer(self.now)
        chain = authority.issue(request, Holder(node, role, self.swarm), signer, 3600, time.time())
        return CertificateReply(certificate=chain, roots=self.roots, managers=[str(self.endpoint)])

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[ClusterPort]:
        port = ClusterPort(self)
        CertificateHandlers(self).register(port)
        listener = listen("127.0.0.1", 0)
        self.endpoint = HostPort("127.0.0.1", listener.getsockname()[1])
        port.open(listener, self.identity("first", "manager"))
        try:
            yield port
        finally:
            await port.close()
