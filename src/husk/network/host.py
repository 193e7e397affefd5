"""The host's part of a bridge network: a bridge with an address, forwarding, a subnet of its own."""

import errno
import logging
import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    collapse_addresses,
    ip_interface,
    ip_network,
)
from pathlib import Path
from typing import NamedTuple, cast

from msgspec import Struct

from husk.config import AddressPool
from husk.errors import Conflict, InvalidParameter, SystemFault
from husk.kernel import namespaces, nflisting, rtaddresses, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening, ipam
from husk.text.subnets import parse_bip

log = logging.getLogger(__name__)

_DEFAULT_MTU = 1500
_LEAST_MTU_6 = 1280
# Of the subnets of a host that others are told.
_MOST_USED = 128
_FORWARDING = "net/ipv4/ip_forward"
_FORWARDING_6 = "net/ipv6/conf/all/forwarding"
_SETTINGS_6 = Path("/proc/sys/net/ipv6/conf")
_RESOLVERS = Path("/etc/resolv.conf")
# Whom systemd-resolved asks, where the other file names systemd-resolved itself.
_UPSTREAMS = Path("/run/systemd/resolve/resolv.conf")
_MACHINE_ID = Path("/etc/machine-id")


class BridgePlan(Struct, frozen=True):
    """The bridge that is asked for, and the subnet that it had last time."""

    interface: str
    # Marks the bridge as made by us: only such a bridge is ever deleted.
    owner: str
    bip: str
    pools: tuple[AddressPool, ...]
    remembered: str | None
    in_use: bool
    # 0 for what the uplinks take.
    mtu: int = 0
    # The gateway's IPv6 address with its prefix, or what a subnet is to be chosen from; empty without IPv6.
    bip6: str = ""
    pool6: str = ""
    # Without IPv4 there must be IPv6.
    ipv4: bool = True
    # The versions of IP of which the bridge has no address: its subnet is the containers' alone.
    bare: frozenset[int] = frozenset()
    # Whether it has to be there already.
    must_exist: bool = False
    # Whether forwarding may be switched on where it is off.
    forward: bool = True
    # Addresses that the host may have on the bridge besides.
    own: frozenset[IPv4Address | IPv6Address] = frozenset()

    @property
    def ipv6(self) -> bool:
        return bool(self.bip6 or self.pool6)


class BridgeState(NamedTuple):
    """The bridge as it is now: the gateways with their subnets, None without that version of IP."""

    gateway: IPv4Interface | None
    mtu: int
    gateway6: IPv6Interface | None = None
    bridge_index: int = 0
    # The MAC of a bridge of ours; "" for one of the administrator's, which may change.
    mac: str = ""
    # Addresses on it of endpoints that no lease tells of.
    taken: tuple[str, ...] = ()


class HostSurroundings(Struct, frozen=True):
    """The bridge, the addresses, the networks and the MTU that the host has already."""

    bridge: rtnetlink.Link | None
    # Addresses of our bridge.
    own: list[IPv4Interface]
    # Networks that are reached through other interfaces.
    taken: list[IPv4Network]
    mtu: int
    own6: Sequence[IPv6Interface] = ()
    taken6: Sequence[IPv6Network] = ()


def decide(plan: BridgePlan, surroundings: HostSurroundings) -> IPv4Interface | None:
    """The bridge's address, if it has one: configured, else what it was, else from the first free pool."""
    if not plan.ipv4:
        return None
    if plan.bip:
        return parse_bip(plan.bip)
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


def decide_6(plan: BridgePlan, surroundings: HostSurroundings) -> IPv6Interface | None:
    """The bridge's IPv6 address, if it has one."""
    if plan.bip6:
        return IPv6Interface(plan.bip6)
    if plan.pool6:
        return ipam.first_host_6(ipam.choose_subnet_6(IPv6Network(plan.pool6), surroundings.taken6, plan.pools))
    return None


