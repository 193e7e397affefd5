"""Who is on an overlay network on other hosts, and what this host must be told of them. Pure.

Three tables of the kernel have to agree: the bridge's neighbours (which MAC an address has), the bridge's stations
(which port a MAC is behind) and the VXLAN's own (which host a MAC is on). `difference` gives the messages that bring
them from what they are to what they should be. What is new comes first, in the order in which a packet needs it from
its end to its beginning; what goes comes last, the other way round. So a packet finds the whole way or none.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from msgspec import Struct

from husk.kernel import rtaddresses, rtvxlan
from husk.kernel.netlink import Message

Address = IPv4Address | IPv6Address
K = TypeVar("K")
V = TypeVar("V")


class Peer(Struct, frozen=True):
    """An endpoint of the network: its address there, its MAC, and the address of the host that it is on."""

    address: str
    mac: str
    host: str


class Tables(Struct, frozen=True):
    """What the kernel is told of peers."""

    # Which MAC an address has.
    neighbours: Mapping[Address, str]
    # MACs that the bridge finds behind the VXLAN.
    stations: frozenset[str]
    # Which host a MAC is on.
    hosts: Mapping[str, Address]


def wanted(peers: Iterable[Peer], local: str) -> Tables:
    """Those of this host itself, whose address is `local`, are on its own bridge and not among them."""
    here = ip_address(local)
    neighbours: dict[Address, str] = {}
    hosts: dict[str, Address] = {}
    for peer in sorted(peers, key=lambda peer: (peer.address, peer.host)):
        host = ip_address(peer.host)
        if host == here:
            continue
        mac = peer.mac.replace("-", ":").lower()
        neighbours[ip_address(peer.address)] = mac
        hosts[mac] = host
    return Tables(neighbours, frozenset(hosts), hosts)


def difference(present: Tables, wanted: Tables, bridge: int, vxlan: int, link: int = 0) -> list[Message]:
    """Messages that make the kernel's tables those that are wanted; none where they are. `link` is the one interface
    that leads to hosts, or 0."""
    return [
        *(rtvxlan.add_remote(vxlan, mac, host, link) for mac, host in _new(present.hosts, wanted.hosts)),
        *(rtaddresses.add_station(vxlan, mac) for mac in sorted(wanted.stations - present.stations)),
        *(
            rtaddresses.add_neighbour(bridge, address, mac, rtaddresses.TOLD_OF_PEER)
            for address, mac in _new(present.neighbours, wanted.neighbours)
        ),
        *(
            rtaddresses.delete_neighbour(bridge, address)
            for address in present.neighbours
            if address not in wanted.neighbours
        ),
        *(rtvxlan.delete_station(vxlan, mac) for mac in sorted(present.stations - wanted.stations)),
        *(rtvxlan.delete_remote(vxlan, mac) for mac in present.hosts if mac not in wanted.hosts),
    ]


def _new(present: Mapping[K, V], wanted: Mapping[K, V]) -> list[tuple[K, V]]:
    return [(key, value) for key, value in wanted.items() if present.get(key) != value]
