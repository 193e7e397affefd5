"""Tells this host's networks what the swarm's records say of other hosts: who is where, by which name and address.

`settle` is called whenever something may have changed. Of addresses it looks at those that have come, gone or changed
since, or whose task or node has (`OverlayView`); what is so already costs no call to the kernel. What a daemon that was
killed left of addresses is given back by the next one's first look.

A host's view of one overlay network's endpoints on other hosts, kept address by address.

Whoever keeps one says which addresses may have changed (`note`, `forget`): what came of one is made anew, and nothing
else is looked at. What stays the same stays the same object, so that to compare two looks costs little.
"""

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from msgspec.structs import replace

from husk.engine.networks.live import LiveNetwork
from husk.engine.networks.overlays import OverlayWay, Underlay, encrypted
from husk.engine.networks.service import Networks
from husk.engine.networks.sharing import Occupant, Place, occupant
from husk.errors import HuskError
from husk.network.peers import OverlayPeer
from husk.network.wireguard.parties import Mesh, Party, inner_address, key_of_text, normal
from husk.swarm.model.services import any_ingress, is_assigned, is_reached
from husk.swarm.network import share
from husk.swarm.network.allocator import OverlayAllocator, world_of
from husk.swarm.network.local_node import LocalNode
from husk.swarm.spec.containers import attachments
from husk.swarm.state.records import SwarmRecords

Address = IPv4Address | IPv6Address
log = logging.getLogger(__name__)
T = TypeVar("T")


class OverlayView:
    def __init__(self, own: tuple[str, ...]) -> None:
        """`own` are this host's addresses on the network."""
        self.own = own
        self._own = {":" in address: address for address in own}
        # By address: who is where, and by which of our addresses an endpoint there answers us.
        self.peers: dict[str, OverlayPeer] = {}
        self.sources: dict[str, tuple[str, str]] = {}
        # By name and address.
        self.names: dict[str, dict[str, Address]] = {}
        self._named: dict[str, tuple[str, ...]] = {}

    def note(self, place: Place, mac: str, host: str, told: bool) -> None:
        """An address is another host's. `host` is where packets for it go, empty where that is not known; `told` says
        that its names lead there."""
        address = place.address
        source = self._own.get(":" in address) if place.kind == "endpoint" else None
        _put(self.sources, address, (address, source) if source else None)
        _put(self.peers, address, OverlayPeer(address, mac, host) if host else None)
        names = tuple(dict.fromkeys(name.lower() for name in place.names)) if told else ()
        if names != self._named.get(address, ()):
            self._unname(address)
            if names:
                self._named[address] = names
            for name in names:
                self.names.setdefault(name, {})[address] = ip_address(address)

    def forget(self, address: str) -> None:
        """It is nobody's, a service's, or this host's."""
        self.sources.pop(address, None)
        self.peers.pop(address, None)
        self._unname(address)

    def _unname(self, address: str) -> None:
        for name in self._named.pop(address, ()):
            del self.names[name][address]
            if not self.names[name]:
                del self.names[name]


