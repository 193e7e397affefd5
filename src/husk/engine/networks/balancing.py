"""Services on networks: names that stand for virtual addresses, and ports of the host for many tasks.

Addresses that services have on the networks of one host: taken for them, and given back when no service has them.

They are part of the network's record, so that the next daemon gives them to nobody else.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from msgspec import Struct
from msgspec.structs import replace

from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.network.balance import NOTHING, Balance, BalancedPort, Balancer, VirtualAddress
from husk.network.host import drop_address
from husk.network.ports import EVERYWHERE, HostPorts, PortRequest, PortTaken, PortTarget, PublishedPort
from husk.storage.state.store import StateStore

log = logging.getLogger(__name__)


class VirtualService(Struct, frozen=True):
    """A service's place on one network."""

    names: tuple[str, ...]
    network_id: str
    address: str
    targets: tuple[str, ...]


class Balancing:
    def __init__(self, roster: Roster, ports: HostPorts, table: str) -> None:
        self._roster = roster
        self._ports = ports
        self.balancer = Balancer(table)
        self._held: dict[tuple[str, int], PublishedPort] = {}
        self._refused: set[tuple[str, int]] = set()
        # Does a port of this host lead to tasks on others? It does so while no daemon runs here, too.
        self.leads_elsewhere = False

    async def apply(
        self,
        services: Sequence[VirtualService],
        ports: Sequence[BalancedPort],
        sources: Sequence[tuple[str, str]] = (),
    ) -> bool:
        """Make exactly these services and ports reachable; whether all are, for somebody else may have a port.

        `sources` are (target on another host, this host's own address on that network).
        """
        lives = {live.record.id: live for live in self._roster.by_name.values() if live.bridged}
        self._name(lives, services)
        addresses = tuple(
            VirtualAddress(lives[service.network_id].driver.interface, service.address, _led(lives, service))
            for service in services
            if service.network_id in lives
        )
        held = self._hold(ports)
        elsewhere = {target for target, _ in sources}
        self.leads_elsewhere = any(elsewhere.intersection(port.targets) for port in held)
        await asyncio.to_thread(self.balancer.change, Balance(addresses, tuple(held), tuple(sources)))
        return not self._refused

    def lead_to(self, reached: Callable[[str], bool]) -> None:
        """From now on names lead to the tasks of which this says so, by their ids."""
        self._roster.reached = reached

    async def remove(self) -> None:
        """Nothing of it stays on the host."""
        await asyncio.to_thread(self.balancer.change, NOTHING)

    def _name(self, lives: dict[str, LiveNetwork], services: Sequence[VirtualService]) -> None:
        for live in lives.values():
            live.services = {}
        for service in services:
            if (found := lives.get(service.network_id)) is not None:
                for name in service.names:
                    found.services.setdefault(name.lower(), []).append(ip_address(service.address))

    def _hold(self, ports: Sequence[BalancedPort]) -> list[BalancedPort]:
        """Those of the ports that are ours, or become so now."""
        wanted = {(port.protocol, port.port): port for port in ports}
        for key in [key for key in self._held if key not in wanted]:
            self._ports.give_back([self._held.pop(key)])
        self._refused &= wanted.keys()
        for key, port in wanted.items():
            if key in self._held:
                continue
            try:
                request = PortRequest(port.protocol, port.target_port, EVERYWHERE, port.port, port.port)
                [self._held[key]] = self._ports.take([request], PortTarget(EVERYWHERE))
                self._refused.discard(key)
            except PortTaken as error:
                if key not in self._refused:
                    log.warning("port %d of a service: %s", port.port, error.message)
                    self._refused.add(key)
        return [port for key, port in wanted.items() if key in self._held]


def _led(lives: dict[str, LiveNetwork], service: VirtualService) -> tuple[str, ...]:
    """Return the addresses that a virtual one leads to. That on the ingress network, which nobody is told, leads
    nowhere: all that is to be reached there are published ports."""
    return () if lives[service.network_id].record.ingress else service.targets


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
