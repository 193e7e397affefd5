"""The driver of one overlay network's way to other hosts: a VXLAN interface beside the network's bridge.

    container ── bridge ── VXLAN ══ UDP between hosts ══ VXLAN ── bridge ── container

Nothing is learned and nothing is flooded: who is on which host is told by the engine (`OverlayPeer`) and written into
the kernel's tables (`peers`), and the bridge answers questions for neighbours (ARP, ND) with what it was told. The
kernel carries packets by itself: a daemon that ends changes nothing, and one that starts compares and corrects.

Every host has the network's gateway on its own bridge, at the same address and with the same MAC: containers leave
their network on the host that they are on, and a gateway is never looked for on another host. So the host needs an
address of its own besides (`own`), at which endpoints on other hosts can answer it: packets that it sends them in
somebody else's name come from there (`balance`). The VXLAN interface has the MAC of that address.
"""

import asyncio
import errno
import socket
import time
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import namespaces, rtaddresses, rtnetlink, rtvxlan
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.rtvxlan import VxlanTunnel
from husk.network import hardening, host, peers
from husk.network.ipam import mac_address
from husk.network.peers import OverlayPeer, Roll, Tables
from husk.network.sandbox import Lease

# IPv4 or IPv6, UDP, VXLAN and the frame's own head, in front of the packet.
OVERHEAD = {4: 20 + 8 + 8 + 14, 6: 40 + 8 + 8 + 14}
# The same, and WireGuard's head and check value, in front of what is encrypted.
WIREGUARD_OVERHEAD = {4: 20 + 8 + 32, 6: 40 + 8 + 32}
LARGEST_VNI = (1 << 24) - 1
_LEAST_MTU = {4: 68, 6: 1280}
_GONE = (errno.ENOENT, errno.ENODEV, errno.EADDRNOTAVAIL)
# After which time a change is made of what the kernel has, not of what it was told last: somebody else may have changed
# it. In seconds.
LOOK_AGAIN = 60.0


class OverlaySettings(Struct, frozen=True):
    """The settings of an overlay network on this host."""

    # Its bridge, which is there, and the VXLAN interface that is to be.
    bridge: str
    interface: str
    # Marks what we made on the host; the same for all networks of a daemon.
    owner: str
    # The network's number, the same on all hosts, and the UDP port that all hosts listen on.
    vni: int
    port: int
    # This host's address among the others'.
    local: str
    # This host's address on the network.
    own: str
    mtu: int
    # Its IPv6 address there, on a network that has them.
    own6: str = ""
    # The interface that leads to other hosts, where only that one may; `local` is a link-local address on it then.
    link: str = ""

    def tunnel(self) -> VxlanTunnel:
        """OSError where `link` is not there. Blocks."""
        link = socket.if_nametoindex(self.link) if self.link else 0
        return VxlanTunnel(self.vni, self.port, ip_address(self.local), link=link)

    @property
    def mac(self) -> str:
        return mac_address(ip_address(self.own))

    def check(self) -> None:
        if not 1 <= self.vni <= LARGEST_VNI:
            raise InvalidParameter(f"{self.vni} is no number of a VXLAN: 1 to {LARGEST_VNI}")
        if not 1 <= self.port <= 65535:
            raise InvalidParameter(f"{self.port} is no UDP port")


def largest_mtu(underlay: int, version: int, encrypted: bool = False) -> int:
    """The largest packet on the network that fits into one between hosts, whose addresses are of that version. Where
    it is encrypted, VXLAN goes over IPv6 inside of WireGuard. Pure."""
    mtu = underlay - WIREGUARD_OVERHEAD[version] - OVERHEAD[6] if encrypted else underlay - OVERHEAD[version]
    if mtu < _LEAST_MTU[4]:
        raise InvalidParameter(f"an MTU of {underlay} between hosts leaves no room for an overlay network")
    return mtu


def underlay_mtu(local: str) -> int:
    """The MTU of the interface that has the address. Blocks."""
    wanted = ip_address(local)
    with NetlinkSocket() as netlink:
        found = map(rtaddresses.parse_address, netlink.dump(rtaddresses.list_addresses(wanted.version)))
        index = next((address.index for address in found if address.interface.ip == wanted), 0)
        links = map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))
        mtu = next((link.mtu for link in links if link.index == index), 0)
    if not mtu:
        raise InvalidParameter(f"{local} is no address of this host: overlay networks need one to reach other hosts by")
    return mtu


