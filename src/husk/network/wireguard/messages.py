"""Messages for `NetlinkSocket` about the kernel's own devices of WireGuard (generic netlink). Pure."""

import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from husk.kernel.netlink import NetlinkMessage, attribute, attributes, nested, number, repeated, text
from husk.network.wireguard.parties import DeviceChange, DeviceState, Party
from husk.network.wireguard.uapi import KEEPALIVE

PROTOCOL = 16  # NETLINK_GENERIC
_SPOKEN = b"wireguard"
_CONTROL, _GET_FAMILY = 16, 3
_FAMILY_ID, _FAMILY_NAME = 1, 2
_GET, _SET = 0, 1
_NAME, _PRIVATE_KEY, _PORT, _PEERS = 2, 3, 6, 8
_PUBLIC_KEY, _FLAGS, _ENDPOINT, _KEEPALIVE, _ALLOWED = 1, 3, 4, 5, 9
_REMOVE, _REPLACE_ALLOWED = 1, 2
_ALLOWED_FAMILY, _ALLOWED_ADDRESS, _ALLOWED_LENGTH = 1, 2, 3
_HEAD = struct.Struct("=BBH")
_HALF = struct.Struct("=H")
# A list of them has at most 64 KiB in a message.
_MOST = 200


def list_families() -> NetlinkMessage:
    """Asks for all that generic netlink speaks of."""
    return NetlinkMessage(_CONTROL, 0, _HEAD.pack(_GET_FAMILY, 1, 0), "find WireGuard in the kernel")


def family_of(payloads: Iterable[bytes]) -> int:
    """The number by which WireGuard is spoken to; 0 where the kernel has none."""
    for payload in payloads:
        found = attributes(payload[_HEAD.size :])
        if found.get(_FAMILY_NAME, b"").rstrip(b"\0") == _SPOKEN:
            return int(_HALF.unpack(found[_FAMILY_ID][:2])[0])
    return 0


def get(family: int, interface: str) -> NetlinkMessage:
    return NetlinkMessage(family, 0, _HEAD.pack(_GET, 1, 0) + text(_NAME, interface), f"look at {interface}")


def change(family: int, interface: str, wanted: DeviceChange) -> list[NetlinkMessage]:
    """Make the messages for a change. What is gone goes first: an address belongs to one party."""
    head = _HEAD.pack(_SET, 1, 0) + text(_NAME, interface)
    own = attribute(_PRIVATE_KEY, wanted.key) if wanted.key else b""
    own += attribute(_PORT, _HALF.pack(wanted.port)) if wanted.port else b""
    found = [head + own] if own else []
    peers = [nested(0, attribute(_PUBLIC_KEY, key), number(_FLAGS, _REMOVE)) for key in wanted.gone]
    peers += [_peer(party) for party in wanted.parties]
    for begin in range(0, len(peers), _MOST):
        found.append(head + nested(_PEERS, *peers[begin : begin + _MOST]))
    return [NetlinkMessage(family, 0, payload, f"configure {interface}") for payload in found]


def _peer(party: Party) -> bytes:
    inner = ip_address(party.inner)
    allowed = nested(
        0,
        attribute(_ALLOWED_FAMILY, _HALF.pack(socket.AF_INET6)),
        attribute(_ALLOWED_ADDRESS, inner.packed),
        attribute(_ALLOWED_LENGTH, bytes([inner.max_prefixlen])),
    )
    return nested(
        0,
        attribute(_PUBLIC_KEY, party.key),
        number(_FLAGS, _REPLACE_ALLOWED),
        attribute(_ENDPOINT, _endpoint(party.address, party.port)),
        attribute(_KEEPALIVE, _HALF.pack(KEEPALIVE)),
        nested(_ALLOWED, allowed),
    )


def _endpoint(address: str, port: int) -> bytes:
    """A socket's address, as C has it."""
    parsed = ip_address(address)
    if parsed.version == 4:
        return _HALF.pack(socket.AF_INET) + struct.pack("!H", port) + parsed.packed + bytes(8)
    return _HALF.pack(socket.AF_INET6) + struct.pack("!HI", port, 0) + parsed.packed + bytes(4)


def parse(payloads: Iterable[bytes]) -> DeviceState:
    """Read a device's state from the answers to `get`; a device with many parties has several."""
    key, port = b"", 0
    parties: dict[bytes, Party] = {}
    for payload in payloads:
        found = attributes(payload[_HEAD.size :])
        key = found.get(_PRIVATE_KEY, key)
        port = int(_HALF.unpack(found[_PORT])[0]) if _PORT in found else port
        parties |= {party.key: party for party in _parties(found.get(_PEERS, b""))}
    return DeviceState(key if any(key) else b"", port, parties)


def _parties(data: bytes) -> Iterator[Party]:
    for _, peer in repeated(data):
        found = attributes(peer)
        allowed = [attributes(one) for _, one in repeated(found.get(_ALLOWED, b""))]
        # Of several addresses none is what we have told.
        inner = str(ip_address(allowed[0][_ALLOWED_ADDRESS])) if len(allowed) == 1 else ""
        yield Party(found[_PUBLIC_KEY], inner, *_parse_endpoint(found.get(_ENDPOINT, b"")))


def _parse_endpoint(data: bytes) -> tuple[str, int]:
    if len(data) < 8:
        return "", 0
    (family,), (port,) = _HALF.unpack_from(data), struct.unpack_from("!H", data, 2)
    if family == socket.AF_INET:
        return str(ip_address(data[4:8])), int(port)
    return str(ip_address(data[8:24])), int(port)
