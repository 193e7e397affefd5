"""The parts of a container's network, and how they are made, removed, and found again after a crash.

A sandbox is a network namespace held by a file, with the loopback up and, per network, an endpoint: `eth0`, `eth1`,
..., each one end of a veth pair whose other end is a port of the network's bridge, or a macvlan or ipvlan interface on
one of the host's. All functions block (a few milliseconds of system calls): call them from a thread.
"""

import errno
import os
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address
from pathlib import Path

import msgspec

from husk.errors import Conflict, InvalidParameter, SystemFault
from husk.kernel import namespaces, rtaddresses, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkMessage, NetlinkSocket
from husk.network import hardening
from husk.network.ipam import mac_address

PORT_PREFIX = "veth"
_LONGEST_NAME = 15


class Lease(msgspec.Struct, frozen=True):
    """A sandbox and its place on one network, given to one container: all that is needed to release it."""

    sandbox_path: str
    # The other end on the host; for an interface on a parent, which has none, a name that nothing else has.
    host_interface: str
    ip_address: str
    prefix_len: int
    # "" on a network that leads nowhere else.
    gateway: str
    mac_address: str
    interface: str = "eth0"
    # "" and 0 on a network without IPv6.
    ip6_address: str = ""
    prefix6_len: int = 0
    gateway6: str = ""
    # It leads everywhere without a gateway.
    direct: bool = False


class ParentLink(msgspec.Struct, frozen=True):
    """A macvlan or ipvlan interface on a parent, which is an interface of the host, and not on a bridge."""

    kind: str
    # As the kernel numbers them.
    mode: int
    flags: int = 0
    # The parent takes part in no network of its own: packets are routed to it, and through it.
    routes: bool = False


class DefaultRoute(msgspec.Struct, frozen=True):
    """The way of packets for other networks: to a gateway, out of an interface to whoever takes them, or nowhere."""

    gateway: str = ""
    interface: str = ""


NO_ROUTE = DefaultRoute()


class Wiring(msgspec.Struct, frozen=True):
    """The connection of an endpoint: its bridge or parent, its addresses, gateways and settings."""

    # The bridge, or the parent.
    bridge: str
    address: IPv4Interface | None
    gateway: IPv4Address | None
    mtu: int
    mac: str = ""
    # Cut off from the other endpoints on the bridge.
    isolated: bool = False
    address6: IPv6Interface | None = None
    gateway6: IPv6Address | None = None
    # Packets for other networks go out without a gateway.
    direct: bool = False
    parent_link: ParentLink | None = None
    # What the interface is called inside; "" for the next free of eth0, eth1, ..., or with another beginning.
    name: str = ""
    prefix: str = "eth"
    # Settings below /proc/sys, with IFNAME for that name.
    sysctls: tuple[tuple[str, str], ...] = ()
    # Addresses of the link besides those of the network.
    link_local: tuple[IPv4Interface | IPv6Interface, ...] = ()
    # How the names of the host's ends begin.
    port_prefix: str = PORT_PREFIX
    # The versions of IP in which the host itself is on the bridge, at which addresses, and with which MAC; "" if that
    # may change.
    host_versions: frozenset[int] = frozenset()
    host_addresses: frozenset[IPv4Address | IPv6Address] = frozenset()
    host_mac: str = ""


def build(directory: Path, wiring: Wiring) -> Lease:
    """Make a sandbox that is ready for a container's first process. On failure nothing is left."""
    lease = _lease(directory / os.urandom(5).hex(), wiring, wiring.name or f"{wiring.prefix}0")
    # By name each time: somebody may have deleted the bridge and made it anew.
    master = socket.if_nametoindex(wiring.bridge)
    with NetlinkSocket() as host, namespaces.home() as home, sysctl.fresh() as settings:

        def connect(namespace: int) -> None:
            _plug_in(host, namespace, lease, wiring, master)
            # Before the other end is up: the one that comes second sends at once, the first when the kernel finds time.
            namespaces.visit(home, namespace, lambda: _open_port(host, lease, wiring, master, settings))
            _allow_unprivileged(settings)
            with NetlinkSocket() as inside:
                inside.execute(rtnetlink.set_up("lo"))
            _configure(lease, wiring, settings, default_route=True)
            _settle(host, lease, wiring)

        namespaces.create(Path(lease.sandbox_path), connect)
    return lease


