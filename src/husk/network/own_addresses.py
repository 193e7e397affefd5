"""The addresses that this host has: those of an interface, and the one that packets to far away leave with."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from husk.kernel import rtaddresses
from husk.kernel.netlink import NetlinkSocket

# Of the block that is for examples: nobody is there, and nothing is sent.
_FAR_AWAY = ("192.0.2.1", 9)


def of_interface(name: str) -> list[IPv4Address | IPv6Address] | None:
    """Those that another host can know it by; None if there is no such interface."""
    try:
        index = socket.if_nametoindex(name)
    except (OSError, ValueError):  # no interface has a name with a NUL in it, either
        return None
    with NetlinkSocket() as netlink:
        dumped = [entry for version in (4, 6) for entry in netlink.dump(rtaddresses.list_addresses(version))]
    found = [rtaddresses.parse_address(entry) for entry in dumped]
    return [one.interface.ip for one in found if one.index == index and not one.interface.ip.is_link_local]


def is_own(address: str) -> bool:
    """Return True if this host has the address. No host has the one that stands for all addresses."""
    try:
        if ip_address(address).is_unspecified:
            return False
    except ValueError:
        return False
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def outgoing() -> str:
    """The address that leads out of this host; that of the host itself where nothing leads out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_FAR_AWAY)  # no packet is sent: this asks the routing table
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
