"""Presence of the swarm's networks on this host. All are known everywhere; one is here while somebody here needs it.

A network that is here has a bridge, and a record in this host's own store, so that the next daemon finds it without
asking anybody. What it is, its number and its subnets are told by the swarm's records.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network

import msgspec

from husk.aio.tasks import Tasks
from husk.config import AddressPool
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks import options
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.engine.networks.overlays import Overlays, encrypted
from husk.errors import Conflict, Unavailable
from husk.network import host, ipam
from husk.network.bridge import BridgeDriver
from husk.network.firewall import Firewall
from husk.network.settings import BridgeSettings
from husk.storage.state.store import Change, StateStore

log = logging.getLogger(__name__)

# Networks are numbered as Docker does it.
FIRST_NUMBER = 4097


class Presence:
    def __init__(
        self,
        *,
        roster: Roster,
        state: StateStore,
        firewall: Firewall,
        overlays: Overlays,
        base: BridgeSettings,
        changing: asyncio.Lock,
        mended: Callable[[], None],
    ) -> None:
        self._roster = roster
        self._state = state
        self._firewall = firewall
        self._overlays = overlays
        self._base = base
        self._changing = changing
        self._mended = mended
        self._hidden: set[str] = set()
        # The addresses of the swarm's managers, which this host must go on to reach.
        self.managers: Callable[[], Iterable[str]] = tuple
        self._tasks = Tasks()

    @property
    def here(self) -> list[LiveNetwork]:
        return [live for live in self._shared if live.bridged]

    @property
    def ingress(self) -> LiveNetwork | None:
        return next((live for live in self._shared if live.record.ingress), None)

    @property
    def _shared(self) -> list[LiveNetwork]:
        return [live for live in self._roster.by_name.values() if live.record.vni]

    @property
    def alone(self) -> list[LiveNetwork]:
        """Overlay networks of this host alone, which all hosts of its swarm may have."""
        return [
            live
            for live in self._roster.by_name.values()
            if live.record.scope == "swarm" and live.bridged and not live.record.vni
        ]

    def numbered(self, live: LiveNetwork, others: Collection[int]) -> Network:
        """Draft the swarm's record of such a network: with the first number that no other network has."""
        numbers = {live.record.vni for live in self._shared} | set(others)
        number = next(n for n in range(FIRST_NUMBER, 1 << 24) if n not in numbers)
        return msgspec.structs.replace(live.record, vni=number, service_addresses=[])

    async def adopt(self, live: LiveNetwork, number: int) -> None:
        """From now on the swarm's records tell who has which address on it."""
        async with self._changing:
            await live.settle(self._state, msgspec.structs.replace(live.record, vni=number))
            await live.driver.keep_cold()
            for address in live.record.service_addresses:
                live.driver.free_address(address)

    def learn(self, networks: Mapping[str, Network]) -> None:
        """The swarm has these networks: whoever comes may be put on them."""
        for id, network in networks.items():
            found = self._roster.by_name.get(network.name)
            if found is None:
                self._roster.by_name[network.name] = LiveNetwork(network)
                self._hidden.discard(id)
            elif found.record.id != id and id not in self._hidden:
                log.warning("network %s of the swarm is hidden by one of this host with its name", network.name)
                self._hidden.add(id)

    async def know(self, networks: Mapping[str, Network]) -> None:
        """These are the networks of the swarm; one that is gone goes from here with its last container."""
        self.learn(networks)
        for live in self._shared:
            if live.record.id not in networks and not live.members:
                await self.leave(live)
                async with self._changing:
                    if not live.members and not live.bridged and self._roster.by_name.get(live.record.name) is live:
                        del self._roster.by_name[live.record.name]

    async def bring(self, live: LiveNetwork) -> None:
        """Make it reachable here. Whoever needs it is one of its members already; nothing is done where it is here."""
        if live.bridged:
            return
        async with self._changing:
            if live.bridged:
                return
            try:
                if encrypted(live.record):
                    await self._overlays.secure(live.record)
                await self._open(live)
            finally:
                self._overlays.came(live.record)

    async def _open(self, live: LiveNetwork) -> None:
        network = live.record
        await asyncio.to_thread(refuse_clash, network, self.managers())
        settings = options.settings(network, self._base)
        driver = await BridgeDriver.open(settings, network.subnet, (), self._firewall, self._mended)
        try:
            await self._state.commit(Change(KIND, network.id, msgspec.json.encode(network)))
        except BaseException:
            await asyncio.shield(driver.close(remove=True))
            raise
        live.arrive(driver)

    async def leave(self, live: LiveNetwork) -> None:
        """Nobody here needs it any more, unless somebody has just come."""
        async with self._changing:
            if live.members or not live.bridged:
                return
            driver = live.driver
            live.depart()
            await self._tasks.to_its_end(self._end(live.record, driver), f"end network {live.record.name} here")

    async def _end(self, network: Network, driver: BridgeDriver) -> None:
        """Remove the network's record and close its bridge, whatever fails: nobody else would close it any more."""
        try:
            await self._state.settle(Change(KIND, network.id, None))
            await self._overlays.remove(network)
        finally:
            await driver.close(remove=True)

    async def note(self, live: LiveNetwork, addresses: Iterable[str]) -> None:
        """The host has these on the network's bridge: the next daemon leaves them there."""
        if (wanted := sorted(addresses)) != live.record.service_addresses and live.bridged:
            await live.settle(self._state, msgspec.structs.replace(live.record, service_addresses=wanted))

    async def plan(
        self,
        request: NetworkRequest,
        new_id: str,
        defaults: Mapping[str, Mapping[str, str]],
        pools: tuple[AddressPool, ...],
        known: Collection[Network],
        used: Collection[str] = (),
    ) -> Network:
        """A network that hosts share, as its record will be; nothing is made yet. `used` are subnets that other hosts
        reach by other ways, which it would cut off there."""
        others = {network.id: network for network in (*(live.record for live in self._roster.by_name.values()), *known)}
        request = options.with_defaults(request, defaults)
        options.check_template(request)
        request = options.filled_in(request, list(others.values()))
        options.check(request, others.values())
        network = options.record(request, new_id, rfc3339(now_ns()))
        numbers = {other.vni for other in others.values()}
        number = next(n for n in range(FIRST_NUMBER, 1 << 24) if n not in numbers)
        network = msgspec.structs.replace(network, vni=number)
        return await asyncio.to_thread(self._chosen, network, pools or self._base.pools, list(others.values()), used)

    def _chosen(
        self, network: Network, pools: tuple[AddressPool, ...], others: Collection[Network], used: Collection[str]
    ) -> Network:
        """The network on subnets that no other network has, nor this host, nor another where that can be. Blocks."""
        with host.looking() as looked:
            around = looked.around(network.bridge_name)
        if not network.subnet:
            here = [*around.taken, *_subnets(other.subnet for other in others)]
            subnet = _choose(pools, here, _subnets(used))
            if ipam.overlaps(subnet, _subnets(used)):
                log.warning("subnet %s of network %s is in use on a node, which refuses it", subnet, network.name)
            network = msgspec.structs.replace(network, subnet=str(subnet), gateway=str(ipam.first_host(subnet).ip))
        if network.enable_ipv6 and not network.subnet6:
            taken = [*around.taken6, *(IPv6Network(other.subnet6) for other in others if other.subnet6)]
            subnet6 = ipam.choose_subnet_6(IPv6Network(self._base.pool6), taken, pools)
            network = msgspec.structs.replace(
                network, subnet6=str(subnet6), gateway6=str(ipam.first_host_6(subnet6).ip)
            )
        return network