def build_empty(directory: Path) -> str:
    """A sandbox with a loopback only, for a container that is on no network now; its path."""
    path = directory / os.urandom(5).hex()

    def setup(_: int) -> None:
        with sysctl.fresh() as settings:
            _allow_unprivileged(settings)
        with NetlinkSocket() as inside:
            inside.execute(rtnetlink.set_up("lo"))

    namespaces.create(path, setup)
    return str(path)


def attach(sandbox_path: str, wiring: Wiring) -> Lease:
    """Give a sandbox one more endpoint, without touching its default route. On failure nothing is left."""
    path = Path(sandbox_path)
    master = socket.if_nametoindex(wiring.bridge)
    with NetlinkSocket() as host, namespaces.home() as home, path.open("rb") as sandbox, sysctl.fresh() as settings:
        namespace = sandbox.fileno()

        def connect() -> Lease:
            present = {link for _, link in socket.if_nameindex()}
            names = (f"{wiring.prefix}{number}" for number in range(1 << 16))
            lease = _lease(path, wiring, wiring.name or next(name for name in names if name not in present))
            if lease.interface in present:
                raise Conflict(
                    f"failed to add interface {lease.host_interface} to sandbox: error renaming interface "
                    f'"{lease.host_interface}" to "{lease.interface}": file exists'
                )
            _plug_in(host, namespace, lease, wiring, master)
            try:
                namespaces.visit(home, namespace, lambda: _open_port(host, lease, wiring, master, settings))
                _configure(lease, wiring, settings, default_route=False)
                _settle(host, lease, wiring)
            except BaseException:
                with NetlinkSocket() as own:
                    delete_links(own, [lease.interface])
                raise
            return lease

        return namespaces.run_inside(path, connect)


def set_default_route(sandbox_path: str, route: DefaultRoute, route6: DefaultRoute = NO_ROUTE) -> None:
    """Lead packets for other networks there; SystemFault after both were tried, if there is no way to a gateway."""

    def change() -> list[str]:
        with NetlinkSocket() as inside:
            found = [(to, _route(inside, version, to)) for version, to in ((4, route), (6, route6))]
            return [f"{to.gateway or to.interface or 'nowhere'} ({error})" for to, error in found if error is not None]

    if failed := namespaces.run_inside(Path(sandbox_path), change):
        raise SystemFault(f"failed to set the default route to {' and '.join(failed)}")


def _route(inside: NetlinkSocket, version: int, to: DefaultRoute) -> OSError | None:
    try:
        index = socket.if_nametoindex(to.interface) if to.interface else 0
    except OSError as error:
        return error
    if to.gateway:
        return inside.attempt([rtaddresses.replace_default_route(ip_address(to.gateway), index)])[0]
    if index:
        return inside.attempt([rtaddresses.direct_default_route(version, index, replace=True)])[0]
    (refused,) = inside.attempt([rtaddresses.delete_default_route(version)])
    # There was none; or the kernel has no IPv6.
    harmless = refused is None or refused.errno in (errno.ESRCH, errno.EOPNOTSUPP, errno.EAFNOSUPPORT)
    return None if harmless else refused


def _lease(path: Path, wiring: Wiring, inside: str) -> Lease:
    return Lease(
        sandbox_path=str(path),
        host_interface=wiring.port_prefix + os.urandom(8).hex()[: _LONGEST_NAME - len(wiring.port_prefix)],
        ip_address=str(wiring.address.ip) if wiring.address else "",
        prefix_len=wiring.address.network.prefixlen if wiring.address else 0,
        gateway=str(wiring.gateway or ""),
        mac_address=_mac(wiring),
        interface=inside,
        ip6_address=str(wiring.address6.ip) if wiring.address6 else "",
        prefix6_len=wiring.address6.network.prefixlen if wiring.address6 else 0,
        gateway6=str(wiring.gateway6 or ""),
        direct=wiring.direct,
    )


