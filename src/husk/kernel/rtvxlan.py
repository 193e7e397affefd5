"""Messages for `NetlinkSocket` about VXLAN interfaces, and about who is reached through one.

The functions build or parse bytes and do no I/O. A VXLAN interface has a table of its own: frames for a MAC go to a
host (`add_remote`). The bridge that it is a port of has another: frames for a MAC go to the port
(`rtaddresses.add_station`).
"""

import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

from husk.kernel.netlink import CREATE, EXCLUSIVE, REPLACE, NetlinkMessage, attribute, attributes, nested, number, text
from husk.kernel.rtnetlink import mac_bytes

_NEWLINK = 16
_NEWNEIGH, _DELNEIGH, _GETNEIGH = 28, 29, 30

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU = 1, 3, 4
_IFLA_LINKINFO = 18
_INFO_KIND, _INFO_DATA, _INFO_SLAVE_KIND, _INFO_SLAVE_DATA = 1, 2, 4, 5

_VXLAN_ID = 1
_VXLAN_LINK = 3
_VXLAN_LOCAL, _VXLAN_LOCAL6 = 4, 17
_VXLAN_LEARNING = 7
_VXLAN_PORT = 15

_PORT_LEARNING = 8
_PORT_UNICAST_FLOOD, _PORT_MULTICAST_FLOOD, _PORT_BROADCAST_FLOOD = 9, 27, 30
_PORT_NEIGHBOUR_SUPPRESSION = 32

_NDA_DST, _NDA_LLADDR, _NDA_IFINDEX, _NDA_MASTER = 1, 2, 8, 9
_NUD_PERMANENT = 0x80
_NTF_SELF, _NTF_MASTER = 0x02, 0x04

_IFINFO = struct.Struct("=BxHiII")
_NDMSG = struct.Struct("=BxxxiHBB")

Address = IPv4Address | IPv6Address


class VxlanTunnel(msgspec.Struct, frozen=True):
    """The properties of a VXLAN interface that cannot be changed while it is there."""

    vni: int
    port: int
    local: Address
    learning: bool = False
    # The interface that its packets go out by, and come in by where `local` is a link-local address: the kernel takes
    # none from elsewhere. 0 for any.
    link: int = 0


class Forwarding(msgspec.Struct, frozen=True):
    """The way of frames for a MAC: through a VXLAN to a host; or, without a host, from the bridge to the VXLAN."""

    mac: str
    host: Address | None


def add_vxlan(name: str, mac: str, tunnel: VxlanTunnel, mtu: int) -> NetlinkMessage:
    """A VXLAN interface that learns nothing and sends nothing to those whom it was not told of."""
    local = _VXLAN_LOCAL if tunnel.local.version == 4 else _VXLAN_LOCAL6
    data = nested(
        _INFO_DATA,
        number(_VXLAN_ID, tunnel.vni),
        attribute(local, tunnel.local.packed),
        attribute(_VXLAN_LEARNING, bytes([tunnel.learning])),
        attribute(_VXLAN_PORT, struct.pack("!H", tunnel.port)),
        number(_VXLAN_LINK, tunnel.link) if tunnel.link else b"",
    )
    payload = _link() + text(_IFLA_IFNAME, name) + attribute(_IFLA_ADDRESS, mac_bytes(mac)) + number(_IFLA_MTU, mtu)
    payload += nested(_IFLA_LINKINFO, text(_INFO_KIND, "vxlan"), data)
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add VXLAN {name}")