class HostNetwork:
    """The host's links, addresses and routes, looked at once for any number of bridges. See `looking`."""

    def __init__(self, netlink: NetlinkSocket) -> None:
        self.netlink = netlink
        self.links = {link.index: link for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))}
        self.by_name = {link.name: link for link in self.links.values()}
        addresses: list[rtaddresses.InterfaceAddress] = []
        routes: list[rtaddresses.KernelRoute] = []
        for version in (4, 6):
            try:
                listed = netlink.dump(rtaddresses.list_addresses(version))
                ways = netlink.dump(rtaddresses.list_routes(version))
            except OSError:
                if version == 4:
                    raise
                continue  # a kernel without IPv6
            addresses += map(rtaddresses.parse_address, listed)
            routes += filter(None, map(rtaddresses.parse_route, ways))
        # What interfaces lead to, by versions of IP; those that are down have addresses without routes. It is asked for
        # as often as there are networks.
        self._reached: dict[int, list[tuple[int, IPv4Network | IPv6Network]]] = {4: [], 6: []}
        self._addresses: dict[int, list[IPv4Interface | IPv6Interface]] = {}
        for route in routes:
            self._reached[route.destination.version].append((route.index, route.destination))
        for address in addresses:
            self._keep(address.index, address.interface)
        self._uplinks = {route.index for route in routes if not route.destination.prefixlen}
        self._heard = {route.index for route in routes if route.learned}
        self._resolvers = addresses_of([*name_servers(), *parse_name_servers(_text(_UPSTREAMS))])

    def _keep(self, index: int, interface: IPv4Interface | IPv6Interface) -> None:
        self._reached[interface.version].append((index, interface.network))
        self._addresses.setdefault(index, []).append(interface)

    def around(self, interface: str) -> HostSurroundings:
        """Collect what the host has around this bridge. Conflict if the interface is no bridge."""
        bridge = self.by_name.get(interface)
        if bridge is not None and bridge.kind != "bridge":
            raise Conflict(f"interface {interface} exists and is no bridge: choose another name with 'bridge'")
        own_index = bridge.index if bridge else -1
        own = self._addresses.get(own_index, ())
        taken, taken6 = (
            [network for index, network in self._reached[version] if index != own_index] for version in (4, 6)
        )
        servers = self._resolvers
        return HostSurroundings(
            bridge=bridge,
            own=[one for one in own if isinstance(one, IPv4Interface)],
            taken=cast(list[IPv4Network], taken + [one for one in servers if one.version == 4]),
            # Containers that send larger packets than the uplink takes depend on path MTU discovery, which often fails.
            mtu=self.mtu,
            own6=[one for one in own if isinstance(one, IPv6Interface)],
            taken6=cast(list[IPv6Network], taken6 + [one for one in servers if one.version == 6]),
        )

    def used(self, without: Collection[str]) -> tuple[str, ...]:
        """As the function of that name."""
        own = {self.by_name[name].index for name in without if name in self.by_name}
        found = [network for reached in self._reached.values() for index, network in reached if index not in own]
        found += self._resolvers
        kept = [
            one for one in found if one.prefixlen and not (one.is_loopback or one.is_link_local or one.is_multicast)
        ]
        four = collapse_addresses(one for one in kept if isinstance(one, IPv4Network))
        six = collapse_addresses(one for one in kept if isinstance(one, IPv6Network))
        return tuple(str(one) for one in (*four, *six))[:_MOST_USED]

    @property
    def mtu(self) -> int:
        return min([_DEFAULT_MTU, *(self.links[index].mtu for index in self._uplinks if index in self.links)])

    def uplinks_6(self) -> list[str]:
        """The interfaces that must go on listening to routers when the host forwards packets, or it loses its own way.

        Hardware, and others that a router was heard on. Not what leads to containers or machines inside this host:
        they would become its routers.
        """
        links = [link for link in self.links.values() if link.name != "lo"]
        return [link.name for link in links if not link.kind or link.index in self._heard]

    def note(self, state: BridgeState, index: int) -> None:
        """A bridge has got these addresses: the next one must not get them too."""
        for gateway in (state.gateway, state.gateway6):
            if gateway is not None:
                self._keep(index, gateway)


@contextmanager
def looking() -> Iterator[HostNetwork]:
    """The host, while nobody else chooses subnets: two daemons that start at once must not choose the same. Blocks."""
    with namespaces.exclusive(), NetlinkSocket() as netlink:
        yield HostNetwork(netlink)


def used(without: Collection[str]) -> tuple[str, ...]:
    """The subnets that this host reaches, but by these interfaces; of very many the first. Blocks."""
    with NetlinkSocket() as netlink:
        return HostNetwork(netlink).used(without)


