"""Messages for `NetlinkSocket` that list, make and delete links: bridges, veth pairs, macvlan and ipvlan interfaces.

The functions build or parse bytes and do no I/O. Addresses, routes and neighbours are in `rtaddresses`.
"""

import socket
import struct

import msgspec

from husk.kernel.netlink import (
    CREATE,
    EXCLUSIVE,
    NetlinkMessage,
    attribute,
    attributes,
    nested,
    number,
    text,
)

UP = 0x1

_NEWLINK, _DELLINK, _GETLINK = 16, 17, 18

_IFLA_ADDRESS = 1
_IFLA_IFNAME = 3
_IFLA_MTU = 4
_IFLA_LINK = 5
_IFLA_MASTER = 10
_IFLA_LINKINFO = 18
_IFLA_IFALIAS = 20
_IFLA_NET_NS_FD = 28
_IFLA_EXT_MASK = 29
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_IFLA_INFO_SLAVE_KIND = 4
_IFLA_INFO_SLAVE_DATA = 5
_IFLA_BRPORT_HAIRPIN = 4
_IFLA_BRPORT_ISOLATED = 33
_VETH_INFO_PEER = 1
_VLAN_ID = 1
_MACVLAN_MODE = 1
_IPVLAN_MODE, _IPVLAN_FLAGS = 1, 2
_SKIP_STATS = 8

_IFINFO = struct.Struct("=BxHiII")


class Link(msgspec.Struct, frozen=True):
    """A network interface; `kind` is "" for hardware, `master` the index of its bridge or 0."""

    index: int
    name: str
    kind: str
    master: int
    up: bool
    mtu: int
    alias: str
    mac: str = ""


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _link(flags: int = 0, change: int = 0, index: int = 0) -> bytes:
    return _IFINFO.pack(socket.AF_UNSPEC, 0, index, flags, change)


def add_bridge(name: str, mac: str) -> NetlinkMessage:
    """A bridge with an address of its own: without one it takes its ports' lowest and changes as ports come and go."""
    kind = nested(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, "bridge"))
    payload = _link() + text(_IFLA_IFNAME, name) + attribute(_IFLA_ADDRESS, mac_bytes(mac)) + kind
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add bridge {name}")


def add_veth(
    name: str, peer: str, *, peer_mac: str = "", peer_namespace: int | None = None, master: int = 0, mtu: int = 0
) -> NetlinkMessage:
    """A pair of connected interfaces; the peer is born inside the namespace of the file descriptor."""
    common = number(_IFLA_MTU, mtu) if mtu else b""
    inner = _link() + text(_IFLA_IFNAME, peer) + common
    if peer_mac:
        inner += attribute(_IFLA_ADDRESS, mac_bytes(peer_mac))
    if peer_namespace is not None:
        inner += number(_IFLA_NET_NS_FD, peer_namespace)
    kind = nested(
        _IFLA_LINKINFO,
        text(_IFLA_INFO_KIND, "veth"),
        nested(_IFLA_INFO_DATA, nested(_VETH_INFO_PEER, inner)),
    )
    payload = _link() + text(_IFLA_IFNAME, name) + common + kind
    if master:
        payload += number(_IFLA_MASTER, master)
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add veth {name}")


def add_dummy(name: str) -> NetlinkMessage:
    """An interface that leads nowhere."""
    payload = _link() + text(_IFLA_IFNAME, name) + nested(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, "dummy"))
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add dummy {name}")


def add_wireguard(name: str) -> NetlinkMessage:
    """A device of the kernel's own WireGuard, which knows nothing yet."""
    payload = _link() + text(_IFLA_IFNAME, name) + nested(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, "wireguard"))
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add WireGuard {name}")


def add_vlan(name: str, parent: int, number: int) -> NetlinkMessage:
    """The part of an interface that carries one 802.1q network."""
    data = nested(_IFLA_INFO_DATA, attribute(_VLAN_ID, struct.pack("=H", number)))
    kind = nested(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, "vlan"), data)
    payload = _link() + text(_IFLA_IFNAME, name) + _link_to(parent) + kind
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add vlan {name}")


def add_macvlan(
    name: str, parent: int, *, mode: int, mac: str = "", namespace: int | None = None, mtu: int = 0
) -> NetlinkMessage:
    """An interface with a MAC of its own on another one; born inside the namespace of the file descriptor."""
    data = nested(_IFLA_INFO_DATA, number(_MACVLAN_MODE, mode))
    return _on_parent("macvlan", name, parent, data, mac, namespace, mtu)


def add_ipvlan(
    name: str, parent: int, *, mode: int, flags: int = 0, namespace: int | None = None, mtu: int = 0
) -> NetlinkMessage:
    """An interface that shares the MAC of the one it is on; born inside the namespace of the file descriptor."""
    data = nested(
        _IFLA_INFO_DATA,
        attribute(_IPVLAN_MODE, struct.pack("=H", mode)),
        attribute(_IPVLAN_FLAGS, struct.pack("=H", flags)),
    )
    return _on_parent("ipvlan", name, parent, data, "", namespace, mtu)


