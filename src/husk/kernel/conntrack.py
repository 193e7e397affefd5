"""The conversations that the kernel remembers, and how it is made to forget some.

A conversation that it remembers keeps the translation it began with. A UDP client that never pauses would be led to
where a port led before, or to nowhere, for as long as it goes on.
"""

import socket
import struct
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address

from husk.kernel.netlink import NetlinkMessage, NetlinkSocket, attribute, attributes

_NETFILTER = 12
_GET, _DELETE = 0x101, 0x102
_ORIGINAL = 1
_TUPLE_ADDRESSES, _TUPLE_PROTOCOL = 1, 2
_DESTINATION, _DESTINATION_6 = 2, 4
_PROTOCOL_NUMBER = 1
_DESTINATION_PORT = 3

_FAMILY = struct.Struct("=BBH")


def forget_udp(ports: Collection[int], addresses: Collection[IPv4Address | IPv6Address] = ()) -> None:
    """Forget all UDP conversations that were begun with one of these ports, or with one of these addresses. Blocks."""
    with NetlinkSocket(_NETFILTER) as netlink:
        everything = _FAMILY.pack(socket.AF_UNSPEC, 0, 0)
        for payload in netlink.dump(NetlinkMessage(_GET, 0, everything, "list conversations")):
            header = _FAMILY.pack(payload[0], 0, 0)
            original = attributes(payload[_FAMILY.size :]).get(_ORIGINAL, b"")
            port = _port(original)
            if port is not None and (port in ports or _destination(original) in addresses):
                message = NetlinkMessage(
                    _DELETE, 0, header + attribute(_ORIGINAL | 0x8000, original), "forget a conversation"
                )
                # It may have ended by itself meanwhile.
                netlink.attempt([message])


def _destination(original: bytes) -> IPv4Address | IPv6Address | None:
    found = attributes(attributes(original).get(_TUPLE_ADDRESSES, b""))
    address = found.get(_DESTINATION) or found.get(_DESTINATION_6)
    return ip_address(address) if address else None


def _port(original: bytes) -> int | None:
    protocol = attributes(attributes(original).get(_TUPLE_PROTOCOL, b""))
    number, port = protocol.get(_PROTOCOL_NUMBER), protocol.get(_DESTINATION_PORT)
    if number is None or port is None or number[0] != socket.IPPROTO_UDP:
        return None
    return int.from_bytes(port)
