"""Messages for `NetlinkSocket` that list, make and delete addresses, routes and neighbours.

The functions build or parse bytes and do no I/O. Links are in `rtnetlink`.
"""

import socket
import struct
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)

import msgspec

from husk.kernel.netlink import CREATE, EXCLUSIVE, REPLACE, NetlinkMessage, attribute, attributes, number
from husk.kernel.rtnetlink import mac_bytes

AnyAddress = IPv4Address | IPv6Address
AnyInterface = IPv4Interface | IPv6Interface
AnyNetwork = IPv4Network | IPv6Network

_NEWADDR, _DELADDR, _GETADDR = 20, 21, 22
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_NEWNEIGH, _DELNEIGH, _GETNEIGH = 28, 29, 30

_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_BROADCAST = 4
# No wait for somebody who has the same address: addresses come from us alone.
_IFA_F_NODAD = 0x2

_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_RT_TABLE_MAIN = 254
_RTPROT_BOOT = 3
_RTPROT_RA = 9
_RT_SCOPE_UNIVERSE = 0
_RT_SCOPE_LINK = 253
_RT_SCOPE_NOWHERE = 255
_RTN_UNICAST = 1

_NDA_DST = 1
_NDA_LLADDR = 2
_NDA_IFINDEX = 8
_NDA_PROTOCOL = 12
_NUD_NOARP = 0x40
_NUD_PERMANENT = 0x80
_NTF_MASTER = 0x04
_NTF_STICKY = 0x40

_IFADDR = struct.Struct("=BBBBI")
_RTMSG = struct.Struct("=BBBBBBBBI")
_NDMSG = struct.Struct("=BxxxiHBB")


class InterfaceAddress(msgspec.Struct, frozen=True):
    """An address of an interface."""

    index: int
    interface: AnyInterface


class KernelRoute(msgspec.Struct, frozen=True):
    """A unicast route; `index` is the interface it leaves by, 0 when it names several or none."""

    destination: AnyNetwork
    index: int
    # A router on the link has told of it.
    learned: bool = False


# Who has told of a neighbour, in the kernel's word its protocol: whoever takes ours back leaves those of others.
TOLD_HERE = 4  # that of static routes
TOLD_OF_PEER = 0x68


class Neighbour(msgspec.Struct, frozen=True):
    """A neighbour: the MAC that the host takes for an address; a `permanent` one is changed by no packet."""

    index: int
    address: AnyAddress
    permanent: bool
    mac: str = ""
    told: int = 0


def _family(version: int) -> int:
    return socket.AF_INET6 if version == 6 else socket.AF_INET


def _address(kind: int, flags: int, index: int, interface: AnyInterface, what: str) -> NetlinkMessage:
    ours = _IFA_F_NODAD if interface.version == 6 else 0
    prefix = interface.network.prefixlen
    payload = _IFADDR.pack(_family(interface.version), prefix, ours, _RT_SCOPE_UNIVERSE, index)
    payload += attribute(_IFA_LOCAL, interface.ip.packed) + attribute(_IFA_ADDRESS, interface.ip.packed)
    if interface.version == 4 and prefix < 31:
        payload += attribute(_IFA_BROADCAST, interface.network.broadcast_address.packed)
    return NetlinkMessage(kind, flags, payload, f"{what} address {interface}")


def add_address(index: int, interface: AnyInterface) -> NetlinkMessage:
    return _address(_NEWADDR, CREATE | REPLACE, index, interface, "add")


def delete_address(index: int, interface: AnyInterface) -> NetlinkMessage:
    return _address(_DELADDR, 0, index, interface, "delete")


def list_addresses(version: int = 4) -> NetlinkMessage:
    return NetlinkMessage(_GETADDR, 0, _IFADDR.pack(_family(version), 0, 0, 0, 0), "list addresses")


def parse_address(payload: bytes) -> InterfaceAddress:
    _family, prefix, _flags, _scope, index = _IFADDR.unpack_from(payload)
    found = attributes(payload[_IFADDR.size :])
    # On a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL is always ours.
    local = ip_address(found.get(_IFA_LOCAL) or found[_IFA_ADDRESS])
    return InterfaceAddress(index, ip_interface((local, prefix)))


def _default_route(
    kind: int, flags: int, version: int, gateway: AnyAddress | None, what: str, index: int = 0
) -> NetlinkMessage:
    # IPv4 alone tells routes over a gateway from those to whoever is on the link.
    scope = _RT_SCOPE_LINK if gateway is None and version == 4 else _RT_SCOPE_UNIVERSE
    if kind == _DELROUTE:
        scope = _RT_SCOPE_NOWHERE
    payload = _RTMSG.pack(_family(version), 0, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, scope, _RTN_UNICAST, 0)
    if gateway is not None:
        payload += attribute(_RTA_GATEWAY, gateway.packed)
    if index:
        payload += number(_RTA_OIF, index)
    return NetlinkMessage(kind, flags, payload, what)