def _mac(wiring: Wiring) -> str:
    # An ipvlan interface has that of its parent.
    if wiring.parent_link and wiring.parent_link.kind == "ipvlan":
        return ""
    address = wiring.address or wiring.address6
    return wiring.mac or (mac_address(address.ip) if address else "")


def _plug_in(host: NetlinkSocket, namespace: int, lease: Lease, wiring: Wiring, master: int) -> None:
    if wiring.parent_link is not None:
        host.execute(
            add_link_on_parent(wiring.parent_link, lease.interface, master, lease.mac_address, namespace, wiring.mtu)
        )
        return
    host.execute(
        rtnetlink.add_veth(
            lease.host_interface,
            lease.interface,
            peer_mac=lease.mac_address,
            peer_namespace=namespace,
            master=master,
            mtu=wiring.mtu,
        )
    )


def _open_port(host: NetlinkSocket, lease: Lease, wiring: Wiring, master: int, settings: int | None) -> None:
    """Outside: from now on packets go in and out."""
    if wiring.parent_link is None:
        known = host_knows(lease, wiring.host_versions)
        host.execute(*port_of(lease, master, wiring.isolated, known, settings))


def _settle(host: NetlinkSocket, lease: Lease, wiring: Wiring) -> None:
    """Both ends are up: the first packet arrives."""
    if wiring.parent_link is None:
        # With its first port a bridge comes up itself.
        host.execute(rtnetlink.settle_link(lease.host_interface), rtnetlink.settle_link(wiring.bridge))


def host_knows(lease: Lease, versions: Collection[int]) -> list[IPv4Address | IPv6Address]:
    """The addresses of an endpoint at which the host speaks to it."""
    found = [ip_address(text) for text in (lease.ip_address, lease.ip6_address) if text]
    return [address for address in found if address.version in versions]


def port_of(
    lease: Lease,
    master: int,
    isolated: bool,
    known: Iterable[IPv4Address | IPv6Address],
    settings: int | None = None,
) -> list[NetlinkMessage]:
    name = lease.host_interface
    hardening.port(name, settings)
    return [
        # A container may ask for its own published port: where the kernel shows bridged packets to the firewall, they
        # go back through the port they came from.
        rtnetlink.set_port(name, hairpin=not isolated, isolated=isolated),
        *hardening.static_entries(master, socket.if_nametoindex(name), lease.mac_address, known),
        rtnetlink.set_up(name),
    ]


def add_link_on_parent(
    parent_link: ParentLink, name: str, parent: int, mac: str = "", namespace: int | None = None, mtu: int = 0
) -> NetlinkMessage:
    if parent_link.kind == "macvlan":
        return rtnetlink.add_macvlan(name, parent, mode=parent_link.mode, mac=mac, namespace=namespace, mtu=mtu)
    return rtnetlink.add_ipvlan(
        name, parent, mode=parent_link.mode, flags=parent_link.flags, namespace=namespace, mtu=mtu
    )


