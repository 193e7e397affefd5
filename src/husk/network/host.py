"""What must the host look like for a bridge network? A bridge with an address, forwarding, a subnet of its own."""

import errno
import logging
import socket
from collections.abc import Collection, Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import NamedTuple

from husk.config import AddressPool
from husk.errors import InvalidParameter, SystemFault
from husk.kernel import namespaces, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network import ipam

log = logging.getLogger(__name__)

_DEFAULT_MTU = 1500
_FORWARDING = "net/ipv4/ip_forward"
_RESOLVERS = Path("/etc/resolv.conf")


class BridgePlan(NamedTuple):
    """What was asked for, and what was so last time."""

    interface: str
    # Marks the bridge as made by us: only such a bridge is ever deleted.
    owner: str
    bip: str
    pools: tuple[AddressPool, ...]
    remembered: str | None
    in_use: bool
    # 0 for what the uplinks take.
    mtu: int = 0


class BridgeState(NamedTuple):
    """What is so now."""

    gateway: IPv4Interface
    mtu: int


class Surroundings(NamedTuple):
    """What the host has already."""

    bridge: rtnetlink.Link | None
    # Addresses of our bridge.
    own: list[IPv4Interface]
    # Networks that are reached through other interfaces.
    taken: list[IPv4Network]
    mtu: int


def decide(plan: BridgePlan, surroundings: Surroundings) -> IPv4Interface:
    """The bridge's address: configured, else what it was, else from the first free pool."""
    if plan.bip:
        return ipam.parse_bip(plan.bip)
    candidates = [own for own in surroundings.own if own.network.prefixlen <= 30]
    if plan.remembered:
        try:
            subnet = IPv4Network(plan.remembered)
        except ValueError as error:
            raise InvalidParameter(f"invalid subnet {plan.remembered!r}: {error}") from error
        same = [own for own in candidates if own.network == subnet]
        candidates = same[:1] or [ipam.first_host(subnet)]
    for candidate in candidates:
        if not ipam.overlaps(candidate.network, surroundings.taken):
            return candidate
        if plan.in_use:
            log.warning("subnet %s of running containers overlaps another route of this host", candidate.network)
            return candidate
        log.warning("subnet %s now overlaps another route of this host: choosing another", candidate.network)
    return ipam.first_host(ipam.choose_subnet(plan.pools, surroundings.taken))


def ensure(plan: BridgePlan) -> BridgeState:
    """Create the bridge or repair it, and let the host forward packets. Blocks: call from a thread."""
    # Two daemons that start at the same moment must not choose the same subnet.
    with namespaces.exclusive(), NetlinkSocket() as netlink:
        surroundings = look_around(netlink, plan.interface)
        gateway = decide(plan, surroundings)
        _ensure_bridge(netlink, plan, surroundings, gateway)
    # Lets a process of the host reach published ports through the loopback; the firewall guards the other direction.
    sysctl.try_write(f"net/ipv4/conf/{plan.interface}/route_localnet", "1")
    _ensure_forwarding()
    return BridgeState(gateway, plan.mtu or surroundings.mtu)


def remove(interface: str, owner: str) -> None:
    """Delete the bridge if it is there and `ensure` made it."""
    with NetlinkSocket() as netlink:
        links = map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))
        if any(link.name == interface and link.alias == owner for link in links):
            (error,) = netlink.attempt([rtnetlink.delete_link(interface)])
            if error is not None and error.errno != errno.ENODEV:
                raise error


def sweep(owner: str, keep: Collection[str]) -> None:
    """Delete the bridges that `ensure` made for this owner, but those to keep."""
    with NetlinkSocket() as netlink:
        for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links())):
            if link.kind == "bridge" and link.alias == owner and link.name not in keep:
                log.info("removing bridge %s, which belongs to no network", link.name)
                netlink.attempt([rtnetlink.delete_link(link.name)])


def look_around(netlink: NetlinkSocket, interface: str) -> Surroundings:
    links = {link.index: link for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))}
    addresses = [rtnetlink.parse_address(payload) for payload in netlink.dump(rtnetlink.list_addresses())]
    routes = [route for payload in netlink.dump(rtnetlink.list_routes()) if (route := rtnetlink.parse_route(payload))]
    bridge = next((link for link in links.values() if link.name == interface), None)
    if bridge is not None and bridge.kind != "bridge":
        raise SystemFault(f"interface {interface} exists and is no bridge: choose another name with 'bridge'")
    own_index = bridge.index if bridge else 0
    taken = [route.destination for route in routes if not own_index or route.index != own_index]
    # Interfaces that are down have addresses without routes.
    taken += [address.interface.network for address in addresses if address.index != own_index]
    taken += [IPv4Network(server) for server in _nameservers()]
    uplinks = [links[route.index].mtu for route in routes if not route.destination.prefixlen and route.index in links]
    return Surroundings(
        bridge=bridge,
        own=[address.interface for address in addresses if address.index == own_index],
        taken=taken,
        # Containers that send larger packets than the uplink takes depend on path MTU discovery, which often fails.
        mtu=min([_DEFAULT_MTU, *uplinks]),
    )


def _nameservers() -> list[IPv4Address]:
    try:
        lines = _RESOLVERS.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return parse_nameservers(lines)


def parse_nameservers(lines: Iterable[str]) -> list[IPv4Address]:
    """The IPv4 resolvers of a resolv.conf: a subnet with their address would hide them from the host."""
    servers = []
    for line in lines:
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                servers.append(IPv4Address(words[1]))
            except AddressValueError:
                continue
    return servers


def _ensure_bridge(
    netlink: NetlinkSocket, plan: BridgePlan, surroundings: Surroundings, gateway: IPv4Interface
) -> None:
    name = plan.interface
    if surroundings.bridge is None:
        netlink.execute(
            rtnetlink.add_bridge(name, ipam.mac_address(gateway.ip)),
            rtnetlink.set_alias(name, plan.owner),
        )
    index = socket.if_nametoindex(name)
    stale = [own for own in surroundings.own if own != gateway]
    netlink.execute(
        *(rtnetlink.delete_address(index, own) for own in stale),
        rtnetlink.add_address(index, gateway),
        rtnetlink.set_up(name),
    )


def _ensure_forwarding() -> None:
    if sysctl.read(_FORWARDING) != "1":
        log.info("enabling IPv4 forwarding on this host (%s)", _FORWARDING)
        sysctl.write(_FORWARDING, "1")
