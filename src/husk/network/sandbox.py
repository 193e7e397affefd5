"""What does a container's network consist of, and how is it made, removed, and found again after a crash?

A sandbox is a network namespace held by a file, with the loopback up and, per network, an endpoint: `eth0`, `eth1`,
..., each one end of a veth pair whose other end is a port of the network's bridge. All functions block (a few
milliseconds of system calls): call them from a thread.
"""

import errno
import secrets
import socket
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.kernel import namespaces, rtnetlink, sysctl
from husk.kernel.netlink import Message, NetlinkSocket
from husk.network.ipam import mac_address

_VETH_PREFIX = "veth"
_FIRST_NAME = "eth0"


class Lease(msgspec.Struct, frozen=True):
    """A sandbox and its place on one network, given to one container: all that is needed to release it."""

    sandbox_path: str
    host_interface: str
    ip_address: str
    prefix_len: int
    # "" on a network that leads nowhere else.
    gateway: str
    mac_address: str
    interface: str = _FIRST_NAME


class Wiring(NamedTuple):
    """How an endpoint is connected."""

    bridge: str
    address: IPv4Interface
    gateway: IPv4Address | None
    mtu: int
    mac: str = ""
    # Cut off from the other endpoints on the bridge.
    isolated: bool = False


def build(directory: Path, wiring: Wiring) -> Lease:
    """Make a sandbox that is ready for a container's first process. On failure nothing is left."""
    name = secrets.token_hex(5)
    lease = _lease(directory / name, wiring, _FIRST_NAME, name)
    # By name each time: somebody may have deleted the bridge and made it anew.
    master = socket.if_nametoindex(wiring.bridge)
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            _plug_in(host, namespace, lease, wiring, master)
            _allow_unprivileged()
            with NetlinkSocket() as inside:
                inside.execute(rtnetlink.set_up("lo"))
            _configure(lease, wiring, default_route=True)

        namespaces.create(Path(lease.sandbox_path), connect)
    return lease


def build_empty(directory: Path) -> str:
    """A sandbox with a loopback only, for a container that is on no network now; its path."""
    path = directory / secrets.token_hex(5)

    def setup(_: int) -> None:
        _allow_unprivileged()
        with NetlinkSocket() as inside:
            inside.execute(rtnetlink.set_up("lo"))

    namespaces.create(path, setup)
    return str(path)


def attach(sandbox_path: str, wiring: Wiring) -> Lease:
    """Give a sandbox one more endpoint, without touching its default route. On failure nothing is left."""
    path = Path(sandbox_path)
    name = secrets.token_hex(5)
    master = socket.if_nametoindex(wiring.bridge)
    with NetlinkSocket() as host, path.open("rb") as namespace:

        def connect() -> Lease:
            present = {link for _, link in socket.if_nameindex()}
            inside = next(f"eth{number}" for number in range(1 << 16) if f"eth{number}" not in present)
            lease = _lease(path, wiring, inside, name)
            _plug_in(host, namespace.fileno(), lease, wiring, master)
            try:
                _configure(lease, wiring, default_route=False)
            except OSError:
                _delete_links(host, [lease.host_interface])
                raise
            return lease

        return namespaces.run_inside(path, connect)


def set_default_route(sandbox_path: str, gateway: str) -> None:
    """Lead packets for other networks to this gateway, or nowhere when it is empty."""

    def change() -> None:
        with NetlinkSocket() as inside:
            if gateway:
                inside.execute(rtnetlink.replace_default_route(IPv4Address(gateway)))
                return
            (error,) = inside.attempt([rtnetlink.delete_default_route()])
            if error is not None and error.errno != errno.ESRCH:
                raise error

    namespaces.run_inside(Path(sandbox_path), change)


def _lease(path: Path, wiring: Wiring, inside: str, name: str) -> Lease:
    return Lease(
        sandbox_path=str(path),
        host_interface=_VETH_PREFIX + name,
        ip_address=str(wiring.address.ip),
        prefix_len=wiring.address.network.prefixlen,
        gateway=str(wiring.gateway or ""),
        mac_address=wiring.mac or mac_address(wiring.address.ip),
        interface=inside,
    )


