"""Encrypts what hosts send one another for encrypted overlay networks: IPsec between each two hosts, by the kernel.

Encrypted networks have a UDP port of their own (`port_of`), so that policies are about a port: whatever goes to it, or
comes for it, is encrypted between hosts that know each other, and is not let through otherwise. On the wire there is
ESP (IP protocol 50) and that port is never seen. Without keys, or without the daemon, nothing goes out readable.

Keys are given by the caller: the first is used for sending, all of them for receiving. To change one without loss:
give all hosts (old, new), then all (new, old), then all (new). Each two hosts have keys of their own in each direction,
which follow from the given ones and from the sender's `epoch`. The counters of a sender, by which packets are told from
copies of old ones, are the kernel's and end with it: so whoever finds none of its own (`running`) takes a new epoch and
tells it the others before it sends, and no key is ever used twice with the same counter.
"""

import errno
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from msgspec import Struct

from husk.errors import InvalidParameter, SystemFault, Unavailable
from husk.kernel import xfrm
from husk.kernel.netlink import Message, NetlinkSocket
from husk.kernel.xfrm import INWARD, OUTWARD, Association, Policy

_LEAST_SECRET = 16
_MARK = 0x68750000
_GONE = (errno.ESRCH, errno.ENOENT)
_THERE = (errno.EEXIST,)
_LACKING = (errno.ENOSYS, errno.EPROTONOSUPPORT, errno.ENOENT, errno.EOPNOTSUPP, errno.EAFNOSUPPORT)


class Party(Struct, frozen=True):
    """A host: its address among the others, and the number that is new each time its counters began anew."""

    address: str
    epoch: int


class Wanted(Struct, frozen=True):
    """What the kernel must have: keys by their associations, and policies."""

    keys: Mapping[Association, bytes]
    policies: frozenset[Policy]


def port_of(data_path_port: int) -> int:
    """The UDP port of encrypted networks, beside that of the others. Pure."""
    return data_path_port + 1 if data_path_port < 65535 else data_path_port - 1


def wanted(local: Party, others: Iterable[Party], given: Sequence[bytes], port: int) -> Wanted:
    """Pure."""
    if any(len(secret) < _LEAST_SECRET for secret in given):
        raise InvalidParameter(f"a key of an encrypted network has at least {_LEAST_SECRET} bytes")
    mark = mark_of(port)
    here = ip_address(local.address)
    keys: dict[Association, bytes] = {}
    policies = {Policy(direction, port, here.version, mark) for direction in (INWARD, OUTWARD)}
    for other in others:
        there = ip_address(other.address)
        if there == here or not given:
            continue
        sending, key = derived(given[0], local, other, mark)
        keys[sending] = key
        for secret in given:
            receiving, key = derived(secret, other, local, mark)
            keys[receiving] = key
        policies.add(Policy(OUTWARD, port, here.version, mark, here, there, sending.spi))
        policies.add(Policy(INWARD, port, here.version, mark, there, here))
    return Wanted(keys, frozenset(policies))


def derived(secret: bytes, sender: Party, receiver: Party, mark: int) -> tuple[Association, bytes]:
    """The key of one direction, and the number it goes by, which is the same on both sides. Pure."""
    source, target = ip_address(sender.address), ip_address(receiver.address)
    about = b"husk overlay " + source.packed + sender.epoch.to_bytes(8) + target.packed + mark.to_bytes(4)
    made = hmac.digest(secret, about, hashlib.sha512)
    # Numbers below 256 are reserved.
    spi = int.from_bytes(made[xfrm.KEY_BYTES :][:4]) | 1 << 31
    return Association(source, target, spi, mark), made[: xfrm.KEY_BYTES]


def mark_of(port: int) -> int:
    return _MARK | port


def difference(present: tuple[set[Association], set[Policy]], goal: Wanted) -> list[Message]:
    """Keys come before the policies that name them, and go after those that named them. Pure."""
    associations, policies = present
    old = policies - goal.policies
    # One about the same packets is replaced, not added.
    places = {_place(policy) for policy in goal.policies}
    return [
        *(xfrm.add_association(one, key) for one, key in goal.keys.items() if one not in associations),
        *(xfrm.set_policy(policy) for policy in _ordered(goal.policies - policies)),
        *(xfrm.delete_policy(policy) for policy in _ordered(old) if _place(policy) not in places),
        *(xfrm.delete_association(one) for one in associations if one not in goal.keys),
    ]


def _ordered(policies: Iterable[Policy]) -> list[Policy]:
    """What lets nothing through first."""
    return sorted(policies, key=lambda policy: (policy.source is not None, str(policy)))


def _place(policy: Policy) -> tuple[object, ...]:
    return policy.direction, policy.port, policy.version, policy.source, policy.target


def apply(local: Party, others: Iterable[Party], given: Sequence[bytes], port: int) -> int:
    """Make it so, changing no more than is different; how many messages it took. Blocks."""
    goal = wanted(local, others, given, port)
    try:
        with NetlinkSocket(xfrm.PROTOCOL) as netlink:
            messages = difference(look(netlink, port), goal)
            for error in netlink.attempt(messages):
                if error is not None and error.errno not in (*_GONE, *_THERE):
                    raise error
            return len(messages)
    except OSError as error:
        raise _fault(error) from error


def remove(port: int) -> None:
    """Nothing of it stays: the networks that needed it are gone. Blocks; safe to call twice."""
    try:
        with NetlinkSocket(xfrm.PROTOCOL) as netlink:
            netlink.attempt(difference(look(netlink, port), Wanted({}, frozenset())))
    except OSError as error:
        if error.errno not in _LACKING:
            raise _fault(error) from error


def running(local: Party, port: int) -> bool:
    """Whether the kernel still counts for this sender: otherwise it must take a new epoch (`new_epoch`). Blocks."""
    here = ip_address(local.address)
    with NetlinkSocket(xfrm.PROTOCOL) as netlink:
        associations, _ = look(netlink, port)
    return any(one.source == here for one in associations)


def new_epoch() -> int:
    return secrets.randbits(63)


def look(netlink: NetlinkSocket, port: int) -> tuple[set[Association], set[Policy]]:
    """What the kernel has of ours for this port. Blocks."""
    mark = mark_of(port)
    associations = map(xfrm.parse_association, netlink.dump(xfrm.list_associations()))
    policies = (xfrm.parse_policy(payload, mark) for payload in netlink.dump(xfrm.list_policies()))
    return (
        {one for one in associations if one.mark == mark},
        {one for one in policies if one is not None and one.port == port and one.mark == mark},
    )


def require() -> None:
    """Raises where the kernel cannot encrypt between hosts. Blocks."""
    nowhere = Association(ip_address("192.0.2.1"), ip_address("192.0.2.2"), secrets.randbits(31) | 1 << 31, _MARK)
    try:
        with NetlinkSocket(xfrm.PROTOCOL) as netlink:
            netlink.execute(xfrm.add_association(nowhere, secrets.token_bytes(xfrm.KEY_BYTES)))
            netlink.execute(xfrm.delete_association(nowhere))
    except OSError as error:
        raise _fault(error) from error


def _fault(error: OSError) -> SystemFault | Unavailable:
    if error.errno in _LACKING:
        return Unavailable(
            "encrypted networks need IPsec, which the kernel of this host does not have (ESP with AES-GCM: modules "
            f"esp4, esp6, gcm, seqiv): {error}"
        )
    return SystemFault(f"what hosts send one another cannot be encrypted: {error}")