def _on_parent(
    kind: str, name: str, parent: int, data: bytes, mac: str, namespace: int | None, mtu: int
) -> NetlinkMessage:
    payload = _link() + text(_IFLA_IFNAME, name) + _link_to(parent)
    if mac:
        payload += attribute(_IFLA_ADDRESS, mac_bytes(mac))
    if mtu:
        payload += number(_IFLA_MTU, mtu)
    if namespace is not None:
        payload += number(_IFLA_NET_NS_FD, namespace)
    payload += nested(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, kind), data)
    return NetlinkMessage(_NEWLINK, CREATE | EXCLUSIVE, payload, f"add {kind} {name}")


def _link_to(parent: int) -> bytes:
    return number(_IFLA_LINK, parent)


def set_up(name: str) -> NetlinkMessage:
    return NetlinkMessage(_NEWLINK, 0, _link(UP, UP) + text(_IFLA_IFNAME, name), f"set {name} up")


def set_master(name: str, master: int) -> NetlinkMessage:
    payload = _link() + text(_IFLA_IFNAME, name) + number(_IFLA_MASTER, master)
    return NetlinkMessage(_NEWLINK, 0, payload, f"attach {name} to its bridge")


def set_port(name: str, *, hairpin: bool, isolated: bool) -> NetlinkMessage:
    """Set how a port of a bridge behaves: `hairpin` lets packets go back to where they came from, an `isolated` one
    talks to the bridge itself and to no other isolated port."""
    kind = nested(
        _IFLA_LINKINFO,
        text(_IFLA_INFO_SLAVE_KIND, "bridge"),
        nested(
            _IFLA_INFO_SLAVE_DATA,
            attribute(_IFLA_BRPORT_HAIRPIN, bytes([hairpin])),
            attribute(_IFLA_BRPORT_ISOLATED, bytes([isolated])),
        ),
    )
    return NetlinkMessage(_NEWLINK, 0, _link() + text(_IFLA_IFNAME, name) + kind, f"configure port {name}")


def set_mac(name: str, mac: str) -> NetlinkMessage:
    payload = _link() + text(_IFLA_IFNAME, name) + attribute(_IFLA_ADDRESS, mac_bytes(mac))
    return NetlinkMessage(_NEWLINK, 0, payload, f"set MAC of {name}")


def set_mtu(name: str, mtu: int) -> NetlinkMessage:
    return NetlinkMessage(
        _NEWLINK, 0, _link() + text(_IFLA_IFNAME, name) + number(_IFLA_MTU, mtu), f"set MTU of {name}"
    )


def set_alias(name: str, alias: str) -> NetlinkMessage:
    payload = _link() + text(_IFLA_IFNAME, name) + attribute(_IFLA_IFALIAS, alias.encode())
    return NetlinkMessage(_NEWLINK, 0, payload, f"set alias of {name}")


def delete_link(name: str) -> NetlinkMessage:
    return NetlinkMessage(_DELLINK, 0, _link() + text(_IFLA_IFNAME, name), f"delete interface {name}")


def list_links(master: int = 0) -> NetlinkMessage:
    """All interfaces, or those that are ports of a bridge."""
    payload = _link() + number(_IFLA_EXT_MASK, _SKIP_STATS)
    if master:
        payload += number(_IFLA_MASTER, master)
    return NetlinkMessage(_GETLINK, 0, payload, "list interfaces")


def settle_link(name: str) -> NetlinkMessage:
    """Ask for an interface. Before it answers, Linux 6.0 lets those that the interface is a port of know that its link
    is up, which it does in its own time otherwise; what is sent meanwhile is lost."""
    return NetlinkMessage(_GETLINK, 0, _link() + text(_IFLA_IFNAME, name), f"look at interface {name}")


def parse_link(payload: bytes) -> Link:
    _family, _type, index, flags, _change = _IFINFO.unpack_from(payload)
    found = attributes(payload[_IFINFO.size :])
    info = attributes(found.get(_IFLA_LINKINFO, b""))
    return Link(
        index=index,
        name=_text(found.get(_IFLA_IFNAME, b"")),
        kind=_text(info.get(_IFLA_INFO_KIND, b"")),
        master=_number(found.get(_IFLA_MASTER)),
        up=bool(flags & UP),
        mtu=_number(found.get(_IFLA_MTU)),
        alias=_text(found.get(_IFLA_IFALIAS, b"")),
        mac=found.get(_IFLA_ADDRESS, b"").hex(":"),
    )


def _number(value: bytes | None) -> int:
    return int(struct.unpack_from("=I", value)[0]) if value else 0


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
