"""A manager's side of the networks on its workers: what each may know of them, and the addresses that it gives."""

import operator
import time
from collections.abc import Callable

from msgspec import Struct

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Occupant, Place
from husk.engine.volumes.locks import Locks
from husk.errors import Forbidden, NotFound, Unavailable
from husk.network.endpoint import EndpointOptions
from husk.swarm.model.services import is_reached
from husk.swarm.network import share as network_share
from husk.swarm.network.allocator import OverlayAllocator, world_of
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.share import AddressRequest, TunnelKey
from husk.swarm.network.views import NOTHING, NetworkShare, Views
from husk.swarm.port.assignment_messages import decoded, encoded
from husk.swarm.state.records import SwarmRecords

_MOST = 1000
_version = operator.attrgetter("version")
# How long a container may take to come on the network that was sought for it, in seconds.
WHILE = 60.0
# Addresses of one task on one network, of former containers too, and of all plain containers of a node there.
MOST_OF_TASK, MOST_PLAIN = 16, 4096
# As many addresses has each task of a node whatever it takes besides; and the last part of a network's addresses, one
# in so many, is for nodes that have not had their share.
OF_EACH_TASK, SPARE = 2, 8


class AddressReply(Struct, kw_only=True):
    """The answer to a wish."""

    places: list[Place]


class NetworkLookup(Struct, kw_only=True):
    """A network by any of its names; in the answer its id."""

    network: str


class AddressKeys(Struct, kw_only=True):
    """Addresses that a node gives back."""

    keys: list[str]


class NetworkServer:
    """`husk.swarm.port.addresses.AddressServicer`, and what the dispatcher asks."""

    def __init__(
        self,
        store: SwarmRecords,
        here: LocalNode,
        shared: Callable[[], OverlayAllocator | None],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`changed` hears that an address was taken or given back."""
        self._store = store
        self._here = here
        self._shared = shared
        self._changed = changed
        self._clock = clock
        # Until when a node is told of a network that a container of it is about to be on, by node and network.
        self._sought: dict[str, dict[str, float]] = {}
        self._seeking = 0
        self._taking = Locks()
        # Tasks that others are led to, and how often that has changed.
        self._reached = {task.id for task in store.tasks.values() if is_reached(task)}
        self._task_changes = 0
        self._views = Views()
        # By generation: the ingress network, where there are ports.
        self._ingress: tuple[object, frozenset[str]] = (None, frozenset())
        store.index.changed.subscribe(self._noticed)

    def generation(self) -> object:
        """Another value whenever somebody may have to be told something else. What only time changes is not in it."""
        shared, services, nodes = self._shared(), self._store.services.values(), self._store.nodes.values()
        versions = [*map(_version, services), *map(_version, nodes)]
        told = (len(services), len(nodes), sum(versions), max(versions, default=0))
        return id(shared), shared.changes if shared is not None else 0, self._seeking, self._task_changes, told

    def _noticed(self, task_id: str) -> None:
        task = self._store.tasks.get(task_id)
        if (task is not None and is_reached(task)) != (task_id in self._reached):
            self._reached ^= {task_id}
            self._task_changes += 1

    def share(self, node: str) -> NetworkShare:
        if (shared := self._shared()) is None:
            return NOTHING
        world, generation = world_of(self._store, shared), self.generation()
        if self._ingress[0] != generation:
            self._ingress = generation, frozenset(network_share.ingress_of(world))
        ingress, named = self._ingress[1], network_share.named_by(node, world, self._sought_by(node))
        view = self._views.get((named, ingress), generation, lambda: network_share.view(named, ingress, world))
        own = network_share.own(node, view.records, world)
        return NetworkShare(view, own, self._here.data_path_port)

    async def seek(self, node: str, body: bytes) -> bytes:
        """A network for plain containers: the node is told of it for a while, and while one of them is there."""
        reference = decoded(body, NetworkLookup).network
        if (shared := self._shared()) is None:
            raise NotFound(f"network {reference} not found")
        network = network_share.attachable(reference, world_of(self._store, shared))
        news = network.id not in self._sought_by(node)
        self._sought.setdefault(node, {})[network.id] = self._clock() + WHILE
        if news:
            # Otherwise the node knows it, and all that was made for others is still true.
            self._seeking += 1
            self._changed()
        return encoded(NetworkLookup(network=network.id))

    def _sought_by(self, node: str) -> set[str]:
        now = self._clock()
        left = {id: until for id, until in self._sought.get(node, {}).items() if until > now}
        if node in self._sought:
            self._sought[node] = left
            if not left:
                del self._sought[node]
        return set(left)

    async def take(self, node: str, body: bytes) -> bytes:
        wish = decoded(body, AddressRequest)
        # What was counted is still so when it is taken, however many of the node ask at once.
        async with self._taking.hold(f"{node}/{wish.network}"):
            return encoded(AddressReply(places=await self._take(node, wish)))

    async def _take(self, node: str, wish: AddressRequest) -> list[Place]:
        if (shared := self._shared()) is None:
            raise Unavailable("the swarm has no networks that hosts share")
        world = world_of(self._store, shared)
        wish = network_share.checked(node, wish, world, self._sought_by(node))
        who = Occupant("host") if wish.host else Occupant("endpoint", wish.names, wish.container, wish.task)
        options = EndpointOptions(address=wish.address, address6=wish.address6, mac=wish.mac, ipv6=wish.ipv6)
        network = shared.networks[wish.network]
        if wish.host and (known := [p for p in shared.of(network) if p.kind == "host" and p.node == node]):
            # An answer of ours was lost.
            return known
        same = [p for p in shared.of(network) if (p.node, p.kind, p.task) == (node, "endpoint", wish.task)]
        if len(same) >= (MOST_OF_TASK if wish.task else MOST_PLAIN):
            raise Forbidden(f"the node has {len(same)} such addresses on network {network.name} already")
        if not wish.host and len(same) >= (OF_EACH_TASK if wish.task else 0):
            self._leave_some(node, network, shared)
        taken = await shared.take(network, who, options, node)
        shared.underway.difference_update(place.key for place in taken)
        self._changed()
        return taken

    def _leave_some(self, node: str, network: Network, shared: OverlayAllocator) -> None:
        """Raise for a node that takes more than its part of a network's addresses where few are left for others."""
        size = shared.size(network)
        # An endpoint on a network with IPv6 has two.
        of_each = 2 if network.subnet6 else 1
        left = size - len(shared.of(network)) // of_each
        own = sum(place.network == network.id for place in shared.on(node)) // of_each
        if left <= size // SPARE and own >= size // max(1, len(self._store.nodes)):
            raise Unavailable(
                f"the last addresses of network {network.name} are for other nodes: this one has {own} of {size}"
            )

    async def announce(self, node: str, body: bytes) -> None:
        """A node's public key for encrypted networks, which those hear that share one with it."""
        told = network_share.checked_key(node, decoded(body, TunnelKey), self._store.nodes)
        if (shared := self._shared()) is None:
            raise Unavailable("the swarm has no networks that hosts share")
        await shared.announce(told, node)
        self._changed()

    async def give_back(self, node: str, body: bytes) -> None:
        if (shared := self._shared()) is None:
            return
        keys = decoded(body, AddressKeys).keys[:_MOST]
        found = [place for key in keys if (place := _at(shared, key)) is not None]
        if any(place.node != node or place.kind == "service" for place in found):
            raise Forbidden("this address is not the node's")
        await shared.give_back(found)
        self._changed()


def _at(shared: OverlayAllocator, key: str) -> Place | None:
    network, _, address = key.partition("/")
    return shared.places.get(network, {}).get(address)
