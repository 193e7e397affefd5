"""Addresses that services have on the networks of one host: taken for them, and given back when no service has them.

They are part of the network's record, so that the next daemon gives them to nobody else.
"""

import asyncio

import msgspec

from husk.engine.model.network import Network
from husk.engine.networks.live import KIND, Roster
from husk.network.host import drop_address
from husk.storage.state.store import Change, StateStore


class ServiceAddresses:
    """`changing` is held by whoever changes the networks that there are."""

    def __init__(self, roster: Roster, state: StateStore, changing: asyncio.Lock) -> None:
        self._roster = roster
        self._state = state
        self._changing = changing

    async def take(self, network: Network) -> list[str]:
        """An address of each kind for a service, in the form 10.0.1.5/24; kept until they are given back."""
        async with self._changing:
            driver = self._roster.find(network.id).driver
            found = []
            for version, subnet in ((4, network.subnet), (6, network.subnet6)):
                if address := driver.take_address(version):
                    network.service_addresses.append(address)  # at once: what nobody turns out to use is given back
                    found.append((address, subnet.partition("/")[2]))
            await self._state.commit(Change(KIND, network.id, msgspec.json.encode(network)))
        return [f"{address}/{prefix}" for address, prefix in found]

    async def give_back(self, network: Network, address: str) -> None:
        """Safe to call twice."""
        async with self._changing:
            if address in network.service_addresses:
                network.service_addresses.remove(address)
                await self._state.settle(Change(KIND, network.id, msgspec.json.encode(network)))
                driver = self._roster.find(network.id).driver
                # An earlier daemon may have put it there.
                await asyncio.to_thread(drop_address, driver.interface, address)
                driver.free_address(address)
