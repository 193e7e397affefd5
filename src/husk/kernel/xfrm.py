"""Messages for `NetlinkSocket` that encrypt what one host sends another: IPsec's ESP in transport mode (xfrm).

An association (Linux: state) is a key for one direction between two hosts, found by its number (SPI). A policy says
which packets must have one, or must not pass at all. Here policies are about one UDP port. The functions build or parse
bytes and do no I/O; the socket's protocol is `PROTOCOL`.
"""

import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

from husk.kernel.netlink import CREATE, EXCLUSIVE, Message, attribute, attributes

PROTOCOL = 6  # NETLINK_XFRM
INWARD, OUTWARD = 0, 1
# What AES-256-GCM takes: a key and four bytes that are part of each packet's nonce.
KEY_BYTES = 32 + 4

_NEWSA, _DELSA, _GETSA = 0x10, 0x11, 0x12
_DELPOLICY, _GETPOLICY, _UPDPOLICY = 0x14, 0x15, 0x19
_TEMPLATE, _SOURCE, _AEAD, _REPLAY = 5, 13, 18, 23
_ESN = 128
_ALLOW, _BLOCK = 0, 1
_CIPHER = b"rfc4106(gcm(aes))"
_CHECK_BITS = 128
# How far packets may overtake one another.
_WINDOW_WORDS = 32

_SELECTOR = struct.Struct("=16s16s2s2s2s2sHBBBxxxiI")
_LIMITS = struct.pack("=8Q", *[(1 << 64) - 1] * 4, *[0] * 4)
_COUNTERS = bytes(32)
_ID = struct.Struct("=16s4sBxxx")
_STATE_TAIL = struct.Struct("=12xIIHBBB7x")
_STATE_ID = struct.Struct("=16s4sHBx")
_POLICY_TAIL = struct.Struct("=IIBBBB4x")
_POLICY_ID_TAIL = struct.Struct("=IB3x")
_TEMPLATE_TAIL = struct.Struct("=Hxx16sIBBBxIII")
_ALGORITHM = struct.Struct("=64sII")
_REPLAY_STATE = struct.Struct("=6I")
_STATE_BYTES, _POLICY_BYTES = 224, 168
_UDP, _ESP = socket.IPPROTO_UDP, 50

Address = IPv4Address | IPv6Address


class Association(msgspec.Struct, frozen=True):
    """A key for what `source` sends `target`. `mark` tells ours from those of others (reqid)."""

    source: Address
    target: Address
    spi: int
    mark: int


class Policy(msgspec.Struct, frozen=True):
    """What comes in, or goes out, for a UDP port: by an association between two hosts, or, without hosts, never.

    `spi` is that of the one to use; 0 for any with the mark.
    """

    direction: int
    port: int
    version: int
    mark: int
    source: Address | None = None
    target: Address | None = None
    spi: int = 0


def add_association(association: Association, key: bytes) -> Message:
    empty = _selector(None, None, association.source.version, port=0)
    payload = empty + _ID.pack(_wide(association.target), struct.pack("!I", association.spi), _ESP)
    payload += _wide(association.source) + _LIMITS + _COUNTERS
    payload += _STATE_TAIL.pack(0, association.mark, _family(association.source.version), 0, 0, _ESN)
    payload += attribute(_AEAD, _ALGORITHM.pack(_CIPHER, len(key) * 8, _CHECK_BITS) + key)
    replay = _REPLAY_STATE.pack(_WINDOW_WORDS, 0, 0, 0, 0, _WINDOW_WORDS * 32) + bytes(4 * _WINDOW_WORDS)
    payload += attribute(_REPLAY, replay)
    return Message(_NEWSA, CREATE | EXCLUSIVE, payload, f"add a key for {association.source} to {association.target}")


def delete_association(association: Association) -> Message:
    payload = _STATE_ID.pack(
        _wide(association.target), struct.pack("!I", association.spi), _family(association.target.version), _ESP
    )
    payload += attribute(_SOURCE, _wide(association.source))
    return Message(_DELSA, 0, payload, f"delete a key for {association.source} to {association.target}")