class Overlay:
    """One network's VXLAN interface and what it knows. Changes follow one another, in threads."""

    def __init__(self, settings: OverlaySettings) -> None:
        self._settings = settings
        self._changing = asyncio.Lock()
        self._peers: tuple[OverlayPeer, ...] | None = None
        # What the kernel was told last, and to which interfaces; None where that is not known.
        self._told: ToldPeers | None = None

    @classmethod
    async def open(cls, settings: OverlaySettings) -> "Overlay":
        """Make the interface, or correct the one that is there; what it knows of peers stays until `tell`."""
        settings.check()
        await asyncio.to_thread(prepare, settings)
        return cls(settings)

    @property
    def settings(self) -> OverlaySettings:
        return self._settings

    @property
    def is_there(self) -> bool:
        """True while the host has the interface; somebody may have deleted it."""
        try:
            return socket.if_nametoindex(self._settings.interface) > 0
        except OSError:
            return False

    async def tell(self, peers: Iterable[OverlayPeer]) -> int:
        """These are all endpoints of the network, this host's own among them or not. How much had to be changed."""
        async with self._changing:
            self._peers = tuple(peers)
            return await asyncio.to_thread(self._tell, self._peers)

    def mend(self) -> None:
        """The bridge was made anew: be its port again, and tell it what it knew. Blocks."""
        prepare(self._settings)
        self._told = None
        if self._peers is not None:
            self._tell(self._peers)

    def _tell(self, members: tuple[OverlayPeer, ...]) -> int:
        """Tell the kernel of peers. What fails, or is cut off, is done anew from what the kernel has then. Blocks."""
        told, self._told = self._told, None
        self._told, count = tell(self._settings, members, told)
        return count

    async def close(self, remove: bool) -> None:
        """`remove` says that the network ends here. Safe to call twice."""
        async with self._changing:
            if remove:
                await asyncio.to_thread(_remove, self._settings)


def prepare(settings: OverlaySettings) -> None:
    """Make the VXLAN interface as it should be and a port of the bridge, changing no more than is wrong. Blocks."""
    try:
        with NetlinkSocket() as netlink:
            _prepare(netlink, settings)
    except OSError as error:
        why = f"UDP port {settings.port} is taken on this host" if error.errno == errno.EADDRINUSE else str(error)
        raise SystemFault(f"overlay interface {settings.interface} cannot be set up: {why}") from error


def _prepare(netlink: NetlinkSocket, settings: OverlaySettings) -> None:
    name = settings.interface
    listed = netlink.dump(rtnetlink.list_links())
    links = {link.name: (link, payload) for payload in listed for link in [rtnetlink.parse_link(payload)]}
    if settings.bridge not in links:
        raise SystemFault(f"the bridge {settings.bridge} of an overlay network is not there")
    master = links[settings.bridge][0].index
    link, payload = links.get(name, (None, b""))
    tunnel = settings.tunnel()
    if link is not None and rtvxlan.parse_tunnel(payload) != tunnel:
        if link.alias != settings.owner:
            raise SystemFault(f"interface {name} exists and is not of this daemon")
        netlink.execute(rtnetlink.delete_link(name))
        link = None
    if link is None:
        netlink.execute(
            rtvxlan.add_vxlan(name, settings.mac, tunnel, settings.mtu),
            rtnetlink.set_alias(name, settings.owner),
        )
        hardening.port(name)
    messages = []
    if link is not None and link.mac != settings.mac:
        messages.append(rtnetlink.set_mac(name, settings.mac))
    if link is not None and link.mtu != settings.mtu:
        messages.append(rtnetlink.set_mtu(name, settings.mtu))
    if link is None or link.master != master:
        messages.append(rtnetlink.set_master(name, master))
    netlink.execute(*messages, rtvxlan.set_told_port(name), rtnetlink.set_up(name))
    # One address, whatever the prefix of the network: a packet of the host's own comes from its gateway address.
    own = [ip_interface(address) for address in (settings.own, settings.own6) if address]
    netlink.execute(*(rtaddresses.add_address(master, address) for address in own))


class ToldPeers(NamedTuple):
    """The peers that the kernel was told of, so that a change costs no look at all of them."""

    roll: Roll
    # The bridge and the VXLAN interface.
    interfaces: tuple[int, int]
    # When it was compared with what the kernel has, in seconds of a clock that only runs.
    looked: float


