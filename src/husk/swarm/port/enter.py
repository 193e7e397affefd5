"""Things that all managers share, for a new manager: the key of secrets, and a certificate for the swarm's own etcd.

    EnterHandlers(servicer).register(port)                  # on each manager
    entered = await enter(managers, identity, request)      # on one that joins, or was promoted

Only managers are answered, and the keys are sealed for the certificate of the one that asks.
"""

import asyncio
from typing import NamedTuple, Protocol

from husk.swarm.ca.envelope import open_sealed, seal_for
from husk.swarm.ca.identity import Identity
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import ENTER, EnterReply, EnterRequest
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort


class ManagerSecrets(NamedTuple):
    """The keys, the certificate and the members that a new manager was given, opened."""

    key: bytes
    unlock_key: bytes
    address: str
    root: bytes
    certificate: bytes
    members: tuple[str, ...]


class EnterServicer(Protocol):
    async def enter(self, node: str, request: bytes) -> ManagerSecrets:
        """Return the keys, the certificate and the members for a manager; `key` and `unlock_key` in the clear."""
        ...


class EnterHandlers:
    def __init__(self, servicer: EnterServicer) -> None:
        self._servicer = servicer

    def register(self, port: ClusterPort) -> None:
        port.register_unary(ENTER, EnterRequest, self._enter, access="manager")

    async def _enter(self, peer: Peer, request: EnterRequest) -> EnterReply:
        given = await self._servicer.enter(peer.node, request.request)
        key = await asyncio.to_thread(seal_for, peer.certificate, given.key)
        unlock_key = await asyncio.to_thread(seal_for, peer.certificate, given.unlock_key) if given.unlock_key else b""
        return EnterReply(
            key=key,
            unlock_key=unlock_key,
            address=given.address,
            root=given.root,
            certificate=given.certificate,
            members=list(given.members),
        )


async def enter(managers: Managers, identity: Identity, request: bytes) -> ManagerSecrets:
    """Ask any manager. Forbidden for who is none."""
    reply = await managers.unary(ENTER, EnterRequest(request=request), EnterReply)
    key = await asyncio.to_thread(open_sealed, identity.key, reply.key)
    unlock_key = await asyncio.to_thread(open_sealed, identity.key, reply.unlock_key) if reply.unlock_key else b""
    return ManagerSecrets(key, unlock_key, reply.address, reply.root, reply.certificate, tuple(reply.members))
