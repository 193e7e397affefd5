"""Adds and deletes an element of an nftables set or map at a cost that does not depend on anything else.

libnftables reads the sets of all tables of the host before it adds one element: on a host with many rules that takes
longer than all the rest of a container's start. The kernel itself needs nothing but the names and the bytes.
"""

import socket
import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from husk.kernel.netlink import CREATE, NetlinkMessage, NetlinkSocket, attribute, nested, text

_NETFILTER = 12
_NFTABLES = 10
_BATCH_BEGIN, _BATCH_END = 16, 17
_NEW_ELEMENTS, _DELETE_ELEMENTS = (_NFTABLES << 8) | 12, (_NFTABLES << 8) | 14
_LIST_TABLE, _LIST_SET, _LIST_ELEMENTS = 1, 2, 3
_LIST_ELEMENT = 1
_ELEMENT_KEY, _ELEMENT_DATA = 1, 2
_DATA_VALUE = 1
_FAMILIES = {"ip": socket.AF_INET, "ip6": socket.AF_INET6}
_HEADER = struct.Struct("!BBH")

_PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP, "sctp": socket.IPPROTO_SCTP}


class Element(NamedTuple):
    """An element of a set, or with data of a map."""

    family: str
    table: str
    where: str
    key: bytes
    data: bytes = b""


def protocol(name: str) -> bytes:
    return _padded(bytes([_PROTOCOLS[name]]))


def service(port: int) -> bytes:
    return _padded(struct.pack("!H", port))


def address(text: str) -> bytes:
    return ip_address(text).packed


def _padded(value: bytes) -> bytes:
    """The parts of a key begin at multiples of four bytes."""
    return value + bytes(-len(value) % 4)


def add(elements: Sequence[Element]) -> None:
    """Add all of them or none; one that is there already may stay. Raises OSError. Does not block for long."""
    _transact(_message(_NEW_ELEMENTS, CREATE, element, "add") for element in elements)


def delete(elements: Sequence[Element]) -> None:
    """Delete all of them or none. Raises OSError, also when one is not there."""
    _transact(_message(_DELETE_ELEMENTS, 0, element._replace(data=b""), "delete") for element in elements)


def _message(kind: int, flags: int, element: Element, verb: str) -> NetlinkMessage:
    parts = [nested(_ELEMENT_KEY, attribute(_DATA_VALUE, element.key))]
    if element.data:
        parts.append(nested(_ELEMENT_DATA, attribute(_DATA_VALUE, element.data)))
    payload = _HEADER.pack(_FAMILIES[element.family], 0, 0)
    payload += text(_LIST_TABLE, element.table) + text(_LIST_SET, element.where)
    payload += nested(_LIST_ELEMENTS, nested(_LIST_ELEMENT, *parts))
    return NetlinkMessage(kind, flags, payload, f"{verb} element of {element.family} {element.table} {element.where}")


def _transact(messages: Iterable[NetlinkMessage]) -> None:
    edge = _HEADER.pack(socket.AF_UNSPEC, 0, _NFTABLES)
    begin = NetlinkMessage(_BATCH_BEGIN, 0, edge, "begin a change of nftables")
    with NetlinkSocket(_NETFILTER) as netlink:
        netlink.transact(begin, list(messages), begin._replace(type=_BATCH_END))