class OverlayFeed:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: LocalNode,
        networks: Networks,
        shared: OverlayAllocator,
        unsaved: Callable[[], bool],
        managers: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """`unsaved`: a service is about to get addresses, and its record does not tell of them yet. `managers` tells
        the addresses of managers, where the records do not."""
        self._store = store
        self._cluster = cluster
        self._networks = networks
        self._shared = shared
        self._unsaved = unsaved
        networks.presence.managers = managers or self._managers
        self._trouble = ""
        # Nodes whose key or address is none, which was told.
        self._odd: set[str] = set()
        # By network; and what may have changed since they were brought up to the records: addresses by network, tasks,
        # and what was known of nodes.
        self._views: dict[str, OverlayView] = {}
        self._addresses: set[tuple[str, str]] = set()
        self._tasks: set[str] = set()
        self._nodes: dict[str, tuple[str, bool]] = {}
        # The names of services by network, as they were then, and whose they are.
        self._services: dict[str, dict[str, set[str]]] = {}
        shared.observers.append(self._place_changed)
        store.index.changed.subscribe(self._tasks.add)

    def close(self) -> None:
        """It is not asked any more."""
        self._shared.observers.remove(self._place_changed)
        self._store.index.changed.unsubscribe(self._tasks.add)

    def _managers(self) -> list[str]:
        mine = self._cluster.node_id
        return [one.status.addr for one in self._store.nodes.values() if one.is_manager and one.id != mine]

    async def settle(self) -> bool:
        """Make this host's side of the networks what the records say; whether nothing is left to do."""
        if not self._cluster.active:
            return True
        presence, troubles = self._networks.presence, list[str]()
        for live in list(presence.alone):
            await _tried(self._adopt(live), troubles)
        for live in list(presence.here):
            if live.record.id in self._shared.networks:
                await _tried(self._note_addresses(live), troubles)
        await _tried(presence.know(self._shared.networks), troubles)
        if (ingress := self._ingress()) is not None:
            await _tried(presence.bring(ingress), troubles)
        for live in list(presence.here):
            if live is not ingress and not live.members:
                await _tried(presence.leave(live), troubles)
        for live in list(presence.here):
            await _tried(self._own_address(live), troubles)
        done = bool(await _tried(self._give_back(), troubles)) and not troubles
        self._look()
        ways = {live.record.id: self._way(live) for live in presence.here if self._own(live)}
        for live in list(presence.here):
            own = [place.address for place in self._own(live)]
            virtual = [place.address for place in self._shared.fixed(live.record) if place.kind == "service"]
            await presence.note(live, [*own, *virtual])
        if ways or done:
            await self._apply(ways, troubles)
        self._tell(troubles)
        return done and not troubles

    def sources(self) -> list[tuple[str, str]]:
        """(address on another host, this host's own address there), for all that is balanced."""
        return [pair for view in self._views.values() for pair in view.sources.values()]

    # --- what is told of other hosts

    def _place_changed(self, place: Place) -> None:
        self._addresses.add((place.network, place.address))
        if place.kind == "host":
            # All that a host has for itself is at the MAC of its first address.
            for other in self._shared.on(place.node):
                if other.kind == "host" and other.network == place.network:
                    self._addresses.add((other.network, other.address))

    def _look(self) -> None:
        """Make anew what came of addresses that have changed, or whose task or node has."""
        try:
            self._renew()
        except BaseException:
            self._views.clear()  # begin anew
            raise

    def _renew(self) -> None:
        here = {live.record.id: live for live in self._networks.presence.here}
        for id in self._views.keys() - here.keys():
            del self._views[id]
        changed: dict[str, set[str]] = {}
        for network, address in self._addresses:
            changed.setdefault(network, set()).add(address)
        nodes = {id: (one.data_address, self._lives(id)) for id, one in self._store.nodes.items()}
        others = [place for task in self._tasks for place in self._shared.places_of_task(task)]
        for id in nodes.keys() | self._nodes.keys():
            if nodes.get(id) != self._nodes.get(id):
                others += self._shared.on(id)
        for place in others:
            changed.setdefault(place.network, set()).add(place.address)
        services = self._names_of_services()
        for id, live in here.items():
            own = tuple(place.address for place in self._own(live))
            known, view = self._shared.places.get(id, {}), self._views.get(id)
            addresses: Iterable[str] = changed.get(id, ())
            if services.get(id) != self._services.get(id):
                addresses = known.keys() | set(addresses)
            if view is None or view.own != own:
                view, addresses = OverlayView(own), known
            for address in addresses:
                self._note(view, address, known.get(address), encrypted(live.record), services.get(id, {}))
            self._views[id], live.elsewhere = view, view.names
        self._nodes, self._services = nodes, services
        self._addresses.clear()
        self._tasks.clear()

    def _names_of_services(self) -> dict[str, dict[str, set[str]]]:
        found: dict[str, dict[str, set[str]]] = {}
        for service in self._store.services.values():
            for attachment in attachments(service):
                for name in (service.spec.name, *attachment.aliases):
                    for called in (name.lower(), f"tasks.{name}".lower()):
                        found.setdefault(attachment.target, {}).setdefault(called, set()).add(service.id)
        return found

    def _note(
        self, view: OverlayView, address: str, place: Place | None, secret: bool, services: dict[str, set[str]]
    ) -> None:
        """`services` are those on the network, by their names: who was called so before they came is not any more."""
        if place is None or place.kind == "service" or place.node == self._cluster.node_id:
            view.forget(address)
            return
        node, host = self._store.nodes.get(place.node), ""
        if node is not None and node.data_address:
            host = inner_address(node.id) if secret else node.data_address
        if any(name.lower() in services for name in place.names):
            task = self._store.tasks.get(place.task)
            own = task.service_id if task is not None else ""
            kept = tuple(name for name in place.names if own in services.get(name.lower(), (own,)))
            place = replace(place, names=kept)
        view.note(place, self._mac(place), host, self._is_told(place))

    def _mac(self, place: Place) -> str:
        """A host has one interface on the network, whose MAC follows from its IPv4 address."""
        if place.kind != "host" or ":" not in place.address:
            return place.mac
        same = (one for one in self._shared.on(place.node) if one.kind == "host" and one.network == place.network)
        return next((one.mac for one in same if ":" not in one.address), place.mac)

    async def _adopt(self, live: LiveNetwork) -> None:
        """A network from when this host was alone becomes one of all; what is on it keeps its addresses."""
        known = self._shared.networks.get(live.record.id)
        if known is None:
            numbers = {network.vni for network in self._shared.networks.values()}
            known = self._networks.presence.numbered(live, numbers)
            await self._store.retried(partial(self._shared.add, known))
        await self._networks.presence.adopt(live, known.vni)

    async def _note_addresses(self, live: LiveNetwork) -> None:
        """Each interface that is here has its record, also one that came while the network was made everybody's."""
        network, told = live.record, self._shared.places.get(live.record.id, {})
        for container in [draft.record for draft in live.members.values()]:
            endpoint = container.endpoints.get(network.name)
            for address in filter(None, (endpoint.ip_address, endpoint.ip6_address) if endpoint else ()):
                if endpoint is not None and address not in told:
                    who = occupant(container, endpoint)
                    if not await self._shared.note(network, who, address, endpoint.mac_address):
                        log.error("%s of container %s is another host's, too", address, container.id[:12])
        if self._store.leadership.leading:
            for service in list(self._store.services.values()):
                for virtual in service.virtual_ips:
                    address = virtual.addr.partition("/")[0]
                    if virtual.network_id == network.id and address not in told:
                        await self._shared.note(network, Occupant("service"), address)

    def _ingress(self) -> LiveNetwork | None:
        """The ingress network, where it is needed: a published port is answered on every node."""
        if not any(any_ingress(service.ports) for service in self._store.services.values()):
            return None
        return self._networks.presence.ingress

    async def _own_address(self, live: LiveNetwork) -> None:
        if live.record.id in self._shared.networks and not self._own(live):
            taken = await self._shared.take(live.record, Occupant("host"))
            self._shared.underway.difference_update(place.key for place in taken)

    async def _give_back(self) -> bool:
        """Addresses of this node that nobody has, and of nodes that are gone; False where some are on their way."""
        mine = self._cluster.node_id
        here = {live.record.id: live for live in self._networks.presence.here}
        used = {virtual.addr.partition("/")[0] for s in self._store.services.values() for virtual in s.virtual_ips}
        spare = _spare(self._shared.all_fixed())
        gone: list[Place] = []
        waiting = False
        for place in list(self._shared.on(mine)):
            if self._shared.is_underway(place):
                continue
            live = here.get(place.network)
            if place.kind == "service":
                idle = place.address not in used and not self._unsaved()
            elif place.kind == "host":
                idle = live is None or place.key in spare
            else:
                idle = live is None or not live.driver.uses(place.address)
                waiting |= not idle and live is not None and place.container not in live.members
            if idle:
                gone.append(place)
        if self._store.leadership.leading:
            left = {place.key: place for place in self._candidates() if place.node != mine}
            gone += [
                place
                for place in left.values()
                if not self._shared.is_underway(place) and self._is_left(place, used, spare)
            ]
        await self._shared.give_back(gone)
        return not waiting

    def _candidates(self) -> Iterator[Place]:
        """Yield addresses that others may have left: of nodes and tasks that are gone, and of hosts and services."""
        for id in self._shared.nodes - self._store.nodes.keys():
            yield from self._shared.on(id)
        for id in self._shared.tasks - self._store.tasks.keys():
            yield from self._shared.places_of_task(id)
        yield from self._shared.all_fixed()

    def _is_left(self, place: Place, used: Collection[str], spare: Collection[str]) -> bool:
        """Tell if nobody who took an address gives it back: its node is gone, or is not told of it any more."""
        node = self._store.nodes.get(place.node)
        if node is not None and node.is_manager:
            return False
        if place.kind == "service":
            return place.address not in used and not self._unsaved()
        if node is None:
            return True
        if place.kind == "host":
            return place.key in spare or not self._is_known(place.network, place.node)
        return bool(place.task) and place.task not in self._store.tasks

    def _is_known(self, network: str, node: str) -> bool:
        """Tell if a worker is told of a network. Most often one of its tasks says so."""
        for place in self._shared.on(node):
            task = self._store.tasks.get(place.task) if place.network == network and place.kind == "endpoint" else None
            if task is not None and task.node_id == node and is_assigned(task):
                return True
        world = world_of(self._store, self._shared)
        return network in share.networks_of(node, world) | share.ingress_of(world)

    def _own(self, live: LiveNetwork) -> list[Place]:
        mine = self._shared.on(self._cluster.node_id)
        return [place for place in mine if place.kind == "host" and place.network == live.record.id]

    def _others(self, live: LiveNetwork) -> Iterator[str]:
        """The nodes that a network is on besides."""
        mine = self._cluster.node_id
        known = self._shared.of(live.record)
        return (place.node for place in known if place.kind != "service" and place.node != mine)

    def _is_told(self, place: Place) -> bool:
        """Tell if names lead to an address: it is on a host that lives, and if it is a task's, the task is healthy."""
        task = self._store.tasks.get(place.task)
        return self._lives(place.node) and (not place.task or (task is not None and is_reached(task)))

    def _lives(self, node: str) -> bool:
        known = self._store.nodes.get(node)
        return known is not None and known.status.state != "down"

    def _way(self, live: LiveNetwork) -> OverlayWay:
        own = [place.address for place in self._own(live)]
        return OverlayWay(
            vni=live.record.vni,
            own=next((address for address in own if ":" not in address), ""),
            own6=next((address for address in own if ":" in address), ""),
            peers=tuple(self._views[live.record.id].peers.values()),
        )

    def _mesh(self) -> Mesh:
        """Return the hosts that share an encrypted network with this one, as far as their keys are known."""
        secret = [live for live in self._networks.presence.here if encrypted(live.record)]
        nodes = sorted({node for live in secret for node in self._others(live)})
        parties = tuple(party for id in nodes if (party := self._party(id)) is not None)
        self._odd.intersection_update(nodes)
        return Mesh(inner_address(self._cluster.node_id), parties, self._cluster.data_path_port)

    def _party(self, id: str) -> Party | None:
        """None where its key is not known, or where its record is wrong: that keeps no other host out."""
        node = self._store.nodes.get(id)
        if node is None or not node.tunnel_key or not node.data_address:
            return None
        try:
            key, address = key_of_text(node.tunnel_key), normal(node.data_address)
        except HuskError as error:
            if id not in self._odd:
                log.warning("node %s is left out of encrypted networks: %s", id, error)
            self._odd.add(id)
            return None
        self._odd.discard(id)
        return Party(key, inner_address(id), address, node.tunnel_port)

    async def _apply(self, ways: dict[str, OverlayWay], troubles: list[str]) -> None:
        if not self._cluster.several:
            ways = {}
        underlay = Underlay(self._cluster.data_address, self._cluster.data_path_port, self._mesh())
        await _tried(self._networks.overlays.apply(underlay, ways), troubles)
        await _tried(self._announce(), troubles)

    async def _announce(self) -> None:
        """Tell the swarm by which key this host is known, where that is news."""
        own = self._store.nodes.get(self._cluster.node_id)
        public = self._networks.overlays.public
        if own is not None and public is not None and public != (own.tunnel_key, own.tunnel_port):
            key, port = public
            await self._shared.announce(share.TunnelKey(key=key, port=port))

    def _tell(self, troubles: Iterable[str]) -> None:
        """Once, however often they are met."""
        message = "; ".join(dict.fromkeys(troubles))
        if message and message != self._trouble:
            log.warning("networks of the swarm are not as they should be: %s", message)
        self._trouble = message


async def _tried(work: Coroutine[object, object, T], troubles: list[str]) -> T | None:
    """Await some work and return its result; None after a fault. A fault is noted, and keeps nobody else waiting: most
    often the store is away, and what is known goes on."""
    try:
        return await work
    except (HuskError, OSError) as error:
        troubles.append(str(error))
        return None


def _spare(places: Iterable[Place]) -> set[str]:
    """Keys of hosts' own addresses beyond the first on a network: one has asked two managers at once. Pure."""
    seen, found = set(), set()
    # Those that were taken together have one MAC, and stay together.
    for place in sorted((one for one in places if one.kind == "host"), key=lambda one: (one.mac, one.address)):
        whose = place.network, place.node, ":" in place.address
        if whose in seen:
            found.add(place.key)
        seen.add(whose)
    return found


def _put(found: dict[str, T], key: str, value: T | None) -> None:
    """Keep what is the same, and its place in the order."""
    if value is None:
        found.pop(key, None)
    elif found.get(key) != value:
        found[key] = value
