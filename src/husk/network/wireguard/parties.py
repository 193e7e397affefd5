"""The parties that a device of WireGuard knows by their keys, and what has to be changed of them. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from husk.errors import InvalidParameter

KEY_BYTES = 32
# Of a network of 64 bits; the rest is the node's.
_LINK_LOCAL = IPv6Address("fe80::").packed[:8]


class Party(Struct, frozen=True):
    """Another host: its public key, its address inside of the tunnel, and where its packets go."""

    key: bytes
    inner: str
    address: str
    port: int


class Mesh(Struct, frozen=True):
    """This host's address inside of the tunnel, the other hosts, and the UDP port of VXLAN."""

    own: str
    parties: tuple[Party, ...] = ()
    vxlan_port: int = 4789


class DeviceState(Struct, frozen=True):
    """The state of a device: its private key, its port, and others by their keys. `port` is 0 where it has none."""

    key: bytes = b""
    port: int = 0
    parties: Mapping[bytes, Party] = {}


class DeviceChange(Struct, frozen=True):
    """A change that a device is told: own key and port where they are others, new parties, and keys that are gone."""

    key: bytes = b""
    port: int = 0
    parties: tuple[Party, ...] = ()
    gone: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.key or self.port or self.parties or self.gone)


def inner_address(node: str) -> str:
    """A node's address inside of the tunnel. Two of a thousand nodes have the same with a probability of 10^-13."""
    return str(IPv6Address(_LINK_LOCAL + hashlib.sha256(b"husk wireguard " + node.encode()).digest()[:8]))


def difference(state: DeviceState, key: bytes, port: int, parties: Iterable[Party]) -> DeviceChange:
    """Compute the change that brings a device to exactly this key, this port and these parties."""
    wanted = {party.key: party for party in parties}
    return DeviceChange(
        key=key if state.key != key else b"",
        port=port if state.port != port else 0,
        parties=tuple(party for one, party in sorted(wanted.items()) if state.parties.get(one) != party),
        gone=tuple(sorted(one for one in state.parties if one not in wanted)),
    )


def text_of_key(key: bytes) -> str:
    """As WireGuard's own tools write it."""
    return base64.b64encode(key).decode()


def key_of_text(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES or not any(key):
        raise InvalidParameter(f"{text[:60]!r} is no public key of WireGuard")
    return key


def normal(address: str) -> str:
    """One address has one form. A scope (`%eth0`) is refused: it may be any text, lines for the program too."""
    try:
        if "%" not in address:
            return str(ip_address(address))
    except ValueError:
        pass
    raise InvalidParameter(f"{address[:64]!r} is no address of a host")
