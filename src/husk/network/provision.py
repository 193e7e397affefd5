"""Preparation of the host for a network, before it has endpoints: a bridge with its rules, or a parent interface.

All functions block, unless they say otherwise: call them from a thread.
"""

import errno
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from husk.errors import HuskError, SystemFault, Unavailable
from husk.kernel import rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening, host, parent, recovery, sandbox
from husk.network.firewall import Firewall
from husk.network.rules import BridgedNetwork
from husk.network.sandbox import Lease
from husk.network.settings import BridgeSettings, Opening
from husk.text.interface_names import validate_interface

# The kernel counts the ports of a bridge from 1 in ten bits.
MOST_PORTS = 1023


class BridgeFull(Unavailable):
    """The bridge has as many ports as the kernel lets it have."""


def prepare(openings: Sequence[Opening], firewall: Firewall) -> list[host.BridgeState]:
    """Create or repair what the networks need, and remove what no lease owns. The host is looked at once for all."""
    states = []
    with host.looking() as around:
        for opening in openings:
            sandbox.make_place(opening.settings.netns_dir)
            try:
                states.append(_prepare(opening, around, firewall))
            except OSError as error:
                what = "bridge" if opening.settings.parent_link is None else "parent interface"
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
        bip=str(state.gateway or ""),
        bip6=str(state.gateway6 or ""),
        pool6="",
        mtu=state.mtu,
        pools=(),
        must_exist=False,
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
    return frozenset(present) - settings.bare - settings.silent


def fit(interface: str, mtu: int) -> None:
    """Let a bridge that is there send no larger packets: it would drop what its ports do not take."""
    with NetlinkSocket() as netlink:
        (error,) = netlink.attempt([rtnetlink.set_mtu(interface, mtu)])
        if error is not None and error.errno != errno.ENODEV:
            raise error


def remove(settings: BridgeSettings, firewall: Firewall) -> None:
    """Delete the interface if it is there and `prepare` made it, and its rules."""
    host.remove(settings.interface, settings.owner)
    if settings.parent_link is None:
        firewall.remove_network(settings.interface)


def _recover(opening: Opening, around: host.HostNetwork, master: int, new: bool, versions: frozenset[int]) -> None:
    """Remove or put back what an earlier daemon has left of endpoints; without such, `recovery` is not loaded."""

    # A bridge that has just been made has no ports, and its number says nothing about those of another.
    if not opening.spare and not new:
        recovery.sweep_ports(around.netlink, around.links.values(), master, opening.leases)
        recovery.forget_others(around.netlink, master, opening.leases)
    isolated = not opening.settings.icc
    recovery.reattach(around.netlink, around.by_name, master, opening.leases, isolated, versions)


def _prepare(opening: Opening, around: host.HostNetwork, firewall: Firewall) -> host.BridgeState:
    settings, subnet, leases, spare = opening
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
        bare=settings.bare | settings.silent,
        must_exist=settings.must_exist,
        forward=settings.forward,
        own=frozenset(map(ip_address, settings.own)),
    )
    if settings.parent_link is not None:
        return parent.prepare(settings, settings.parent_link, plan, around)
    new = settings.interface not in around.by_name
    try:
        state = host.ensure(plan, around)
        master = state.bridge_index
        if spare:
            owned = {text for lease in leases for text in (lease.ip_address, lease.ip6_address)}
            known = [str(address) for address in hardening.known(around.netlink, master)]
            state = state._replace(taken=tuple(address for address in known if address not in owned))
        if not new or leases:
            _recover(opening, around, master, new, host_versions(settings, state))
        network = BridgedNetwork(
            settings.interface,
            state.gateway.network if state.gateway else None,
            internal=settings.internal,
            icc=settings.icc,
            masquerade=settings.masquerade,
            subnet6=state.gateway6.network if state.gateway6 else None,
            modes=settings.gateway_modes,
        )
        firewall.add_network(network)
    except (HuskError, OSError):
        # The kernel may refuse an address of a bridge that it has made.
        if new:
            host.remove(settings.interface, settings.owner)
        raise
    return state