def _configure(lease: Lease, wiring: Wiring, settings: int | None, default_route: bool) -> None:
    """Inside the namespace: addresses and routes."""
    ipv6 = f"net/ipv6/conf/{lease.interface}"
    if wiring.address6 is None and all(address.version == 4 for address in wiring.link_local):
        # The network has no IPv6 addresses; a link-local one would only cause traffic.
        sysctl.try_write(f"{ipv6}/disable_ipv6", "1", settings)
    else:
        sysctl.try_write(f"{ipv6}/disable_ipv6", "0", settings)
        # Its addresses and routes are the engine's matter, not that of some router on the network.
        sysctl.try_write(f"{ipv6}/accept_ra", "0", settings)
    index = socket.if_nametoindex(lease.interface)
    addresses = [address for address in (wiring.address, wiring.address6) if address is not None]
    messages = [rtaddresses.add_address(index, address) for address in (*addresses, *wiring.link_local)]
    messages.append(rtnetlink.set_up(lease.interface))
    if default_route and wiring.direct:
        messages += [rtaddresses.direct_default_route(address.version, index) for address in addresses]
    elif default_route:
        gateways = [gateway for gateway in (wiring.gateway, wiring.gateway6) if gateway is not None]
        messages += [rtaddresses.add_default_route(gateway, index) for gateway in gateways]
    if wiring.host_mac:
        # Nobody else on the network can say that it is the gateway, unless the settings name another as that.
        gateways = [gateway for gateway in (wiring.gateway, wiring.gateway6) if gateway in wiring.host_addresses]
        messages += [rtaddresses.add_neighbour(index, gateway, wiring.host_mac) for gateway in gateways if gateway]
    with NetlinkSocket() as inside:
        inside.execute(*messages)
    for setting, value in wiring.sysctls:
        name = setting.replace("IFNAME", lease.interface)
        try:
            sysctl.write(name, value, settings)
        except OSError as error:
            # Somebody has asked for what this kernel has not, or does not take.
            said = f"{name.replace('/', '.')}={value}: {error.strerror}"
            raise InvalidParameter(f"failed to set interface sysctl {said}") from error


def _allow_unprivileged(settings: int | None) -> None:
    """Let any user in the container ping and listen on low ports, as Docker does: the ports are the container's own."""
    sysctl.try_write("net/ipv4/ip_unprivileged_port_start", "0", settings)
    sysctl.try_write("net/ipv4/ping_group_range", "0 2147483647", settings)


def abandon(sandbox_path: str) -> None:
    """Let go of the sandbox's namespace; nothing happens when it is gone already.

    Once no process is in it, the kernel removes the veth pairs on its own, some 30 ms later and many pairs at once;
    asked to remove one, it makes the asker wait as long for each.
    """
    namespaces.remove(Path(sandbox_path))


def abandon_all(sandbox_paths: Iterable[str]) -> None:
    """`abandon` all of them, whatever happens to one; then OSError for the first that could not be let go."""
    failures: list[OSError] = []
    for path in sandbox_paths:
        try:
            abandon(path)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def connected(lease: Lease) -> bool:
    """Return True if the endpoint's interface on the host still exists. Does not block."""
    try:
        return bool(socket.if_nametoindex(lease.host_interface))
    except OSError:
        return False


def cut_off(bridge: str, known: Iterable[Lease], connected: Iterable[Lease]) -> None:
    """Let the host forget endpoints, and remove the veth pairs now, even if a process keeps the namespace alive.

    Nothing happens for those that are gone.
    """
    with NetlinkSocket() as host:
        delete_links(host, [lease.host_interface for lease in connected])
        with suppress(OSError):  # the bridge may be gone, and what it knew with it
            master = socket.if_nametoindex(bridge)
            hardening.forget(host, master, [address for lease in known for address in host_knows(lease, (4, 6))])


def unplug(lease: Lease) -> None:
    """Remove an endpoint of which nothing is on the host, from inside. Nothing happens when it is gone."""

    def remove() -> None:
        with NetlinkSocket() as inside:
            delete_links(inside, [lease.interface])

    with suppress(FileNotFoundError):
        namespaces.run_inside(Path(lease.sandbox_path), remove)


def make_place(directory: Path) -> None:
    """The directory whose files hold sandboxes."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def sweep(directory: Path, keep: Collection[str]) -> None:
    """Remove every sandbox in the directory but those at the paths to keep."""
    names = {Path(path).name for path in keep}
    for path in directory.iterdir():
        if path.name not in names:
            namespaces.remove(path)


def delete_links(host: NetlinkSocket, names: list[str]) -> None:
    for name in names:
        # One by one: a batch of many could overflow the socket's buffer of answers.
        (error,) = host.attempt([rtnetlink.delete_link(name)])
        if error is not None and error.errno != errno.ENODEV:
            raise error