def tell(
    settings: OverlaySettings, members: Collection[OverlayPeer], told: ToldPeers | None = None
) -> tuple[ToldPeers | None, int]:
    """Bring the kernel's tables to these peers, in one batch; what was told then, and how many messages it took.
    Without `told` they are compared with what the kernel has. Blocks."""
    try:
        with NetlinkSocket() as netlink:
            interfaces = bridge, vxlan = _interfaces(settings)
            now = time.monotonic()
            if told is not None and told.interfaces == interfaces and now < told.looked + LOOK_AGAIN:
                present, goal = told.roll.change(members)
            else:
                present, goal = look(netlink, bridge, vxlan), peers.wanted(members, settings.local)
                told = ToldPeers(Roll(settings.local, members), interfaces, now)
            messages = peers.difference(present, goal, bridge, vxlan, settings.tunnel().link)
            gone = False
            for error in netlink.attempt(messages):
                if error is not None and error.errno not in _GONE:
                    raise error
                gone = gone or error is not None
            # Somebody else has taken something away: what else is missing is seen by the next look.
            return None if gone else told, len(messages)
    except OSError as error:
        raise SystemFault(f"the peers of {settings.interface} cannot be set: {error}") from error


def _interfaces(settings: OverlaySettings) -> tuple[int, int]:
    return socket.if_nametoindex(settings.bridge), socket.if_nametoindex(settings.interface)


def look(netlink: NetlinkSocket, bridge: int, vxlan: int) -> Tables:
    """Read from the kernel what it was told of peers. Blocks."""
    forwarded = [rtvxlan.parse_forwarding(one, vxlan) for one in netlink.dump(rtvxlan.list_forwarding(vxlan))]
    found = [one for one in forwarded if one is not None]
    neighbours: dict[IPv4Address | IPv6Address, str] = {}
    for version in (4, 6):
        try:
            listed = netlink.dump(rtaddresses.list_neighbours(version, bridge))
        except OSError:
            if version == 4:
                raise
            continue  # a kernel without IPv6
        entries = map(rtaddresses.parse_neighbour, listed)
        told = [entry for entry in entries if entry.told == rtaddresses.TOLD_OF_PEER]
        neighbours |= {entry.address: entry.mac for entry in told if entry.index == bridge and entry.permanent}
    return Tables(
        neighbours,
        frozenset(one.mac for one in found if one.host is None),
        {one.mac: one.host for one in found if one.host is not None},
    )


class Ends:
    """Both ends of the pairs that lead into sandboxes. An interface that is gone needs nothing."""

    def fit_inside(self, sandbox_path: str, interface: str, mtu: int) -> None:
        """OSError where the sandbox is gone."""
        namespaces.run_inside(Path(sandbox_path), lambda: self.fit_outside(interface, mtu))

    def fit_outside(self, interface: str, mtu: int) -> None:
        with NetlinkSocket() as netlink:
            _set_mtu(netlink, interface, mtu)


def fit(leases: Iterable[Lease], mtu: int, ends: Ends | None = None) -> None:
    """Let running containers send no larger packets than the network takes, on both ends of their pairs. What one of
    them fails with is raised after all others. Blocks."""
    ends, failed = ends or Ends(), list[OSError]()
    for lease in leases:
        try:
            ends.fit_inside(lease.sandbox_path, lease.interface, mtu)
            ends.fit_outside(lease.host_interface, mtu)
        except OSError as error:
            # Where it has just ended its place is gone, or is no namespace any more.
            if error.errno not in (errno.ENOENT, errno.EINVAL):
                failed.append(error)
    if failed:
        raise failed[0]


def _set_mtu(netlink: NetlinkSocket, interface: str, mtu: int) -> None:
    (error,) = netlink.attempt([rtnetlink.set_mtu(interface, mtu)])
    if error is not None and error.errno not in _GONE:
        raise error


def _remove(settings: OverlaySettings) -> None:
    """The interface goes, and what the bridge was told, if that is still there."""
    with NetlinkSocket() as netlink:
        bridge = next((index for index, name in socket.if_nameindex() if name == settings.bridge), 0)
        if bridge:
            told = look(netlink, bridge, 0).neighbours
            own = [ip_interface(address) for address in (settings.own, settings.own6) if address]
            netlink.attempt(
                [
                    *(rtaddresses.delete_neighbour(bridge, address) for address in told),
                    *(rtaddresses.delete_address(bridge, address) for address in own),
                ]
            )
    host.remove(settings.interface, settings.owner)
