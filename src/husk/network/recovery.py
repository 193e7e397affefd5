"""Recovery of the sandboxes that a new daemon finds on a bridge: ports that nobody owns go, those of leases come back.

All functions block: call them from a thread.
"""

import socket
from collections.abc import Collection, Iterable, Mapping

from husk.kernel import rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.network import hardening, sandbox
from husk.network.sandbox import Lease


def sweep_ports(host: NetlinkSocket, links: Iterable[rtnetlink.Link], master: int, keep: Collection[Lease]) -> None:
    """Remove every veth on the bridge that no lease owns."""
    kept = {lease.host_interface for lease in keep}
    # The bridge may be the administrator's own, with ports that are not ours.
    stale = [
        link.name
        for link in links
        if link.master == master
        and link.kind == "veth"
        and link.name.startswith(sandbox.PORT_PREFIX)
        and link.name not in kept
    ]
    sandbox.delete_links(host, stale)


def reattach(
    host: NetlinkSocket,
    links: Mapping[str, rtnetlink.Link],
    master: int,
    leases: Iterable[Lease],
    isolated: bool,
    versions: Collection[int],
) -> None:
    """Make the leases' interfaces ports of the bridge again, in case it was deleted and made anew."""
    for lease in leases:
        if (link := links.get(lease.host_interface)) is None:
            continue
        try:
            if link.master != master:
                host.execute(rtnetlink.set_master(link.name, master))
            host.execute(*sandbox.port_of(lease, master, isolated, sandbox.host_knows(lease, versions)))
        except OSError:
            # An interface goes with its sandbox, at any moment.
            if link.name in (name for _, name in socket.if_nameindex()):
                raise


def forget_others(host: NetlinkSocket, master: int, leases: Iterable[Lease]) -> None:
    """After a crash: only these endpoints are still somebody's."""
    hardening.forget_others(
        host, master, [address for lease in leases for address in sandbox.host_knows(lease, (4, 6))]
    )
