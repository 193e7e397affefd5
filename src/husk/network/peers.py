"""The endpoints of an overlay network on other hosts, and what this host must be told of them. Pure.

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
from husk.kernel.netlink import NetlinkMessage

Address = IPv4Address | IPv6Address
K = TypeVar("K")
V = TypeVar("V")


class OverlayPeer(Struct, frozen=True):
    """An endpoint of the network: its address there, its MAC, and the address of the host that it is on."""

    address: str
    mac: str
    host: str


class Tables(Struct, frozen=True):
    """The entries of the kernel's three tables that tell of peers."""

    # Which MAC an address has.
    neighbours: Mapping[Address, str]
    # MACs that the bridge finds behind the VXLAN.
    stations: frozenset[str]
    # Which host a MAC is on.
    hosts: Mapping[str, Address]


def wanted(peers: Iterable[OverlayPeer], local: str) -> Tables:
    """Those of this host itself, whose address is `local`, are on its own bridge and not among them; nor are those of
    hosts with an address of the other version of IP, which VXLAN does not reach from there."""
    here = ip_address(local)
    neighbours: dict[Address, str] = {}
    hosts: dict[str, Address] = {}
    for peer in sorted(peers, key=lambda peer: (peer.address, peer.host)):
        host = ip_address(peer.host)
        if host == here or host.version != here.version:
            continue
        mac = _mac(peer)
        neighbours[ip_address(peer.address)] = mac
        hosts[mac] = host
    return Tables(neighbours, frozenset(hosts), hosts)


class Roll:
    """The peers that were told last. What a change is then takes no look at the kernel's tables, nor at other peers."""

    def __init__(self, local: str, peers: Iterable[OverlayPeer] = ()) -> None:
        self._local = local
        self._peers = {peer.address: peer for peer in peers}
        # The addresses behind each MAC.
        self._behind: dict[str, set[str]] = {}
        for peer in self._peers.values():
            self._behind.setdefault(_mac(peer), set()).add(peer.address)

    def change(self, peers: Iterable[OverlayPeer]) -> tuple[Tables, Tables]:
        """These are told now. The tables before and after, as far as they differ: all that is behind a MAC whose peers
        have changed."""
        known, told = self._peers, {peer.address: peer for peer in peers}
        changed: list[tuple[OverlayPeer | None, OverlayPeer | None]] = [
            (known.get(address), peer) for address, peer in told.items() if known.get(address) != peer
        ]
        changed += [(known[address], None) for address in known.keys() - told.keys()]
        macs = {_mac(peer) for pair in changed for peer in pair if peer is not None}
        before = wanted((known[address] for mac in macs for address in self._behind.get(mac, ())), self._local)
        for former, peer in changed:
            if former is not None:
                self._behind[_mac(former)].discard(former.address)
            if peer is not None:
                self._behind.setdefault(_mac(peer), set()).add(peer.address)
        self._peers = told
        after = wanted((told[address] for mac in macs for address in self._behind[mac]), self._local)
        for mac in macs:
            if not self._behind[mac]:
                del self._behind[mac]
        return before, after


def difference(present: Tables, wanted: Tables, bridge: int, vxlan: int, link: int = 0) -> list[NetlinkMessage]:
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


def _mac(peer: OverlayPeer) -> str:
    return peer.mac.replace("-", ":").lower()


def _new(present: Mapping[K, V], wanted: Mapping[K, V]) -> list[tuple[K, V]]:
    return [(key, value) for key, value in wanted.items() if present.get(key) != value]