def ensure(plan: BridgePlan, host: HostNetwork) -> BridgeState:
    """Create the bridge or repair it, and let the host forward packets. Blocks: call from a thread."""
    surroundings = host.around(plan.interface)
    if plan.ipv6:
        require_ipv6()
    state = BridgeState(decide(plan, surroundings), plan.mtu or surroundings.mtu, decide_6(plan, surroundings))
    index, mac = _ensure_bridge(host.netlink, plan, surroundings, state)
    host.note(state, index)
    if state.gateway is not None:
        # Lets a process of the host reach published ports through the loopback; the firewall guards the other way.
        sysctl.try_write(f"net/ipv4/conf/{plan.interface}/route_localnet", "1")
        _ensure_forwarding(plan.forward)
    if state.gateway6 is not None:
        _ensure_forwarding_6(host, plan.forward)
    return state._replace(bridge_index=index, mac=mac)


def require_ipv6() -> None:
    if not _SETTINGS_6.exists():
        raise SystemFault("IPv6 networks need a kernel with IPv6, and this host's has none (/proc/sys/net/ipv6)")


def remove(interface: str, owner: str) -> None:
    """Delete the bridge if it is there and `ensure` made it."""
    with NetlinkSocket() as netlink:
        if any(link.name == interface for link in _owned(netlink, owner)):
            (error,) = netlink.attempt([rtnetlink.delete_link(interface)])
            if error is not None and error.errno != errno.ENODEV:
                raise error


def find(interface: str) -> rtnetlink.Link | None:
    """None where there is no interface of that name."""
    if interface not in (name for _, name in socket.if_nameindex()):
        return None
    with NetlinkSocket() as netlink:
        links = map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))
        return next((link for link in links if link.name == interface), None)


def is_unmarked(link: rtnetlink.Link) -> bool:
    """Return True if a daemon made the link for WireGuard and was killed before the mark. Somebody else's is in use."""
    return link.kind in ("tun", "wireguard") and not link.alias and not link.up


def has_left(interface: str, table: str, path: Path) -> bool:
    """Return True if a daemon that was killed has left a part of its device for encrypted networks: an interface
    without a mark, or, without any interface, its rules or its socket."""
    if (link := find(interface)) is not None:
        return is_unmarked(link)
    with suppress(OSError):
        return path.exists() or nflisting.has_table("ip6", table)
    return False


def drop_address(interface: str, address: str) -> None:
    """Take an address off an interface, if that is there and has it."""
    with NetlinkSocket() as netlink, suppress(OSError):
        netlink.attempt([rtaddresses.delete_address(socket.if_nametoindex(interface), ip_interface(address))])


def sweep(owner: str, keep: Collection[str]) -> list[str]:
    """Delete the interfaces that were made for this owner, but those to keep; which they were."""
    with NetlinkSocket() as netlink:
        swept = [link.name for link in _owned(netlink, owner) if link.name not in keep]
        for name in swept:
            log.info("removing interface %s, which belongs to no network", name)
            netlink.attempt([rtnetlink.delete_link(name)])
    return swept


def _owned(netlink: NetlinkSocket, owner: str) -> list[rtnetlink.Link]:
    """The interfaces that were made for this owner. All others, of which there may be thousands, are not even read."""
    mark = owner.encode()
    candidates = [payload for payload in netlink.dump(rtnetlink.list_links()) if mark in payload]
    return [link for link in map(rtnetlink.parse_link, candidates) if link.alias == owner]


@contextmanager
def free_name(name: str, owner: str) -> Iterator[bool]:
    """Yield True if an interface of this name is this owner's or is not there. For as long as the context lasts no
    other of our daemons on this host is told so, too. Blocks."""
    if _is_owned(name, owner):
        yield True
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as claim:
        try:
            # A name of the network namespace, as that of an interface; it goes with its socket.
            claim.bind(f"\0husk interface {name}")
        except OSError:
            yield False
            return
        yield all(name != other for _, other in socket.if_nameindex())


def _is_owned(name: str, owner: str) -> bool:
    with NetlinkSocket() as netlink:
        return any(link.name == name for link in _owned(netlink, owner))


def machine_id() -> str:
    """Read the id that tells this host from others; empty where it has none."""
    return _text(_MACHINE_ID).strip()


def name_servers() -> list[str]:
    """Read which name servers the host asks."""
    return parse_name_servers(_text(_RESOLVERS))