def parse_tunnel(payload: bytes) -> VxlanTunnel | None:
    """Of an interface as the kernel lists it; None for one that is no VXLAN."""
    info = attributes(attributes(payload[_IFINFO.size :]).get(_IFLA_LINKINFO, b""))
    if info.get(_INFO_KIND, b"").rstrip(b"\0") != b"vxlan":
        return None
    data = attributes(info.get(_INFO_DATA, b""))
    local = data.get(_VXLAN_LOCAL) or data.get(_VXLAN_LOCAL6) or bytes(4)
    return VxlanTunnel(
        vni=int(struct.unpack("=I", data.get(_VXLAN_ID, bytes(4)))[0]),
        port=int(struct.unpack("!H", data.get(_VXLAN_PORT, bytes(2)))[0]),
        local=ip_address(local),
        learning=data.get(_VXLAN_LEARNING, b"\0")[:1] != b"\0",
        link=int(struct.unpack("=I", data.get(_VXLAN_LINK, bytes(4)))[0]),
    )


def set_told_port(name: str) -> NetlinkMessage:
    """A port of a bridge that learns nothing, gets no frame that it was not told of, and whose side is asked for no
    neighbour: the bridge answers with those that the host knows."""
    off, on = b"\0", b"\1"
    data = nested(
        _INFO_SLAVE_DATA,
        attribute(_PORT_LEARNING, off),
        attribute(_PORT_UNICAST_FLOOD, off),
        attribute(_PORT_MULTICAST_FLOOD, off),
        attribute(_PORT_BROADCAST_FLOOD, off),
        attribute(_PORT_NEIGHBOUR_SUPPRESSION, on),
    )
    kind = nested(_IFLA_LINKINFO, text(_INFO_SLAVE_KIND, "bridge"), data)
    return NetlinkMessage(_NEWLINK, 0, _link() + text(_IFLA_IFNAME, name) + kind, f"configure port {name}")


def add_remote(vxlan: int, mac: str, host: Address, link: int = 0) -> NetlinkMessage:
    """Frames for the MAC go to this host, and no longer to another; by this link, or by any that leads there. That of
    the interface itself (`VxlanTunnel.link`) is not asked for this."""
    payload = _NDMSG.pack(socket.AF_BRIDGE, vxlan, _NUD_PERMANENT, _NTF_SELF, 0)
    payload += attribute(_NDA_LLADDR, mac_bytes(mac)) + attribute(_NDA_DST, host.packed)
    payload += number(_NDA_IFINDEX, link) if link else b""
    return NetlinkMessage(_NEWNEIGH, CREATE | REPLACE, payload, f"send frames for {mac} to {host}")


def delete_remote(vxlan: int, mac: str) -> NetlinkMessage:
    payload = _NDMSG.pack(socket.AF_BRIDGE, vxlan, 0, _NTF_SELF, 0) + attribute(_NDA_LLADDR, mac_bytes(mac))
    return NetlinkMessage(_DELNEIGH, 0, payload, f"send no frames for {mac}")


def delete_station(port: int, mac: str) -> NetlinkMessage:
    """Nothing happens to frames for the MAC that go to another port."""
    payload = _NDMSG.pack(socket.AF_BRIDGE, port, 0, _NTF_MASTER, 0) + attribute(_NDA_LLADDR, mac_bytes(mac))
    return NetlinkMessage(_DELNEIGH, 0, payload, f"delete station {mac}")


def list_forwarding(port: int) -> NetlinkMessage:
    """Ask for the entries of both tables for a VXLAN interface that is a port of a bridge."""
    payload = _IFINFO.pack(socket.AF_BRIDGE, 0, port, 0, 0)
    return NetlinkMessage(_GETNEIGH, 0, payload, "list who is reached through a VXLAN")


def parse_forwarding(payload: bytes, port: int) -> Forwarding | None:
    """None for what is another port's, or the address of the interface itself."""
    _family, index, state, _flags, _kind = _NDMSG.unpack_from(payload)
    found = attributes(payload[_NDMSG.size :])
    mac = found.get(_NDA_LLADDR, b"").hex(":")
    if index != port:
        return None
    if _NDA_DST in found:
        return Forwarding(mac, ip_address(found[_NDA_DST]))
    if _NDA_MASTER in found and not state & _NUD_PERMANENT:
        return Forwarding(mac, None)
    return None


def _link() -> bytes:
    return _IFINFO.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
