"""Addresses that services have on the networks of one host: taken for them, and given back when no service has them.

They are part of the network's record, so that the next daemon gives them to nobody else.
"""

import asyncio

from msgspec.structs import replace

from husk.engine.model.network import Network
from husk.engine.networks.live import Roster
from husk.network.host import drop_address
from husk.storage.state.store import StateStore


class ServiceAddresses:
    """`changing` is held by whoever changes the networks that there are."""

    def __init__(self, roster: Roster, state: StateStore, changing: asyncio.Lock) -> None:
        self._roster = roster
        self._state = state
        self._changing = changing

    async def take(self, network: Network) -> list[str]:
        """An address of each kind for a service, in the form 10.0.1.5/24; kept until they are given back."""
        async with self._changing:
            live = self._roster.find(network.id)
            taken: dict[str, str] = {}
            try:
                for version, subnet in ((4, network.subnet), (6, network.subnet6)):
                    if address := live.driver.take_address(version):
                        taken[address] = subnet.partition("/")[2]
                known = live.record.service_addresses
                await live.save(self._state, replace(live.record, service_addresses=[*known, *taken]))
            except Exception:
                # Whoever is cancelled has them in the record: what nobody turns out to use is given back.
                for address in taken:
                    live.driver.free_address(address)
                raise
        return [f"{address}/{prefix}" for address, prefix in taken.items()]

    async def give_back(self, network: Network, address: str) -> None:
        """Safe to call twice."""
        async with self._changing:
            live = self._roster.find(network.id)
            known = live.record.service_addresses
            if address in known:
                left = [other for other in known if other != address]
                await live.settle(self._state, replace(live.record, service_addresses=left))
                # An earlier daemon may have put it there.
                await asyncio.to_thread(drop_address, live.driver.interface, address)
                live.driver.free_address(address)