def add_default_route(gateway: AnyAddress, index: int = 0) -> NetlinkMessage:
    """The interface says where a gateway is whose address is one of the link alone."""
    what = f"add default route via {gateway}"
    return _default_route(_NEWROUTE, CREATE | EXCLUSIVE, gateway.version, gateway, what, index)


def replace_default_route(gateway: AnyAddress, index: int = 0) -> NetlinkMessage:
    what = f"set default route via {gateway}"
    return _default_route(_NEWROUTE, CREATE | REPLACE, gateway.version, gateway, what, index)


def direct_default_route(version: int, index: int, *, replace: bool = False) -> NetlinkMessage:
    """Every address is taken to be on this interface."""
    flags = CREATE | (REPLACE if replace else EXCLUSIVE)
    return _default_route(_NEWROUTE, flags, version, None, f"set IPv{version} default route out of {index}", index)


def delete_default_route(version: int = 4) -> NetlinkMessage:
    return _default_route(_DELROUTE, 0, version, None, "delete default route")


def list_routes(version: int = 4) -> NetlinkMessage:
    return NetlinkMessage(_GETROUTE, 0, _RTMSG.pack(_family(version), 0, 0, 0, 0, 0, 0, 0, 0), "list routes")


def parse_route(payload: bytes) -> KernelRoute | None:
    """The route, or None for what leads to no other host (local, broadcast, blackhole)."""
    family, length, _source, _tos, _table, protocol, _scope, kind, _flags = _RTMSG.unpack_from(payload)
    if kind != _RTN_UNICAST:
        return None
    found = attributes(payload[_RTMSG.size :])
    anywhere = bytes(16 if family == socket.AF_INET6 else 4)
    destination = ip_network((found.get(_RTA_DST, anywhere), length), strict=False)
    return KernelRoute(destination, _number(found.get(_RTA_OIF)), protocol == _RTPROT_RA)


def add_neighbour(index: int, address: AnyAddress, mac: str, told: int = TOLD_HERE) -> NetlinkMessage:
    """Set the MAC of the address, whatever packets say of it."""
    payload = _NDMSG.pack(_family(address.version), index, _NUD_PERMANENT, 0, 0)
    payload += attribute(_NDA_DST, address.packed) + attribute(_NDA_LLADDR, mac_bytes(mac))
    payload += attribute(_NDA_PROTOCOL, bytes([told]))
    return NetlinkMessage(_NEWNEIGH, CREATE | REPLACE, payload, f"add neighbour {address}")


def delete_neighbour(index: int, address: AnyAddress) -> NetlinkMessage:
    payload = _NDMSG.pack(_family(address.version), index, 0, 0, 0) + attribute(_NDA_DST, address.packed)
    return NetlinkMessage(_DELNEIGH, 0, payload, f"delete neighbour {address}")


def list_neighbours(version: int = 4, index: int = 0) -> NetlinkMessage:
    """All of them, or those on one interface."""
    payload = _NDMSG.pack(_family(version), 0, 0, 0, 0) + (number(_NDA_IFINDEX, index) if index else b"")
    return NetlinkMessage(_GETNEIGH, 0, payload, "list neighbours")


def parse_neighbour(payload: bytes) -> Neighbour:
    _family, index, state, _flags, _kind = _NDMSG.unpack_from(payload)
    found = attributes(payload[_NDMSG.size :])
    return Neighbour(
        index,
        ip_address(found[_NDA_DST]),
        bool(state & _NUD_PERMANENT),
        found.get(_NDA_LLADDR, b"").hex(":"),
        found.get(_NDA_PROTOCOL, b"\0")[0],
    )


def add_station(port: int, mac: str) -> NetlinkMessage:
    """Frames for the MAC go to this port of a bridge, whoever else sends some in its name."""
    payload = _NDMSG.pack(socket.AF_BRIDGE, port, _NUD_NOARP, _NTF_MASTER | _NTF_STICKY, 0)
    return NetlinkMessage(
        _NEWNEIGH, CREATE | REPLACE, payload + attribute(_NDA_LLADDR, mac_bytes(mac)), f"add station {mac}"
    )


def _number(value: bytes | None) -> int:
    return int(struct.unpack_from("=I", value)[0]) if value else 0