def list_associations() -> Message:
    return Message(_GETSA, 0, b"", "list keys between hosts")


def parse_association(payload: bytes) -> Association:
    target, spi, _protocol = _ID.unpack_from(payload, _SELECTOR.size)
    source = payload[_SELECTOR.size + _ID.size :][:16]
    _seq, mark, family, _mode, _window, _flags = _STATE_TAIL.unpack_from(payload, _STATE_BYTES - _STATE_TAIL.size)
    return Association(_narrow(source, family), _narrow(target, family), int(struct.unpack("!I", spi)[0]), mark)


def set_policy(policy: Policy) -> Message:
    """Add it, or put it in the place of the one that is about the same packets."""
    payload = _policy_selector(policy) + _LIMITS + _COUNTERS
    action = _BLOCK if policy.source is None else _ALLOW
    # Where several fit the lowest number is heard: those about two hosts come before those about all.
    payload += _POLICY_TAIL.pack(2 if policy.source is None else 1, 0, policy.direction, action, 0, 0)
    if policy.source is not None and policy.target is not None:
        template = _ID.pack(_wide(policy.target), struct.pack("!I", policy.spi), _ESP)
        every = (1 << 32) - 1
        family = _family(policy.version)
        template += _TEMPLATE_TAIL.pack(family, _wide(policy.source), policy.mark, 0, 0, 0, every, every, every)
        payload += attribute(_TEMPLATE, template)
    return Message(_UPDPOLICY, 0, payload, f"set policy for UDP port {policy.port}")


def delete_policy(policy: Policy) -> Message:
    payload = _policy_selector(policy) + _POLICY_ID_TAIL.pack(0, policy.direction)
    return Message(_DELPOLICY, 0, payload, f"delete policy for UDP port {policy.port}")


def list_policies() -> Message:
    return Message(_GETPOLICY, 0, b"", "list policies between hosts")


def parse_policy(payload: bytes, mark: int) -> Policy | None:
    """None for one that is not of the form of ours; one without hosts has no mark and gets this one."""
    found = _SELECTOR.unpack_from(payload)
    target, source, port, family, target_bits, source_bits, protocol = (*found[:3], *found[6:10])
    _priority, _index, direction, action, _flags, _share = _POLICY_TAIL.unpack_from(
        payload, _POLICY_BYTES - _POLICY_TAIL.size
    )
    if protocol != _UDP or family not in (socket.AF_INET, socket.AF_INET6):
        return None
    version = 6 if family == socket.AF_INET6 else 4
    number = int(struct.unpack("!H", port)[0])
    if action == _BLOCK and not target_bits and not source_bits:
        return Policy(direction, number, version, mark)
    template = attributes(payload[_POLICY_BYTES:]).get(_TEMPLATE, b"")
    if len(template) != _ID.size + _TEMPLATE_TAIL.size:
        return None
    _target, spi, _protocol = _ID.unpack_from(template)
    told = _TEMPLATE_TAIL.unpack_from(template, _ID.size)[2]
    spi = int(struct.unpack("!I", spi)[0])
    return Policy(direction, number, version, told, _narrow(source, family), _narrow(target, family), spi)


def _policy_selector(policy: Policy) -> bytes:
    return _selector(policy.source, policy.target, policy.version, policy.port)


def _selector(source: Address | None, target: Address | None, version: int, port: int) -> bytes:
    bits = 32 if version == 4 else 128
    return _SELECTOR.pack(
        _wide(target),
        _wide(source),
        struct.pack("!H", port),
        b"\xff\xff" if port else bytes(2),
        bytes(2),
        bytes(2),
        _family(version),
        bits if target is not None else 0,
        bits if source is not None else 0,
        _UDP if port else 0,
        0,
        0,
    )


def _wide(address: Address | None) -> bytes:
    return (address.packed if address is not None else b"").ljust(16, b"\0")


def _narrow(data: bytes, family: int) -> Address:
    return ip_address(data if family == socket.AF_INET6 else data[:4])


def _family(version: int) -> int:
    return socket.AF_INET6 if version == 6 else socket.AF_INET