def parse_name_servers(resolv_conf: str) -> list[str]:
    words = (line.split() for line in resolv_conf.splitlines())
    return [word[1] for word in words if len(word) > 1 and word[0] == "nameserver"]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def addresses_of(servers: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    """Each as a subnet of one address: another that has it would hide them from the host. Those of a link (IPv6) are
    reached there, whatever is routed."""
    found = []
    for server in servers:
        with suppress(ValueError):
            found.append(ip_network(server))
    return [one for one in found if one.version == 4 or not one.is_link_local]


def _ensure_bridge(
    netlink: NetlinkSocket, plan: BridgePlan, surroundings: HostSurroundings, state: BridgeState
) -> tuple[int, str]:
    """Bring the bridge to this state, asking the kernel for no more than is missing; its index, and its MAC if ours."""
    name, link = plan.interface, surroundings.bridge
    gateway = None if 4 in plan.bare else state.gateway
    gateway6 = None if 6 in plan.bare else state.gateway6
    own6 = surroundings.own6
    mac = link.mac if link is not None else _mac(plan, state)
    ours = link is None or link.alias == plan.owner
    if link is None and plan.must_exist:
        raise InvalidParameter(
            f"bridge device with non default name {name} must be created manually (ip link add {name} type bridge)"
        )
    if link is None:
        netlink.execute(rtnetlink.add_bridge(name, mac), rtnetlink.set_alias(name, plan.owner))
    index = link.index if link is not None else socket.if_nametoindex(name)
    if ours:
        if hardening.listens(name):
            own6 = ()
        hardening.bridge(name, ipv6=gateway6 is not None)
    elif state.gateway6 is not None:
        # What else is on the administrator's own bridge, and whom the host believes there, is no matter of ours.
        sysctl.try_write(f"net/ipv6/conf/{name}/disable_ipv6", "0" if gateway6 is not None else "1")
    others = [own for own in surroundings.own if own != gateway and own.ip not in plan.own]
    messages = [rtaddresses.delete_address(index, own) for own in others]
    if gateway is not None and gateway not in surroundings.own:
        messages.append(rtaddresses.add_address(index, gateway))
    if state.gateway6 is not None:
        stale = [own for own in own6 if own != gateway6 and not own.ip.is_link_local and own.ip not in plan.own]
        messages += [rtaddresses.delete_address(index, own) for own in stale]
        if gateway6 is not None and gateway6 not in own6:
            messages.append(rtaddresses.add_address(index, gateway6))
    if link is None or not link.up:
        messages.append(rtnetlink.set_up(name))
    # One that is there with a size of its own, which follows its ports, goes on so.
    mtu = max(state.mtu, _LEAST_MTU_6) if state.gateway6 is not None else state.mtu
    if ours and (link is None or (plan.mtu and link.mtu != mtu)):
        messages.insert(0, rtnetlink.set_mtu(name, mtu))
    if messages:
        netlink.execute(*messages)
    return index, mac if ours else ""


def _mac(plan: BridgePlan, state: BridgeState) -> str:
    origin = state.gateway or state.gateway6
    if origin is None:
        raise InvalidParameter(f"the network of {plan.interface} has neither IPv4 nor IPv6")
    # Where the bridge has no address, every one may be a container's, and so may the MAC that follows from it.
    return ipam.mac_address(origin.ip, b"\x02\x43") if plan.bare else ipam.mac_address(origin.ip)


def _ensure_forwarding(allowed: bool) -> None:
    if sysctl.read(_FORWARDING) == "1":
        return
    if not allowed:
        log.warning("ip-forward is false and %s is off: containers reach nothing beyond this host", _FORWARDING)
    else:
        log.info("enabling IPv4 forwarding on this host (%s)", _FORWARDING)
        sysctl.write(_FORWARDING, "1")


def _ensure_forwarding_6(host: HostNetwork, allowed: bool) -> None:
    if sysctl.read(_FORWARDING_6) == "1":
        return
    if not allowed:
        log.warning("ip-forward is false and %s is off: containers reach nothing beyond this host", _FORWARDING_6)
        return
    for name in host.uplinks_6():
        setting = f"net/ipv6/conf/{name}/accept_ra"
        with suppress(OSError):
            if sysctl.read(setting) == "1":
                log.info("interface %s goes on listening to IPv6 routers (%s = 2)", name, setting)
                sysctl.write(setting, "2")
    log.info("enabling IPv6 forwarding on this host (%s)", _FORWARDING_6)
    sysctl.write(_FORWARDING_6, "1")
