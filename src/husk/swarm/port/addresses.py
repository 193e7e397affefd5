"""Addresses on the swarm's networks, which managers give to nodes; and nodes' keys for encrypted ones.

    AddressHandlers(servicer).register(port)     # on each manager
    calls = AddressCalls(managers)               # on a worker

What is said is the engine's business: here it is bytes. Which node calls is what its certificate says.
"""

import time
from collections.abc import Callable
from typing import Protocol

from husk.swarm.port.crowding import Pauses
from husk.swarm.port.dispatch import DispatchBody
from husk.swarm.port.faults import TooMany
from husk.swarm.port.managers import Managers
from husk.swarm.port.peers import Peer
from husk.swarm.port.server import ClusterPort

TAKE = "/husk.cluster.v1.Addresses/Take"
SEEK = "/husk.cluster.v1.Addresses/Seek"
ANNOUNCE = "/husk.cluster.v1.Addresses/Announce"
GIVE_BACK = "/husk.cluster.v1.Addresses/GiveBack"
# Between two keys of a node, in seconds.
PAUSE = 1.0


class AddressServicer(Protocol):
    """The engine's part that gives addresses to nodes."""

    async def take(self, node: str, body: bytes) -> bytes: ...

    async def give_back(self, node: str, body: bytes) -> None: ...

    async def seek(self, node: str, body: bytes) -> bytes:
        """A network that a plain container of the node is to be on."""
        ...

    async def announce(self, node: str, body: bytes) -> None:
        """By which key the node is known."""
        ...


class AddressHandlers:
    def __init__(self, servicer: AddressServicer, clock: Callable[[], float] = time.monotonic) -> None:
        self._servicer = servicer
        self._clock = clock
        self._announcing = Pauses(PAUSE)

    def register(self, port: ClusterPort) -> None:
        port.register_unary(TAKE, DispatchBody, self._take, access="node")
        port.register_unary(GIVE_BACK, DispatchBody, self._give_back, access="node")
        port.register_unary(SEEK, DispatchBody, self._seek, access="node")
        port.register_unary(ANNOUNCE, DispatchBody, self._announce, access="node")

    async def _take(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        return DispatchBody(content=await self._servicer.take(peer.node, body.content))

    async def _seek(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        return DispatchBody(content=await self._servicer.seek(peer.node, body.content))

    async def _announce(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        """Each is a record, and told to others: no node says so without end."""
        now = self._clock()
        if not self._announcing.allowed(peer.node, now):
            raise TooMany("this node has just said its key")
        try:
            await self._servicer.announce(peer.node, body.content)
        except BaseException:
            # It was not heard, and may say so again at once.
            self._announcing.take_back(peer.node, now)
            raise
        return DispatchBody()

    async def _give_back(self, peer: Peer, body: DispatchBody) -> DispatchBody:
        await self._servicer.give_back(peer.node, body.content)
        return DispatchBody()


class AddressCalls:
    def __init__(self, managers: Managers) -> None:
        self._managers = managers

    async def take(self, body: bytes) -> bytes:
        return (await self._managers.unary(TAKE, DispatchBody(content=body), DispatchBody)).content

    async def seek(self, body: bytes) -> bytes:
        return (await self._managers.unary(SEEK, DispatchBody(content=body), DispatchBody)).content

    async def announce(self, body: bytes) -> None:
        await self._managers.unary(ANNOUNCE, DispatchBody(content=body), DispatchBody)

    async def give_back(self, body: bytes) -> None:
        await self._managers.unary(GIVE_BACK, DispatchBody(content=body), DispatchBody)
