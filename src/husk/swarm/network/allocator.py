"""The networks and addresses of a swarm whose hosts share a store: in memory, and how they are taken and given back.

A network is the record `overlay` (`network` are a host's own). An address is the record `address` with the key
`<network>/<address>`, which must be new: so nobody gets it twice, whoever asks at once. Its body is a `Place`. Who took
an address gives it back; those of a node that is gone are given back by the manager that plans.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Set
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, ip_address, ip_network
from typing import TypeVar

import msgspec

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Occupant, Place, key_of
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, Unavailable
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.network.ipam import mac_address, special
from husk.swarm.model.node import Node
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.share import KnownNetworks, TunnelKey
from husk.swarm.spec.containers import is_on
from husk.swarm.state.records import ATTEMPTS, GUARD, SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, Stale, version_in
from husk.text.documents import MalformedDocument, decode
from husk.text.subnets import edges

log = logging.getLogger(__name__)

T = TypeVar("T")
NETWORK, ADDRESS, NODE, SERVICE = "overlay", "address", "node", "service"
# Guards what is chosen of MACs: two managers could give the same one out at once.
MAC = "mac"
# The kind of the record that says, under a lease, that a network is being removed: nobody takes an address there.
CLOSING = "overlay-closing"
# In seconds: for how long that is believed of a manager that has died amid it, and between two looks at its end.
CLOSES_FOR, PAUSE = 10, 0.2
# Of one transaction; etcd takes 128.
MOST_STEPS = 100


class OverlayAllocator:
    def __init__(
        self, records: SwarmRecords, cluster: LocalNode, woken: Callable[[], None], pause: float = PAUSE
    ) -> None:
        """`woken`: somebody has come to a network, here or elsewhere, or has gone."""
        self._pause = pause
        self._records = records
        self._cluster = cluster
        self._woken = woken
        self.networks: dict[str, Network] = {}
        # By network, then by address.
        self.places: dict[str, dict[str, Place]] = {}
        # Of tasks, by task and key.
        self._of_tasks: dict[str, dict[str, Place]] = {}
        # By node and key.
        self._of_nodes: dict[str, dict[str, Place]] = {}
        # What is no endpoint's but a host's or a service's, by network and key.
        self._fixed: dict[str, dict[str, Place]] = {}
        # Who hears of each address that comes or goes; one that changes does both.
        self.observers: list[Callable[[Place], None]] = []
        # The addresses behind a MAC, by network and MAC.
        self._of_macs: dict[tuple[str, str], set[str]] = {}
        self._macs_underway: set[tuple[str, str]] = set()
        self._versions: dict[tuple[str, str], int] = {}
        # (kind, key) of what a newer release has written in words of its own: such an address is somebody's, too.
        self._unread: set[tuple[str, str]] = set()
        # How often anything has changed.
        self.changes = 0
        # What is being taken here, and has no interface yet.
        self.underway: set[str] = set()
        records.followed.subscribe(self._hear)

    def load(self, store: SqliteStore) -> None:
        """Load the records that the last daemon left where this host alone has them. Blocks."""
        for kind in (NETWORK, ADDRESS):
            for key, body in store.load(kind, bytes).items():
                self._take(kind, key, ClusterRecord(kind, key, body, version_in(body)))

    def deaf(self) -> None:
        """Hear no more news."""
        self._records.followed.unsubscribe(self._hear)

    # --- looking

    def of(self, network: Network) -> Collection[Place]:
        return self.places.get(network.id, {}).values()

    def size(self, network: Network) -> int:
        """Count the IPv4 addresses that a network has to give."""
        first, last = _range(network, network.subnet)
        return last - first + 1

    def on(self, node: str) -> Iterable[Place]:
        """Return the addresses that a node has taken."""
        return self._of_nodes.get(node, {}).values()

    def fixed(self, network: Network) -> Collection[Place]:
        """Return the addresses that hosts and services have on a network."""
        return self._fixed.get(network.id, {}).values()

    def all_fixed(self) -> Iterator[Place]:
        """The same of all networks."""
        return (place for places in self._fixed.values() for place in places.values())

    @property
    def nodes(self) -> Set[str]:
        """Those that have taken something."""
        return self._of_nodes.keys()

    @property
    def tasks(self) -> Set[str]:
        """Those that have an address."""
        return self._of_tasks.keys()

    def places_of_task(self, task_id: str) -> list[Place]:
        return list(self._of_tasks.get(task_id, {}).values())

    def of_task(self, task_id: str) -> list[tuple[Network, str]]:
        """The networks that a task is on, with its addresses there in the form 10.0.1.5/24."""
        found = []
        for place in self._of_tasks.get(task_id, {}).values():
            if (network := self.networks.get(place.network)) is not None and ":" not in place.address:
                found.append((network, f"{place.address}/{network.subnet.partition('/')[2]}"))
        return found

    def usage(self, network: Network) -> dict[str, tuple[int, int]]:
        """(addresses in use, addresses left to give out) by subnet."""
        known = {place.address for place in self.of(network)} | {network.gateway, network.gateway6}
        known |= {*network.aux_addresses.values(), *network.aux_addresses6.values()}
        found = {}
        for subnet in filter(None, (network.subnet, network.subnet6)):
            numbers = {int(ip_address(one)) for one in known if one and (":" in one) == (":" in subnet)}
            first, last = _range(network, subnet)
            left = last - first + 1 - sum(first <= number <= last for number in numbers)
            found[subnet] = (len(numbers) + special(subnet), left)
        return found

    def is_underway(self, place: Place) -> bool:
        """Tell if somebody here is about to have the address."""
        return place.key in self.underway

    async def announce(self, told: TunnelKey, node: str = "") -> None:
        """A node, this one unless another is named, is known by this key from now on."""
        known = self._records.nodes.get(node or self._cluster.node_id)

        def change(record: Node) -> Node:
            return msgspec.structs.replace(record, tunnel_key=told.key, tunnel_port=told.port)

        if known is not None and (known.tunnel_key, known.tunnel_port) != (told.key, told.port):
            await self._records.amend(known, change)

    # --- networks

    def guard(self) -> Put:
        """To be taken before what a new network must differ from is looked at: see `add`."""
        return self._records.guard(NETWORK)

    async def add(self, network: Network, seen: Put | None = None) -> None:
        """Stale where another host has made one since `seen`, or of which nothing was heard yet: see `retried`."""
        guard = (seen or self.guard(),) if self._records.shared else ()
        written = Put(NETWORK, network.id, msgspec.json.encode(network), NEW)
        revision = await self._records.commit(written, *guard)
        if guard:
            self._records.guarded(NETWORK, revision)
        self._keep_network(network.id, network, revision)

    async def note(self, network: Network, who: Occupant, address: str, mac: str = "") -> bool:
        """Somebody has an address already, from the time when the network was this host's alone. False: another has."""
        if address in self.places.get(network.id, {}):
            return True
        place = self._made(network, address, mac, who, self._cluster.node_id)
        try:
            written = Put(ADDRESS, place.key, msgspec.json.encode(place), NEW)
            revision = await self._records.commit(written, happened=True)
        except Stale:
            self._take(ADDRESS, place.key, await self._records.store.get(ADDRESS, place.key))
            return False
        self._keep_place(place.key, place, revision)
        return True

    async def removing(self, network: Network) -> None:
        """End a network for all hosts; nothing of it is changed by a host that is in no swarm."""
        if not self._cluster.active or network.id not in self.networks:
            return
        self._check_left(network)
        if not self._records.shared:
            await self._remove(network)
            return
        async with self._closed(network) as closed:
            # Of those who came before, on whichever host, there may be no news here yet.
            await self._catch_up(network)
            self._check_left(network)
            await self._remove(network, closed)

    @asynccontextmanager
    async def _closed(self, network: Network) -> AsyncIterator[Check]:
        """Nobody takes an address of a network meanwhile, on whichever host, if the check fits at the end."""
        async with await self._records.store.lease(CLOSES_FOR) as lease:
            try:
                revision = await self._records.commit(Put(CLOSING, network.id, b"{}", NEW, lease.id))
            except Stale:
                raise Conflict(_closing(network)) from None
            yield Check(CLOSING, network.id, revision)

    async def _catch_up(self, network: Network) -> None:
        """Know all addresses of a network that the store has by now."""
        for record in (await self._records.store.listing(ADDRESS)).records:
            if record.key.startswith(f"{network.id}/"):
                self._take(ADDRESS, record.key, record)

    def _check_left(self, network: Network) -> None:
        """Raise where somebody is on a network, or about to be."""
        others = [place.names[0] if place.names else "" for place in self.of(network) if place.kind == "endpoint"]
        others += sorted(key for key in self.underway if key.startswith(f"{network.id}/"))
        others += [key for kind, key in sorted(self._unread) if kind == ADDRESS and key.startswith(f"{network.id}/")]
        if others:
            users = ", ".join(f'name:"{name}"' for name in others)
            raise Forbidden(f"error while removing network: network {network.name} has active endpoints ({users})")

    async def _remove(self, network: Network, *checks: Check) -> None:
        # The network first: from then on nobody takes an address on it.
        revision = await self._records.retried(lambda: self._end(network, checks))
        places = list(self.of(network))
        self._drop(NETWORK, network.id, revision)
        for place in places:
            self._drop(ADDRESS, place.key, revision)
        for some in _parts([Delete(ADDRESS, place.key) for place in places]):
            await self._records.commit(*some, happened=True)

    async def _end(self, network: Network, checks: tuple[Check, ...]) -> int:
        """Stale where another manager has made or changed a service of which nothing was heard yet."""
        if user := next((one for one in self._records.services.values() if is_on(one, network)), None):
            raise Conflict(f"network {network.name} is in use by service {user.id}")
        version = self._versions.get((NETWORK, network.id), NEW)
        guard = (self._records.guard(SERVICE),) if self._records.shared else ()
        try:
            revision = await self._records.commit(Delete(NETWORK, network.id, version), *guard, *checks)
        except Stale as stale:
            if all(kind != NETWORK for kind, _ in stale.names):
                raise
            return version  # somebody else has removed it
        if guard:
            self._records.guarded(SERVICE, revision)
        return revision

    async def clear(self) -> None:
        """The swarm is gone, with all its networks."""
        for kind in (ADDRESS, NETWORK):
            found = (await self._records.store.listing(kind)).records
            for some in _parts([Delete(kind, record.key) for record in found]):
                await self._records.commit(*some, happened=True)
        for kind, key in list(self._versions):
            self._drop(kind, key, self._versions[kind, key])

    # --- addresses

    @asynccontextmanager
    async def claimed(
        self, network: Network, options: EndpointOptions, who: Occupant
    ) -> AsyncIterator[EndpointOptions]:
        """The options with addresses that nobody else has. What has no interface at the end of the block goes back."""
        taken: list[Place] = []
        try:
            taken = await self.take(network, who, options)
            addresses = [place.address for place in taken]
            yield msgspec.structs.replace(
                options,
                address=next((address for address in addresses if ":" not in address), ""),
                address6=next((address for address in addresses if ":" in address), ""),
            )
        finally:
            self.underway.difference_update(place.key for place in taken)
            self._woken()

    async def take(
        self, network: Network, who: Occupant, options: EndpointOptions = DEFAULTS, node: str = ""
    ) -> list[Place]:
        """An address of each kind that the network has, for this node or another. They are `underway` until the caller
        says otherwise."""
        return await self._records.retried(lambda: self._take_free(network, who, options, node))

    async def _take_free(self, network: Network, who: Occupant, options: EndpointOptions, node: str) -> list[Place]:
        """Stale where another manager has given a chosen MAC out of which nothing was heard yet."""
        node = node or self._cluster.node_id
        stays = (Check(CLOSING, network.id, NEW),) if self._records.shared else ()
        closing = False
        for _ in range(ATTEMPTS):
            if (version := self._versions.get((NETWORK, network.id))) is None:
                raise NotFound(f"network {network.name} not found")
            wanted = [(network.subnet, options.address)]
            if network.subnet6 and options.ipv6:
                wanted.append((network.subnet6, options.address6))
            places = [self._place(network, subnet, address, options.mac, who, node) for subnet, address in wanted]
            # One interface has them all: its MAC follows from the first.
            places = [msgspec.structs.replace(place, mac=places[0].mac) for place in places]
            keys = {place.key for place in places}
            chosen = (network.id, places[0].mac) if options.mac else None
            guard = (self._records.guard(MAC),) if chosen is not None and self._records.shared else ()
            if chosen is not None:
                self._check_mac(network, places[0])
                self._macs_underway.add(chosen)
            self.underway |= keys
            try:
                revision = await self._records.commit(
                    *(Put(ADDRESS, place.key, msgspec.json.encode(place), NEW) for place in places),
                    Check(NETWORK, network.id, version),
                    *stays,
                    *guard,
                )
            except BaseException as error:
                self.underway -= keys
                if not isinstance(error, Stale) or any(kind == GUARD for kind, _ in error.names):
                    raise
                # Somebody else was faster: what it wrote is on its way here, and need not be waited for.
                if closing := any(kind == CLOSING for kind, _ in error.names):
                    await asyncio.sleep(self._pause)
                for kind, key in error.names:
                    self._take(kind, key, await self._records.store.get(kind, key))
                continue
            finally:
                if chosen is not None:
                    self._macs_underway.discard(chosen)
            for step in guard:
                self._records.guarded(step.key, revision)
            for place in places:
                self._keep_place(place.key, place, revision)
            return places
        if closing:
            raise Conflict(_closing(network))
        raise Conflict(f"others take the addresses of network {network.name} faster than this host can")

    async def give_back(self, places: Iterable[Place]) -> None:
        """Only what is still theirs: each is removed in the version that is known here."""
        for place in list(places):
            version = self._versions.get((ADDRESS, place.key), NEW)
            try:
                revision = await self._records.commit(Delete(ADDRESS, place.key, version), happened=True)
            except Stale:
                self._take(ADDRESS, place.key, await self._records.store.get(ADDRESS, place.key))
                continue
            self._drop(ADDRESS, place.key, revision)

    def _place(self, network: Network, subnet: str, wanted: str, mac: str, who: Occupant, node: str) -> Place:
        if wanted:
            first, last = edges(ip_network(subnet))
            if not first <= int(ip_address(wanted)) <= last:
                raise InvalidParameter(f"no configured subnet contains IP address {wanted}")
            if self._is_taken(network, wanted):
                raise Forbidden("Address already in use")
        return self._made(network, wanted or self._free(network, subnet, node), mac, who, node)

    def _made(self, network: Network, address: str, mac: str, who: Occupant, node: str) -> Place:
        return Place(
            network=network.id,
            address=address,
            node=node,
            kind=who.kind,
            mac=mac.replace("-", ":").lower() or mac_address(ip_address(address)),
            names=who.names,
            container=who.container,
            task=who.task,
        )

    def _check_mac(self, network: Network, wanted: Place) -> None:
        """Raise where packets for others would come to who has chosen this MAC."""
        beginning = mac_address(ip_address(wanted.address))[:5]
        if wanted.mac[:5] == beginning and wanted.mac != mac_address(ip_address(wanted.address)):
            follows = IPv4Address(bytes.fromhex(wanted.mac[6:].replace(":", "")))
            if follows in ip_network(network.subnet):
                raise Forbidden(
                    f"MAC address {wanted.mac} is that of {follows} on network {network.name}: choose another, or none"
                )
        if int(wanted.mac[:2], 16) & 1 or wanted.mac == "00:00:00:00:00:00":
            raise InvalidParameter(f"MAC address {wanted.mac} is no single endpoint's")
        if (network.id, wanted.mac) in self._macs_underway:
            raise Forbidden(f"MAC address {wanted.mac} is being taken on network {network.name}")
        known = self.places.get(network.id, {})
        for address in self._of_macs.get((network.id, wanted.mac), ()):
            if address in known and known[address].node != wanted.node:
                raise Forbidden(f"MAC address {wanted.mac} is in use on network {network.name}: {address} has it")

    def _is_taken(self, network: Network, address: str) -> bool:
        return (
            address in self.places.get(network.id, {})
            or (key := key_of(network.id, address)) in self.underway
            or (ADDRESS, key) in self._unread
            or address in (network.gateway, network.gateway6)
            or address in network.aux_addresses.values()
            or address in network.aux_addresses6.values()
        )

    def _free(self, network: Network, subnet: str, node: str) -> str:
        """A free address. Each node begins to look somewhere else, so that two rarely find the same."""
        whole = ip_network(subnet)
        first, last = _range(network, subnet)
        count = last - first + 1
        begin = int.from_bytes(hashlib.sha256(node.encode()).digest()[:8]) % count
        for step in range(min(count, 1 << 20)):
            number = first + (begin + step) % count
            address = str(whole.network_address + (number - int(whole.network_address)))
            if not self._is_taken(network, address):
                return address
        raise Unavailable(f"no available IPv{whole.version} addresses on this network's address pools: {subnet}")

    # --- news

    def _hear(self, news: News) -> None:
        # A node may have another address or key now.
        if self.take_in(news) or any(record.kind == NODE for record in news.records):
            self._woken()

    def take_in(self, news: News) -> bool:
        """Bring memory up to what a watch tells. Whether anything was new."""
        changed = False
        if news.all:
            told = {record.name for record in news.records}
            for kind, key in [name for name in (*self._versions, *self._unread) if name not in told]:
                changed |= self._drop(kind, key, news.revision)
        for record in news.records:
            changed |= self._take(record.kind, record.key, record)
        for kind, key in news.gone:
            changed |= self._drop(kind, key, news.revision)
        return changed

    def _take(self, kind: str, key: str, record: ClusterRecord | None) -> bool:
        if kind not in (NETWORK, ADDRESS):
            return False
        if record is None:
            return self._drop(kind, key, self._versions.get((kind, key), NEW))
        if self._versions.get((kind, key), NEW) >= record.version:
            return False
        try:
            if kind == NETWORK:
                self._keep_network(key, decode(record.body, Network), record.version)
            else:
                self._keep_place(key, decode(record.body, Place), record.version)
        except MalformedDocument as error:
            if (kind, key) not in self._unread:
                log.warning("%s %s cannot be read here, and stays as it is: %s", kind, key, error)
            self._unread.add((kind, key))
            return False
        self._unread.discard((kind, key))
        return True

    def _keep_network(self, key: str, network: Network, version: int) -> None:
        self._versions[NETWORK, key] = version
        self.networks[key] = network
        self.changes += 1

    def _keep_place(self, key: str, place: Place, version: int) -> None:
        if self._versions.get((ADDRESS, key), NEW) <= version:
            self._versions[ADDRESS, key] = version
            self.changes += 1
            self._forget(key)
            self.places.setdefault(place.network, {})[place.address] = place
            self._of_nodes.setdefault(place.node, {})[key] = place
            self._of_macs.setdefault((place.network, place.mac), set()).add(place.address)
            if place.task:
                self._of_tasks.setdefault(place.task, {})[key] = place
            if place.kind != "endpoint":
                self._fixed.setdefault(place.network, {})[key] = place
            self._tell(place)

    def _drop(self, kind: str, key: str, revision: int) -> bool:
        """It was removed with this revision; one that was made after that stays."""
        self._unread.discard((kind, key))
        known = self._versions.get((kind, key))
        if known is None or known > revision:
            return False
        del self._versions[kind, key]
        self.changes += 1
        if kind == NETWORK:
            self.networks.pop(key, None)
        else:
            self._forget(key)
        return True

    def _forget(self, key: str) -> None:
        network, _, address = key.partition("/")
        place = self.places.get(network, {}).pop(address, None)
        if place is None:
            return
        if not self.places[network]:
            del self.places[network]
        behind = self._of_macs.get((network, place.mac), set())
        behind.discard(address)
        if not behind:
            self._of_macs.pop((network, place.mac), None)
        by_network = (self._fixed, place.network)
        for index, name in ((self._of_nodes, place.node), (self._of_tasks, place.task), by_network):
            if (places := index.get(name)) is not None:
                places.pop(key, None)
                if not places:
                    del index[name]
        self._tell(place)

    def _tell(self, place: Place) -> None:
        for observer in self.observers:
            observer(place)


def world_of(records: SwarmRecords, shared: OverlayAllocator) -> KnownNetworks:
    """All that there is to know of networks, and of what is on them."""
    return KnownNetworks(
        networks=shared.networks,
        services=records.services,
        nodes=records.nodes,
        tasks_on=records.index.on_node,
        tasks_of=records.index.of_service,
        places_of=shared.of,
        places_on=shared.on,
    )


def _closing(network: Network) -> str:
    return f"network {network.name} is being removed by another manager: try again in a moment"


def _range(network: Network, subnet: str) -> tuple[int, int]:
    """The first and the last address that are given out. Pure."""
    whole = ip_network(subnet)
    first, last = edges(whole)
    if within := network.ip_range if whole.version == 4 else network.ip_range6:
        part = ip_network(within)
        first, last = max(first, int(part.network_address)), min(last, int(part.broadcast_address))
    return first, last


def _parts(steps: list[T]) -> Iterator[list[T]]:
    for begin in range(0, len(steps), MOST_STEPS):
        yield steps[begin : begin + MOST_STEPS]
