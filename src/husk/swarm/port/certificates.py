"""Handlers that give out roots and certificates on the cluster port: to everybody, to those with a token, to nodes.

    CertificateHandlers(ca_server).register(port)

What is decided about a swarm, its tokens and its nodes is decided by the `CertificateServicer`, which the engine is.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from husk.errors import InvalidParameter
from husk.swarm.ca.holders import Role
from husk.swarm.ca.tokens import WRONG_TOKEN, root_digest, same
from husk.swarm.port import protocol
from husk.swarm.port.crowding import Attempts
from husk.swarm.port.faults import TooMany
from husk.swarm.port.messages import (
    FOLLOW,
    JOIN,
    RENEW,
    ROOT,
    CertificateReply,
    FollowReply,
    FollowRequest,
    JoinRequest,
    RenewRequest,
    RootReply,
    RootRequest,
)
from husk.swarm.port.peers import Peer
from husk.swarm.port.protocol import ProtocolVersion
from husk.swarm.port.server import ClusterPort

log = logging.getLogger(__name__)

# So long a node waits for news of what it should have, in seconds; shorter than a call of one message may take.
PATIENCE = 15.0


class Tokens(NamedTuple):
    worker: str
    manager: str


class WantedCertificate(NamedTuple):
    """The roots that a node should believe in, whether its certificate is to be another, and the managers now."""

    roots: bytes
    renew: bool
    managers: tuple[str, ...]


class CertificateServicer(Protocol):
    """The swarm, as far as certificates are concerned."""

    def root(self) -> bytes:
        """The certificate that join tokens name."""
        ...

    def tokens(self) -> Tokens: ...

    async def admit(self, role: Role, request: JoinRequest, address: str) -> CertificateReply:
        """A new node, which calls from an address: it is in the swarm's records before this returns."""
        ...

    async def renew(self, node: str, request: bytes) -> CertificateReply:
        """The next certificate of a node, with the role that it has now."""
        ...

    def wanted(self, peer: Peer) -> WantedCertificate: ...

    async def changed(self) -> None:
        """Until something of what is wanted may have changed."""
        ...


class CertificateHandlers:
    def __init__(
        self,
        ca_server: CertificateServicer,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        self._ca_server = ca_server
        self._clock = clock
        self._attempts = Attempts()

    def register(self, port: ClusterPort) -> None:
        port.register_unary(ROOT, RootRequest, self._root, access="anybody")
        port.register_unary(JOIN, JoinRequest, self._join, access="anybody")
        port.register_unary(RENEW, RenewRequest, self._renew, access="node")
        port.register_unary(FOLLOW, FollowRequest, self._follow, access="node")

    async def _root(self, peer: Peer, request: RootRequest) -> RootReply:
        own = protocol.OWN
        return RootReply(certificate=self._ca_server.root(), protocol=own.version, release=own.release)

    async def _join(self, peer: Peer, request: JoinRequest) -> CertificateReply:
        if not self._attempts.allowed(peer.address, self._clock()):
            raise TooMany("too many wrong join tokens came from this address: try again in a minute")
        role = self._role_by(request.token)
        if role is None:
            self._attempts.failed(peer.address, self._clock())
            log.warning("somebody at %s tried to join the swarm with a wrong token", peer.address)
            raise InvalidParameter(WRONG_TOKEN)
        protocol.check(node=ProtocolVersion(request.protocol, request.release), manager=protocol.OWN)
        reply = await self._ca_server.admit(role, request, peer.address)
        log.info("a %s has joined the swarm from %s", role, peer.address)
        return reply

    def _role_by(self, token: str) -> Role | None:
        tokens = self._ca_server.tokens()
        manager, worker = same(token, tokens.manager), same(token, tokens.worker)
        return "manager" if manager else "worker" if worker else None

    async def _renew(self, peer: Peer, request: RenewRequest) -> CertificateReply:
        return await self._ca_server.renew(peer.node, request.request)

    async def _follow(self, peer: Peer, request: FollowRequest) -> FollowReply:
        wanted = self._ca_server.wanted(peer)
        try:
            async with asyncio.timeout(self._patience):
                while not wanted.renew and root_digest(wanted.roots) == request.roots:
                    await self._ca_server.changed()
                    wanted = self._ca_server.wanted(peer)
        except TimeoutError:
            pass
        return FollowReply(roots=wanted.roots, renew=wanted.renew, managers=list(wanted.managers))
