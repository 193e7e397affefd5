"""Tells this host's networks what the swarm's records say of other hosts: who is where, by which name and address.

`settle` is called whenever something may have changed, and looks at all of it each time; what is so already costs no
call to the kernel. What a daemon that was killed left of addresses is given back by the next one's first look.
"""

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from husk.engine.networks.live import LiveNetwork
from husk.engine.networks.overlays import Underlay, Way, encrypted
from husk.engine.networks.service import Networks
from husk.engine.networks.sharing import Occupant, Place, occupant
from husk.engine.services import network_share
from husk.engine.services.here import Here
from husk.engine.services.model import any_ingress, is_reached
from husk.engine.services.records import SwarmRecords
from husk.engine.services.shared_networks import SharedNetworks, world_of
from husk.errors import HuskError
from husk.network.peers import Peer
from husk.network.wireguard.parties import Mesh, Party, inner_address, key_of_text, normal

log = logging.getLogger(__name__)
T = TypeVar("T")


class OverlayFeed:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        cluster: Here,
        networks: Networks,
        shared: SharedNetworks,
        unsaved: Callable[[], bool],
    ) -> None:
        """`unsaved`: a service is about to get addresses, and its record does not tell of them yet."""
        self._store = store
        self._cluster = cluster
        self._networks = networks
        self._shared = shared
        self._unsaved = unsaved
        self._trouble = ""
        # Nodes whose key or address is none, which was told.
        self._odd: set[str] = set()

    async def settle(self) -> bool:
        """Make this host's side of the networks what the records say; whether nothing is left to do."""
        if not self._cluster.active:
            return True
        presence, troubles = self._networks.presence, list[str]()
        await _tried(self._adopt(), troubles)
        await _tried(presence.know(self._shared.networks), troubles)
        if (ingress := self._ingress()) is not None:
            await _tried(presence.bring(ingress), troubles)
        for live in list(presence.here):
            if live is not ingress and not live.members:
                await _tried(presence.leave(live), troubles)
        for live in list(presence.here):
            await _tried(self._own_address(live), troubles)
        done = bool(await _tried(self._give_back(), troubles)) and not troubles
        ways = {live.record.id: self._way(live) for live in presence.here if self._own(live)}
        for live in presence.here:
            live.elsewhere = _names(place for place in self._others(live) if self._is_told(place))
            own = [place.address for place in self._own(live)]
            virtual = [place.address for place in self._shared.of(live.record) if place.kind == "service"]
            await presence.note(live, [*own, *virtual])
        if ways or done:
            await self._apply(ways, troubles)
        self._tell(troubles)
        return done and not troubles

    def sources(self) -> list[tuple[str, str]]:
        """(address on another host, this host's own address there), for all that is balanced."""
        found = []
        for live in self._networks.presence.here:
            own = {":" in place.address: place.address for place in self._own(live)}
            for place in self._others(live):
                if place.kind == "endpoint" and (source := own.get(":" in place.address)):
                    found.append((place.address, source))
        return sorted(found)

    def tasks_elsewhere(self) -> dict[str, list[Place]]:
        """The addresses of tasks on other hosts, by task."""
        mine = self._cluster.node_id
        return {task: places for task, places in self._shared.places_of_tasks() if places[0].node != mine}

    async def _adopt(self) -> None:
        """Networks from when this host was alone become those of all; what is on them keeps its addresses."""
        presence = self._networks.presence
        for live in presence.alone:
            known = self._shared.networks.get(live.record.id)
            if known is None:
                numbers = {network.vni for network in self._shared.networks.values()}
                known = presence.numbered(live, numbers)
                await self._store.retried(partial(self._shared.add, known))
            await presence.adopt(live, known.vni)
        for live in presence.here:
            if live.record.id in self._shared.networks:
                await self._note_addresses(live)

    async def _note_addresses(self, live: LiveNetwork) -> None:
        """Each interface that is here has its record, also one that came while the network was made everybody's."""
        network, told = live.record, self._shared.places.get(live.record.id, {})
        for container in list(live.members.values()):
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
        spare = _spare(self._shared.all())
        gone: list[Place] = []
        waiting = False
        for place in list(self._shared.all()):
            if self._shared.is_underway(place):
                continue
            if place.node == mine:
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
            elif self._store.leadership.leading and self._is_left(place, used, spare):
                gone.append(place)
        await self._shared.give_back(gone)
        return not waiting

    def _is_left(self, place: Place, used: Collection[str], spare: Collection[str]) -> bool:
        """Does nobody give it back who has taken it? A node that is gone, or one that is not told of it any more."""
        node = self._store.nodes.get(place.node)
        if node is not None and node.is_manager:
            return False
        if place.kind == "service":
            return place.address not in used and not self._unsaved()
        if node is None:
            return True
        if place.kind == "host":
            return place.key in spare or place.network not in self._known_there(place.node)
        return bool(place.task) and place.task not in self._store.tasks

    def _known_there(self, node: str) -> set[str]:
        """The networks that a worker is told of."""
        world = world_of(self._store, self._shared)
        return network_share.networks_of(node, world) | network_share.ingress_of(world)

    def _own(self, live: LiveNetwork) -> list[Place]:
        mine = self._cluster.node_id
        return [place for place in self._shared.of(live.record) if place.kind == "host" and place.node == mine]

    def _others(self, live: LiveNetwork) -> list[Place]:
        mine = self._cluster.node_id
        return [place for place in self._shared.of(live.record) if place.kind != "service" and place.node != mine]

    def _is_told(self, place: Place) -> bool:
        """Do names lead there: is it on a host that lives, and if it is a task's, is that one healthy?"""
        task = self._store.tasks.get(place.task)
        return self._lives(place.node) and (not place.task or (task is not None and is_reached(task)))

    def _lives(self, node: str) -> bool:
        known = self._store.nodes.get(node)
        return known is not None and known.status.state != "down"

    def _way(self, live: LiveNetwork) -> Way:
        own = [place.address for place in self._own(live)]
        return Way(
            vni=live.record.vni,
            own=next((address for address in own if ":" not in address), ""),
            own6=next((address for address in own if ":" in address), ""),
            peers=tuple(self._peers(self._others(live), encrypted(live.record))),
        )

    def _peers(self, places: Collection[Place], secret: bool) -> list[Peer]:
        found = []
        macs = {place.node: place.mac for place in places if place.kind == "host" and ":" not in place.address}
        for place in sorted(places, key=lambda place: place.address):
            node = self._store.nodes.get(place.node)
            if node is not None and node.data_address:
                # A host has one interface on the network, whose MAC follows from its IPv4 address.
                mac = macs.get(place.node, place.mac) if place.kind == "host" else place.mac
                found.append(Peer(place.address, mac, inner_address(node.id) if secret else node.data_address))
        return found

    def _mesh(self) -> Mesh:
        """Who shares an encrypted network with this host, as far as their keys are known."""
        secret = [live for live in self._networks.presence.here if encrypted(live.record)]
        nodes = sorted({place.node for live in secret for place in self._others(live)})
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

    async def _apply(self, ways: dict[str, Way], troubles: list[str]) -> None:
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
            await self._shared.announce(network_share.TunnelKey(key=key, port=port))

    def _tell(self, troubles: Iterable[str]) -> None:
        """Once, however often they are met."""
        message = "; ".join(dict.fromkeys(troubles))
        if message and message != self._trouble:
            log.warning("networks of the swarm are not as they should be: %s", message)
        self._trouble = message


async def _tried(work: Coroutine[object, object, T], troubles: list[str]) -> T | None:
    """What it gives. A fault is noted, and keeps nobody else waiting: most often the store is away, and what is known
    goes on."""
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


def _names(places: Iterable[Place]) -> dict[str, list[IPv4Address | IPv6Address]]:
    found: dict[str, list[IPv4Address | IPv6Address]] = {}
    for place in places:
        for name in place.names:
            found.setdefault(name.lower(), []).append(ip_address(place.address))
    return found
