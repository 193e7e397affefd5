"""What must be on the host before a network's endpoints can be made? A bridge, or an interface to put them on.

All functions block: call them from a thread.
"""

import errno
import logging
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from husk.config import AddressPool
from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.kernel import rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.network import distrust, host, sandbox
from husk.network.firewall import Firewall
from husk.network.rules import BridgedNetwork, GatewayModes, validate_interface
from husk.network.sandbox import Lease, Upper

log = logging.getLogger(__name__)

_NO_SUCH_KIND = (errno.EOPNOTSUPP, errno.ENOTSUP)
_MOST_VLANS = 4094


class BridgeSettings(NamedTuple):
    """What one driver calls its things, and how its network behaves."""

    # The bridge; the parent, for a network with `upper` interfaces.
    interface: str
    # Marks what we made on the host; the same for all drivers of a daemon.
    owner: str
    netns_dir: Path
    # The gateway's address with its prefix; empty for the first free subnet of the pools.
    bip: str = ""
    pools: tuple[AddressPool, ...] = ()
    # What endpoints get that ask for no address, and what none of them gets.
    ip_range: str = ""
    reserved: tuple[str, ...] = ()
    internal: bool = False
    icc: bool = True
    masquerade: bool = True
    mtu: int = 0
    # How many sandboxes are kept ready, and for how many seconds after the last use (0: always).
    warm: int = 2
    warm_for: float = 0.0
    # The gateway's IPv6 address with its prefix, or what a subnet is to be chosen from; empty without IPv6.
    bip6: str = ""
    pool6: str = ""
    ip_range6: str = ""
    ipv4: bool = True
    # The versions of IP of which the network has a subnet and no gateway.
    bare: frozenset[int] = frozenset()
    # What lies between the containers and the rest of the world, per version of IP.
    gateway_modes: GatewayModes = GatewayModes()
    upper: Upper | None = None
    # How often a new endpoint tells the network its MAC, and after how many seconds again.
    announcements: int = 3
    announcement_interval: float = 1.0
    # The gateways that endpoints use instead of the bridge, where these are others.
    route: str = ""
    route6: str = ""
    # Whether the host may be told to forward packets.
    forward: bool = True
    # The parent is an interface of ours that leads nowhere.
    alone: bool = False


class Opening(NamedTuple):
    """A network to be made ready: `subnet` is that of last time, `leases` what running containers have of it."""

    settings: BridgeSettings
    subnet: str | None
    leases: Sequence[Lease]


def prepare(openings: Sequence[Opening], firewall: Firewall) -> list[host.BridgeState]:
    """Create or repair what the networks need, and remove what no lease owns. The host is looked at once for all."""
    states = []
    with host.looking() as around:
        for opening in openings:
            opening.settings.netns_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                states.append(_prepare(opening, around, firewall))
            except OSError as error:
                what = "bridge" if opening.settings.upper is None else "parent interface"
                raise SystemFault(f"{what} {opening.settings.interface} cannot be set up: {error}") from error
    return states


def index_of(interface: str) -> int:
    """The kernel's number for it now, 0 when it is not there. Does not block."""
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        return 0


def mend(
    settings: BridgeSettings, state: host.BridgeState, leases: Sequence[Lease], firewall: Firewall
) -> host.BridgeState:
    """Make a bridge again that somebody has deleted, as it was, with the interfaces that were on it."""
    same = settings._replace(
        bip=str(state.gateway or ""), bip6=str(state.gateway6 or ""), pool6="", mtu=state.mtu, pools=()
    )
    [found] = prepare([Opening(same, None, leases)], firewall)
    if state.mac and found.mac != state.mac:
        # Somebody else has made one: containers know their gateway by the MAC of ours.
        with NetlinkSocket() as netlink:
            netlink.execute(rtnetlink.set_mac(settings.interface, state.mac))
    return found._replace(mac=state.mac)


def host_versions(settings: BridgeSettings, state: host.BridgeState) -> frozenset[int]:
    """The versions of IP in which the host has an address on the bridge."""
    present = [gateway.version for gateway in (state.gateway, state.gateway6) if gateway is not None]
    return frozenset(present) - settings.bare


def remove(settings: BridgeSettings, firewall: Firewall) -> None:
    """Delete the interface if it is there and `prepare` made it, and its rules."""
    host.remove(settings.interface, settings.owner)
    if settings.upper is None:
        firewall.remove_network(settings.interface)


