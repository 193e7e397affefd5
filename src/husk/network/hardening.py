"""Settings that keep what containers send from changing the host.

A container with CAP_NET_RAW, which is one of Docker's defaults, sends any frame it likes. So interfaces that lead to
containers learn no router, prefix or redirect, and which MAC an address has is told to the kernel by the engine, which
gave both: `static_entries`. What rules have to keep away, because a program on the host may hear it, is in `firewall`.
"""

import errno
import logging
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address

from husk.kernel import rtaddresses, sysctl
from husk.kernel.netlink import NetlinkMessage, NetlinkSocket

log = logging.getLogger(__name__)

Address = IPv4Address | IPv6Address

# Routers, prefixes and better ways that packets tell of.
_UNTAUGHT = (
    ("ipv6", "accept_ra", "0"),
    ("ipv6", "autoconf", "0"),
    ("ipv6", "accept_redirects", "0"),
    ("ipv4", "accept_redirects", "0"),
)
# Packets come from addresses that are reached there; who asks hears of no address but those of the bridge.
_STRICT = (
    ("ipv4", "rp_filter", "1"),
    ("ipv4", "accept_source_route", "0"),
    ("ipv4", "arp_accept", "0"),
    ("ipv4", "arp_ignore", "1"),
    ("ipv4", "arp_announce", "2"),
)
_GONE = (errno.ENOENT, errno.ENODEV, errno.EADDRNOTAVAIL)


def listens(interface: str) -> bool:
    """Return True if routers on the interface are heard, or would be if it had IPv6."""
    try:
        return sysctl.read(f"net/ipv6/conf/{interface}/accept_ra") != "0"
    except OSError:
        return False


def bridge(interface: str, ipv6: bool) -> None:
    """Before a bridge of ours is up, and for one that is: an earlier release may have made it."""
    if not ipv6 or listens(interface):
        # Without IPv6 the kernel would give it an address of the link all the same. What was heard goes with the rest.
        _set(interface, (("ipv6", "disable_ipv6", "1"),))
    _set(interface, (*_UNTAUGHT, *_STRICT))
    if ipv6:
        # A host may have IPv6 and keep new interfaces from it.
        _set(interface, (("ipv6", "disable_ipv6", "0"),))


def port(interface: str, root: int | None = None) -> None:
    """Also one that has lost its bridge is no way to the host. `root` is where the settings are (`sysctl.fresh`)."""
    _set(interface, (("ipv6", "disable_ipv6", "1"), *_UNTAUGHT), root)


def parent(interface: str) -> None:
    """Keep a parent from learning routers or redirects. What is on it has IPv6 or not, as its network says."""
    _set(interface, _UNTAUGHT)


def static_entries(bridge: int, port: int, mac: str, addresses: Iterable[Address]) -> list[NetlinkMessage]:
    """Make the messages that tell the host and the bridge where an endpoint is, whoever claims to be it."""
    if not mac:
        return []
    return [
        rtaddresses.add_station(port, mac),
        *(rtaddresses.add_neighbour(bridge, address, mac) for address in addresses),
    ]


def forget(netlink: NetlinkSocket, bridge: int, addresses: Sequence[Address]) -> None:
    """Nothing happens for those that are not known."""
    for error in netlink.attempt([rtaddresses.delete_neighbour(bridge, address) for address in addresses]):
        if error is not None and error.errno not in _GONE:
            raise error


def forget_others(netlink: NetlinkSocket, bridge: int, keep: Iterable[Address]) -> None:
    """After a crash: only these are still somebody's."""
    kept = set(keep)
    forget(netlink, bridge, [address for address in known(netlink, bridge) if address not in kept])


def known(netlink: NetlinkSocket, bridge: int) -> list[Address]:
    """The addresses of the endpoints that the host was told of by `static_entries`. Those on other hosts are no matter
    of this module (`overlay`)."""
    found: list[Address] = []
    for version in (4, 6):
        try:
            # Those of this bridge alone: a start asks for each of many networks.
            listed = netlink.dump(rtaddresses.list_neighbours(version, bridge))
            entries = [rtaddresses.parse_neighbour(entry) for entry in listed]
        except OSError:
            if version == 4:
                raise
            continue  # a kernel without IPv6
        ours = [entry for entry in entries if entry.index == bridge and entry.permanent]
        found += [entry.address for entry in ours if entry.told != rtaddresses.TOLD_OF_PEER]
    return found


def _set(interface: str, settings: Iterable[tuple[str, str, str]], root: int | None = None) -> None:
    for family, name, value in settings:
        try:
            sysctl.write(f"net/{family}/conf/{interface}/{name}", value, root)
        except FileNotFoundError:
            continue  # the kernel has no IPv6
        except OSError as error:
            log.warning("%s of interface %s cannot be set to %s: %s", name, interface, value, error)