def _choose(
    pools: tuple[AddressPool, ...], here: Sequence[IPv4Network], elsewhere: Collection[IPv4Network]
) -> IPv4Network:
    """A subnet that overlaps nothing here, nor elsewhere where that can be. A node may say that it uses everything: the
    widest that nodes use is left out first, so that what others have is avoided all the same."""
    for widest in sorted({0, *(one.prefixlen + 1 for one in elsewhere)}):
        narrow = [one for one in elsewhere if one.prefixlen >= widest]
        with suppress(Unavailable):
            return ipam.choose_subnet(pools, [*here, *narrow])
    return ipam.choose_subnet(pools, here)


def refuse_clash(network: Network, managers: Iterable[str] = ()) -> None:
    """Raise where the network would take from this host what it reaches another way, `managers` of the swarm among it.
    Blocks."""
    with host.looking() as looked:
        around = looked.around(network.bridge_name)
    for text, taken in ((network.subnet, around.taken), (network.subnet6, around.taken6)):
        others = [*taken, *host.addresses_of(managers)]
        clash = next((one for one in others if text and ipam.overlaps(ip_network(text), [one])), None)
        if clash is not None:
            raise Conflict(
                f"network {network.name} cannot be on this host: its subnet {text} overlaps {clash}, which the host "
                "reaches another way. Make the network anew with another --subnet, or the swarm with another "
                "--default-addr-pool"
            )


def _subnets(texts: Iterable[str]) -> list[IPv4Network]:
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(IPv4Network(text))
    return found
