"""The parent interface of a macvlan or ipvlan network: one of the host's, or one that is made for the network.

All functions block: call them from a thread.
"""

import errno
import os
import socket
from collections.abc import Callable
from ipaddress import IPv4Interface, IPv6Interface
from typing import NamedTuple

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.kernel import rtnetlink
from husk.network import hardening, host, sandbox
from husk.network.sandbox import ParentLink
from husk.network.settings import BridgeSettings

_NO_SUCH_KIND = (errno.EOPNOTSUPP, errno.ENOTSUP)
_MOST_VLANS = 4094


class ParentHost(NamedTuple):
    """The host under a parent, beside its interfaces: how parents and ports are hardened, which addresses a network can
    have, and the removal of an interface that was made for it."""

    harden_parent: Callable[[str], None] = hardening.parent
    harden_port: Callable[[str], None] = hardening.port
    index_of: Callable[[str], int] = socket.if_nametoindex
    decide: Callable[[host.BridgePlan, host.HostSurroundings], IPv4Interface | None] = host.decide
    decide_6: Callable[[host.BridgePlan, host.HostSurroundings], IPv6Interface | None] = host.decide_6
    remove: Callable[[str, str], None] = host.remove


HOST = ParentHost()


def prepare(
    settings: BridgeSettings,
    parent_link: ParentLink,
    plan: host.BridgePlan,
    around: host.HostNetwork,
    under: ParentHost = HOST,
) -> host.BridgeState:
    made = _ensure_parent(settings, around, under)
    parent = under.index_of(settings.interface)
    try:
        _probe(parent_link, parent, around)
        surroundings = around.around("")
        gateway, gateway6 = under.decide(plan, surroundings), under.decide_6(plan, surroundings)
    except (OSError, HuskError):
        if made:
            under.remove(settings.interface, settings.owner)
        raise
    return host.BridgeState(gateway, settings.mtu, gateway6)


def _ensure_parent(settings: BridgeSettings, around: host.HostNetwork, under: ParentHost) -> bool:
    """Make the parent if it is to be ours; whether it had to be made."""
    name = settings.interface
    if name in around.by_name:
        return False
    if settings.alone:
        _add_alone(name, around, under)
    else:
        _add_vlan(name, around)
    around.netlink.execute(rtnetlink.set_alias(name, settings.owner))
    under.harden_parent(name)
    around.netlink.execute(rtnetlink.set_up(name))
    return True


def _add_alone(name: str, around: host.HostNetwork, under: ParentHost) -> None:
    (error,) = around.netlink.attempt([rtnetlink.add_dummy(name)])
    if error is not None and error.errno in _NO_SUCH_KIND:
        # A pair of interfaces, one of which nobody uses, leads nowhere just as well.
        peer = "hk" + os.urandom(5).hex()
        (error,) = around.netlink.attempt([rtnetlink.add_veth(name, peer)])
        if error is None:
            under.harden_port(peer)
            around.netlink.execute(rtnetlink.set_up(peer))
    if error is not None:
        raise error


def _add_vlan(name: str, around: host.HostNetwork) -> None:
    """The parent `eth0.10` is the 802.1q network 10 of eth0."""
    below, _, number = name.rpartition(".")
    if below not in around.by_name or not (number.isascii() and number.isdigit()):
        raise NotFound(f"invalid subinterface vlan name {name}, example formatting is eth0.10: no interface {name}")
    if len(number) > 9 or not 1 <= int(number) <= _MOST_VLANS:
        raise InvalidParameter(f"vlan id must be between 1-{_MOST_VLANS}, received: {number}")
    (error,) = around.netlink.attempt([rtnetlink.add_vlan(name, around.by_name[below].index, int(number))])
    if error is not None and error.errno in _NO_SUCH_KIND:
        raise SystemFault(f"this host's kernel has no 802.1q interfaces (CONFIG_VLAN_8021Q): make {name} otherwise")
    if error is not None:
        raise error


def _probe(parent_link: ParentLink, parent: int, around: host.HostNetwork) -> None:
    """Try such an interface on this parent: better known now than at a start if the kernel makes it. Or SystemFault."""
    name = "hk" + os.urandom(5).hex()
    (error,) = around.netlink.attempt([sandbox.add_link_on_parent(parent_link, name, parent)])
    if error is None:
        around.netlink.attempt([rtnetlink.delete_link(name)])
    elif error.errno in _NO_SUCH_KIND:
        raise SystemFault(
            f"this host's kernel has no {parent_link.kind} interfaces (CONFIG_{parent_link.kind.upper()})"
        )
    # Enslaved to a bridge, or the parent of an interface of the other kind.
    elif error.errno in (errno.EBUSY, errno.EINVAL):
        raise SystemFault(f"the parent interface takes no {parent_link.kind} interfaces: {error}")
    else:
        raise error
