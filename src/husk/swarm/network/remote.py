"""A worker's networks and addresses: told by a manager, taken and given back through it.

What is told is numbered here, one number for each piece of news and each answer, so that memory counts by versions as
it does where there are records.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Occupant, Place
from husk.errors import NotFound, Unavailable
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.swarm.model.refusals import A_WORKER
from husk.swarm.network.allocator import ADDRESS, OverlayAllocator
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.server import AddressKeys, AddressReply, NetworkLookup
from husk.swarm.network.share import AddressRequest, TunnelKey
from husk.swarm.port.assignment_messages import NetworkNews, decoded, encoded
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import ClusterRecord, News

# How long to wait for a network that a manager is about to tell of, in seconds.
PATIENCE = 5.0


class AddressCalls(Protocol):
    """Calls to a manager (`husk.swarm.port.addresses.AddressCalls`)."""

    async def take(self, body: bytes) -> bytes: ...

    async def give_back(self, body: bytes) -> None: ...

    async def seek(self, body: bytes) -> bytes: ...

    async def announce(self, body: bytes) -> None: ...


class RemoteNetworks(OverlayAllocator):
    def __init__(
        self,
        records: SwarmRecords,
        here: LocalNode,
        woken: Callable[[], None],
        calls: AddressCalls,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        super().__init__(records, here, woken)
        self._calls = calls
        self._number = 0
        # Networks on which an address is being asked for; and what was given, and not yet told of.
        self._taking: Counter[str] = Counter()
        self._given: dict[str, Place] = {}
        self._heard = asyncio.Event()

    def hear(self, news: NetworkNews) -> None:
        """Take in a whole piece of news."""
        self._number += 1
        told = tuple(ClusterRecord(one.kind, one.key, bytes(one.body), self._number) for one in news.records)
        for record in told:
            self._given.pop(record.key, None)
        given = self._given if news.all else {}
        self._records.take_in(News(self._number, news.all, told, tuple(news.gone)))
        self.take_in(News(self._number, news.all, told, tuple(news.gone)))
        for key, place in given.items():
            self._keep_place(key, place, self._number)
        self._heard.set()
        self._woken()

    def is_underway(self, place: Place) -> bool:
        return super().is_underway(place) or place.network in self._taking

    async def take(
        self, network: Network, who: Occupant, options: EndpointOptions = DEFAULTS, node: str = ""
    ) -> list[Place]:
        wish = AddressRequest(
            network=network.id,
            host=who.kind == "host",
            names=who.names,
            container=who.container,
            task=who.task,
            address=options.address,
            address6=options.address6,
            mac=options.mac,
            ipv6=options.ipv6,
        )
        self._taking[network.id] += 1
        try:
            places = decoded(await self._calls.take(encoded(wish)), AddressReply).places
            self._number += 1
            for place in places:
                self.underway.add(place.key)
                self._given[place.key] = place
                self._keep_place(place.key, place, self._number)
            return places
        finally:
            self._taking[network.id] -= 1
            self._taking = +self._taking

    async def give_back(self, places: Iterable[Place]) -> None:
        keys = [place.key for place in places]
        if not keys:
            return
        await self._calls.give_back(encoded(AddressKeys(keys=keys)))
        self._number += 1
        for key in keys:
            self._given.pop(key, None)
            self._drop(ADDRESS, key, self._number)

    async def seek(self, reference: str) -> None:
        """Ask for a network that plain containers may be on, and return when it is known. None is found: nothing."""
        try:
            wanted = decoded(await self._calls.seek(encoded(NetworkLookup(network=reference))), NetworkLookup).network
        except NotFound:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while wanted not in self.networks:
                    self._heard.clear()
                    await self._heard.wait()

    async def announce(self, told: TunnelKey, node: str = "") -> None:
        await self._calls.announce(encoded(told))
        if (own := self._records.nodes.get(self._cluster.node_id)) is not None:
            self._records.learn(msgspec.structs.replace(own, tunnel_key=told.key, tunnel_port=told.port))

    async def note(self, network: Network, who: Occupant, address: str, mac: str = "") -> bool:
        """Return True at once: each address that a worker has was given, and noted, by a manager."""
        return True

    async def removing(self, network: Network) -> None:
        raise Unavailable(A_WORKER)