def _prepare(opening: Opening, around: host.Host, firewall: Firewall) -> host.BridgeState:
    settings, subnet, leases = opening
    plan = host.BridgePlan(
        interface=validate_interface(settings.interface),
        owner=settings.owner,
        bip=settings.bip,
        pools=settings.pools,
        remembered=subnet,
        in_use=bool(leases),
        mtu=settings.mtu,
        bip6=settings.bip6,
        pool6=settings.pool6,
        ipv4=settings.ipv4,
        bare=settings.bare,
        forward=settings.forward,
    )
    if settings.upper is not None:
        return _prepare_parent(settings, settings.upper, plan, around)
    new = settings.interface not in around.by_name
    state = host.ensure(plan, around)
    master = state.bridge_index
    # A bridge that has just been made has no ports, and its number says nothing about those of another.
    if not new:
        sandbox.sweep_ports(around.netlink, around.links.values(), master, leases)
        sandbox.forget_others(around.netlink, master, leases)
    versions = host_versions(settings, state)
    sandbox.reattach(around.netlink, around.by_name, master, leases, not settings.icc, versions)
    network = BridgedNetwork(
        settings.interface,
        state.gateway.network if state.gateway else None,
        internal=settings.internal,
        icc=settings.icc,
        masquerade=settings.masquerade,
        subnet6=state.gateway6.network if state.gateway6 else None,
        modes=settings.gateway_modes,
    )
    try:
        firewall.add_network(network)
    except HuskError:
        if new:
            host.remove(settings.interface, settings.owner)
        raise
    return state


def _prepare_parent(
    settings: BridgeSettings, upper: Upper, plan: host.BridgePlan, around: host.Host
) -> host.BridgeState:
    made = _ensure_parent(settings, around)
    parent = socket.if_nametoindex(settings.interface)
    try:
        _probe(upper, parent, around)
        surroundings = around.around("")
        gateway, gateway6 = host.decide(plan, surroundings), host.decide_6(plan, surroundings)
    except (OSError, HuskError):
        if made:
            host.remove(settings.interface, settings.owner)
        raise
    return host.BridgeState(gateway, settings.mtu, gateway6)


def _ensure_parent(settings: BridgeSettings, around: host.Host) -> bool:
    """Make the parent if it is to be ours; whether it had to be made."""
    name = settings.interface
    if name in around.by_name:
        return False
    if settings.alone:
        _add_alone(name, around)
    else:
        _add_vlan(name, around)
    around.netlink.execute(rtnetlink.set_alias(name, settings.owner))
    distrust.parent(name)
    around.netlink.execute(rtnetlink.set_up(name))
    return True


def _add_alone(name: str, around: host.Host) -> None:
    (error,) = around.netlink.attempt([rtnetlink.add_dummy(name)])
    if error is not None and error.errno in _NO_SUCH_KIND:
        # A pair of interfaces, one of which nobody uses, leads nowhere just as well.
        peer = "hk" + secrets.token_hex(5)
        (error,) = around.netlink.attempt([rtnetlink.add_veth(name, peer)])
        if error is None:
            distrust.port(peer)
            around.netlink.execute(rtnetlink.set_up(peer))
    if error is not None:
        raise error


def _add_vlan(name: str, around: host.Host) -> None:
    """The parent `eth0.10` is the 802.1q network 10 of eth0."""
    below, _, number = name.rpartition(".")
    if below not in around.by_name or not number.isdecimal():
        raise NotFound(f"invalid subinterface vlan name {name}, example formatting is eth0.10: no interface {name}")
    if not 1 <= int(number) <= _MOST_VLANS:
        raise InvalidParameter(f"vlan id must be between 1-{_MOST_VLANS}, received: {number}")
    (error,) = around.netlink.attempt([rtnetlink.add_vlan(name, around.by_name[below].index, int(number))])
    if error is not None and error.errno in _NO_SUCH_KIND:
        raise SystemFault(f"this host's kernel has no 802.1q interfaces (CONFIG_VLAN_8021Q): make {name} otherwise")
    if error is not None:
        raise error


def _probe(upper: Upper, parent: int, around: host.Host) -> None:
    """Whether the kernel makes such interfaces at all, and on this parent: better known now than at a start."""
    name = "hk" + secrets.token_hex(5)
    (error,) = around.netlink.attempt([sandbox.upper_link(upper, name, parent)])
    if error is None:
        around.netlink.attempt([rtnetlink.delete_link(name)])
    elif error.errno in _NO_SUCH_KIND:
        raise SystemFault(f"this host's kernel has no {upper.kind} interfaces (CONFIG_{upper.kind.upper()})")
    # Enslaved to a bridge, or the parent of an interface of the other kind.
    elif error.errno in (errno.EBUSY, errno.EINVAL):
        raise SystemFault(f"the parent interface takes no {upper.kind} interfaces: {error}")
    else:
        raise error