def _plug_in(host: NetlinkSocket, namespace: int, lease: Lease, wiring: Wiring, master: int) -> None:
    messages = [
        rtnetlink.add_veth(
            lease.host_interface,
            lease.interface,
            peer_mac=lease.mac_address,
            peer_namespace=namespace,
            master=master,
            mtu=wiring.mtu,
        ),
        _port(lease.host_interface, wiring.isolated),
        rtnetlink.set_up(lease.host_interface),
    ]
    host.execute(*messages)


def _port(name: str, isolated: bool) -> Message:
    # A container may ask for its own published port: where the kernel shows bridged packets to the firewall, they go
    # back through the port they came from.
    return rtnetlink.set_port(name, hairpin=not isolated, isolated=isolated)


def _configure(lease: Lease, wiring: Wiring, default_route: bool) -> None:
    """Inside the namespace: address and routes."""
    # The network has no IPv6 addresses; a link-local one would only cause traffic.
    sysctl.try_write(f"net/ipv6/conf/{lease.interface}/disable_ipv6", "1")
    messages = [
        rtnetlink.add_address(socket.if_nametoindex(lease.interface), wiring.address),
        rtnetlink.set_up(lease.interface),
    ]
    if default_route and wiring.gateway is not None:
        messages.append(rtnetlink.add_default_route(wiring.gateway))
    with NetlinkSocket() as inside:
        inside.execute(*messages)


def _allow_unprivileged() -> None:
    """Let any user in the container ping and listen on low ports, as Docker does: the ports are the container's own."""
    sysctl.try_write("net/ipv4/ip_unprivileged_port_start", "0")
    sysctl.try_write("net/ipv4/ping_group_range", "0 2147483647")


def abandon(sandbox_path: str) -> None:
    """Let go of the sandbox's namespace; nothing happens when it is gone already.

    Once no process is in it, the kernel removes the veth pairs on its own, some 30 ms later and many pairs at once;
    asked to remove one, it makes the asker wait as long for each.
    """
    namespaces.remove(Path(sandbox_path))


def connected(lease: Lease) -> bool:
    """Whether the endpoint's interface on the host still exists. Does not block."""
    try:
        return bool(socket.if_nametoindex(lease.host_interface))
    except OSError:
        return False


def disconnect(leases: Iterable[Lease]) -> None:
    """Remove the veth pairs now, even if a process keeps the namespace alive."""
    with NetlinkSocket() as host:
        _delete_links(host, [lease.host_interface for lease in leases])


def sweep(directory: Path, keep: Collection[str]) -> None:
    """Remove every sandbox in the directory but those at the paths to keep."""
    names = {Path(path).name for path in keep}
    for path in directory.iterdir():
        if path.name not in names:
            namespaces.remove(path)


def sweep_ports(bridge: str, keep: Collection[Lease]) -> None:
    """Remove every veth on the bridge that no lease owns."""
    kept = {lease.host_interface for lease in keep}
    with NetlinkSocket() as host:
        master = socket.if_nametoindex(bridge)
        links = [rtnetlink.parse_link(payload) for payload in host.dump(rtnetlink.list_links(master))]
        # The bridge may be the administrator's own, with ports that are not ours.
        _delete_links(
            host,
            [
                link.name
                for link in links
                if link.master == master
                and link.kind == "veth"
                and link.name.startswith(_VETH_PREFIX)
                and link.name not in kept
            ],
        )


def reattach(bridge: str, leases: Collection[Lease], isolated: bool = False) -> None:
    """Make the leases' interfaces ports of the bridge again, in case it was deleted and made anew."""
    if not leases:
        return
    master = socket.if_nametoindex(bridge)
    with NetlinkSocket() as host:
        present = {link.name: link for link in map(rtnetlink.parse_link, host.dump(rtnetlink.list_links()))}
        for lease in leases:
            link = present.get(lease.host_interface)
            if link is not None and (link.master != master or not link.up):
                host.execute(
                    rtnetlink.set_master(link.name, master), _port(link.name, isolated), rtnetlink.set_up(link.name)
                )


def _delete_links(host: NetlinkSocket, names: list[str]) -> None:
    for name in names:
        # One by one: a batch of many could overflow the socket's buffer of answers.
        (error,) = host.attempt([rtnetlink.delete_link(name)])
        if error is not None and error.errno != errno.ENODEV:
            raise error
