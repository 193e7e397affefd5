"""What does a container's network consist of, and how is it made, removed, and found again after a crash?

A sandbox is a network namespace held by a file, with the loopback up and `eth0`: one end of a veth pair whose other end
is a port of the bridge. All functions block (a few milliseconds of system calls): call them from a thread.
"""

import errno
import secrets
import socket
from collections.abc import Collection, Iterable
from ipaddress import IPv4Interface
from pathlib import Path

import msgspec

from husk.kernel import namespaces, rtnetlink, sysctl
from husk.kernel.netlink import NetlinkSocket
from husk.network.ipam import mac_address

_VETH_PREFIX = "veth"
_INSIDE_NAME = "eth0"


class Lease(msgspec.Struct, frozen=True):
    """A sandbox and its address, given to one container: all that is needed to release it, also after a crash."""

    sandbox_path: str
    host_interface: str
    ip_address: str
    prefix_len: int
    gateway: str
    mac_address: str


def build(directory: Path, bridge: str, address: IPv4Interface, gateway: IPv4Interface, mtu: int) -> Lease:
    """Make a sandbox that is ready for a container's first process. On failure nothing is left."""
    name = secrets.token_hex(5)
    lease = Lease(
        sandbox_path=str(directory / name),
        host_interface=_VETH_PREFIX + name,
        ip_address=str(address.ip),
        prefix_len=address.network.prefixlen,
        gateway=str(gateway.ip),
        mac_address=mac_address(address.ip),
    )
    # By name each time: somebody may have deleted the bridge and made it anew.
    master = socket.if_nametoindex(bridge)
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(
                rtnetlink.add_veth(
                    lease.host_interface,
                    _INSIDE_NAME,
                    peer_mac=lease.mac_address,
                    peer_namespace=namespace,
                    master=master,
                    mtu=mtu,
                ),
                rtnetlink.set_up(lease.host_interface),
            )
            _allow_unprivileged()
            # The network has no IPv6 addresses; a link-local one would only cause traffic.
            sysctl.try_write(f"net/ipv6/conf/{_INSIDE_NAME}/disable_ipv6", "1")
            with NetlinkSocket() as inside:
                inside.execute(
                    rtnetlink.set_up("lo"),
                    rtnetlink.add_address(socket.if_nametoindex(_INSIDE_NAME), address),
                    rtnetlink.set_up(_INSIDE_NAME),
                    rtnetlink.add_default_route(gateway.ip),
                )

        namespaces.create(Path(lease.sandbox_path), connect)
    return lease


def _allow_unprivileged() -> None:
    """Let any user in the container ping and listen on low ports, as Docker does: the ports are the container's own."""
    sysctl.try_write("net/ipv4/ip_unprivileged_port_start", "0")
    sysctl.try_write("net/ipv4/ping_group_range", "0 2147483647")


def abandon(lease: Lease) -> None:
    """Let go of the sandbox's namespace; nothing happens when it is gone already.

    Once no process is in it, the kernel removes the veth pair on its own, some 30 ms later and many pairs at once;
    asked to remove one, it makes the asker wait as long for each.
    """
    namespaces.remove(Path(lease.sandbox_path))


def connected(lease: Lease) -> bool:
    """Whether the sandbox's interface on the host still exists. Does not block."""
    try:
        return bool(socket.if_nametoindex(lease.host_interface))
    except OSError:
        return False


def disconnect(leases: Iterable[Lease]) -> None:
    """Remove the veth pairs now, even if a process keeps the namespace alive."""
    with NetlinkSocket() as host:
        _delete_links(host, [lease.host_interface for lease in leases])


def sweep(directory: Path, bridge: str, keep: Collection[Lease]) -> None:
    """Remove every sandbox in the directory and every veth on the bridge that no lease owns."""
    kept_files = {Path(lease.sandbox_path).name for lease in keep}
    for path in directory.iterdir():
        if path.name not in kept_files:
            namespaces.remove(path)
    kept_links = {lease.host_interface for lease in keep}
    with NetlinkSocket() as host:
        master = socket.if_nametoindex(bridge)
        links = [rtnetlink.parse_link(payload) for payload in host.dump(rtnetlink.list_links())]
        # The bridge may be the administrator's own, with ports that are not ours.
        _delete_links(
            host,
            [
                link.name
                for link in links
                if link.master == master
                and link.kind == "veth"
                and link.name.startswith(_VETH_PREFIX)
                and link.name not in kept_links
            ],
        )


def reattach(bridge: str, leases: Collection[Lease]) -> None:
    """Make the leases' interfaces ports of the bridge again, in case it was deleted and made anew."""
    master = socket.if_nametoindex(bridge)
    with NetlinkSocket() as host:
        present = {link.name: link for link in map(rtnetlink.parse_link, host.dump(rtnetlink.list_links()))}
        for lease in leases:
            link = present.get(lease.host_interface)
            if link is not None and (link.master != master or not link.up):
                host.execute(rtnetlink.set_master(link.name, master), rtnetlink.set_up(link.name))


def _delete_links(host: NetlinkSocket, names: list[str]) -> None:
    for name in names:
        # One by one: a batch of many could overflow the socket's buffer of answers.
        (error,) = host.attempt([rtnetlink.delete_link(name)])
        if error is not None and error.errno != errno.ENODEV:
            raise error
