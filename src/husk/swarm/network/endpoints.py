"""The ways to reach a service: virtual addresses on its networks, names, published ports; kept as the tasks change."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from husk.engine.model.container import Container
from husk.engine.model.network import Network
from husk.engine.networks.balancing import VirtualService
from husk.engine.networks.endpoints import gateway_endpoint
from husk.engine.networks.service import Networks
from husk.engine.networks.sharing import Occupant
from husk.errors import HuskError, NotFound
from husk.network.balance import BalancedPort
from husk.swarm.model.services import Service, VirtualIP, any_ingress, is_reached
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.networks import ingress_of
from husk.swarm.network.overlay_feed import OverlayFeed
from husk.swarm.network.reached import ReachableTasks
from husk.swarm.signals import Signal
from husk.swarm.spec.containers import attachments
from husk.swarm.spec.network_services import OnNetworks, ServiceOnNetwork, services_on
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import StoreUnavailable

log = logging.getLogger(__name__)


class _Led(NamedTuple):
    """A service with the ways that lead to its tasks: its virtual addresses, and ports of the host."""

    service: Service
    virtual: tuple[VirtualService, ...]
    ports: tuple[BalancedPort, ...]


class Endpoints:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        networks: Networks,
        node_id: Callable[[], str],
        find_container: Callable[[str], Container],
    ) -> None:
        """`node_id` is that of this node: only its own tasks have containers that can be found."""
        # Where hosts share networks: what this one is told of the others.
        self.feed: OverlayFeed | None = None
        self.shared: OverlayAllocator | None = None
        self._store = store
        self._networks = networks
        self._reached = ReachableTasks(store, node_id, find_container)
        # Where each service was led to last, and what that was made of.
        self._led: dict[str, _Led] = {}
        # Services of which something may be another since.
        self._touched: set[str] = set()
        self._names: dict[str, str] = {}
        self._unsaved = 0
        # Networks and ports of the host lead to tasks as `settle` has found them.
        self.settled = Signal[[]]()

    @asynccontextmanager
    async def assigned(self, service: Service) -> AsyncIterator[Service]:
        """The service with its virtual addresses, which stay its own until the end of the block: save it there."""
        self._unsaved += 1
        try:
            yield await self.assign(service)
        finally:
            self._unsaved -= 1

    async def assign(self, service: Service) -> Service:
        """The service with its virtual addresses; the same record where it has them. The caller saves it."""
        wanted = self._virtual_networks(service)
        kept = [virtual for virtual in service.virtual_ips if virtual.network_id in wanted]
        missing = [network for id, network in wanted.items() if id not in {v.network_id for v in kept}]
        if len(kept) == len(service.virtual_ips) and not missing:
            return service
        for network in missing:
            addresses = await self._take(network)
            kept += [VirtualIP(network_id=network.id, addr=address) for address in addresses]
        return msgspec.structs.replace(service, virtual_ips=kept)

    @property
    def unsaved(self) -> bool:
        """True while a service is about to get addresses."""
        return self._unsaved > 0

    async def _take(self, network: Network) -> list[str]:
        if not network.vni or self.shared is None:
            return await self._networks.service_addresses.take(network)
        taken = await self.shared.take(network, Occupant("service"))
        self.shared.underway.difference_update(place.key for place in taken)
        lengths = {False: network.subnet.partition("/")[2], True: network.subnet6.partition("/")[2]}
        return [f"{place.address}/{lengths[':' in place.address]}" for place in taken]

    async def settle(self) -> bool:
        """Make networks and ports of the host lead to the tasks that run now; whether all do."""
        self._networks.balancing.lead_to(self._is_reached)
        settled = await self.feed.settle() if self.feed is not None else True
        if self._store.leadership.leading:
            settled &= await self._assign_all()
        await self._give_back()
        led = self._lead()
        reached = await self._networks.balancing.apply(
            [virtual for one in led for virtual in one.virtual],
            [port for one in led for port in one.ports],
            self.feed.sources() if self.feed is not None else (),
        )
        self.settled.emit()
        return reached and settled

    def _lead(self) -> "list[_Led]":
        """Return the ways to each service now. What was made of the same last time is not made again."""
        names = self._look()
        former = self._led if names == self._names else {}
        self._led, self._names = {}, names
        for service in self._store.services.values():
            known = former.get(service.id)
            if known is None or known.service is not service or service.id in self._touched:
                running = self._reached.of(service.id)
                known = _Led(
                    service,
                    tuple(virtual_services(service, running, names)),
                    tuple(balanced_ports(service, running, names)),
                )
            self._led[service.id] = known
        self._touched = set()
        return list(self._led.values())

    def _look(self) -> dict[str, str]:
        names = {network.id: network.name for network in self._networks.listing()}
        self._touched |= self._reached.look(self.shared if self.feed is not None else None, names)
        return names

    def _is_reached(self, task_id: str) -> bool:
        """Tell if names lead to a task. They do to an unknown one: a worker may have been told of nothing yet."""
        task = self._store.tasks.get(task_id)
        return task is None or is_reached(task)

    async def _assign_all(self) -> bool:
        """Give services the virtual addresses that they lack; whether all have them. One that can have none, be it that
        its network is full, is no reason for others not to be reached."""
        all_have = True
        for service in list(self._store.services.values()):
            try:
                async with self.assigned(service) as assigned:
                    if assigned is not service and self._store.services.get(service.id) is service:
                        await self._store.save(assigned, checks=self._store.leadership.checks)
            except StoreUnavailable:
                raise
            except HuskError as error:
                all_have = False
                log.warning("service %s has no virtual address yet: %s", service.spec.name, error)
        return all_have

    def on_network(self, network: Network) -> dict[str, ServiceOnNetwork]:
        """The services that a network knows, by name."""
        self._look()
        return services_on(network, self._store.services.values(), self._reached.by_service)

    def _virtual_networks(self, service: Service) -> dict[str, Network]:
        if service.spec.endpoint_spec is not None and service.spec.endpoint_spec.mode == "dnsrr":
            return {}
        found = {}
        for attachment in attachments(service):
            try:
                network = self._networks.find(attachment.target)
            except NotFound:
                continue
            if network.bridged and network.resolves_names:
                found[network.id] = network
        if any_ingress(service.ports) and (ingress := ingress_of(self._networks.listing())) is not None:
            found[ingress.id] = ingress
        return found

    async def _give_back(self) -> None:
        """Addresses that no service has any more, whatever became of it."""
        for network in self._networks.listing():
            if self._unsaved:
                return  # of some nobody can tell yet; whoever saves a service wakes us again
            used = {virtual.addr.partition("/")[0] for s in self._store.services.values() for virtual in s.virtual_ips}
            if network.vni:
                continue  # told by records, and given back there
            for address in [address for address in network.service_addresses if address not in used]:
                try:
                    await self._networks.service_addresses.give_back(network, address)
                except NotFound:
                    break


def virtual_services(
    service: Service, running: Iterable[OnNetworks], names: Mapping[str, str]
) -> Iterable[VirtualService]:
    """Pure. `names` of networks by id."""
    for virtual in service.virtual_ips:
        name = names.get(virtual.network_id, "")
        aliases = [alias for a in attachments(service) if a.target == virtual.network_id for alias in a.aliases]
        address = virtual.addr.partition("/")[0]
        endpoints = [container.endpoints[name] for container in running if name in container.endpoints]
        targets = [endpoint.ip6_address if ":" in address else endpoint.ip_address for endpoint in endpoints]
        yield VirtualService(
            names=(service.spec.name, *aliases),
            network_id=virtual.network_id,
            address=address,
            targets=tuple(sorted(target for target in targets if target)),
        )


def balanced_ports(service: Service, running: Iterable[OnNetworks], names: Mapping[str, str]) -> Iterable[BalancedPort]:
    """Pure. The ports in ingress mode, with the tasks' addresses on the ingress network."""
    if not any_ingress(service.ports):
        return
    own = {attachment.target for attachment in attachments(service)}
    ingress = next((names.get(v.network_id, "") for v in service.virtual_ips if v.network_id not in own), "")
    places = [container.endpoints.get(ingress) or gateway_endpoint(container) for container in running]
    leading = [endpoint.ip_address for endpoint in places if endpoint is not None and endpoint.ip_address]
    for port in service.ports:
        if port.publish_mode == "ingress":
            yield BalancedPort(port.protocol, port.published_port, port.target_port, tuple(sorted(leading)))
