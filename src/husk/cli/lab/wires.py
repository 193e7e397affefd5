"""Hosts that are network namespaces, joined by a switch, which is a namespace of its own.

The namespaces are held by descriptors of this process: whatever becomes of it, they end with it, and take interfaces,
tables and rules along. A firewall of the machine has no say between them.
"""

import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import TypeVar

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket

T = TypeVar("T")
Interface = IPv4Interface | IPv6Interface

UPLINK = "eth0"
"""By which a host is joined to the switch."""
_SWITCH = "switch"
_MAC = "02:00:00:00:00:01"


def path_of(descriptor: int) -> Path:
    """By which other processes find what a descriptor of this one holds, while this one lives."""
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def inside(descriptor: int, work: Callable[[], T]) -> T:
    """Call it in a thread that is there."""
    return namespaces.run_inside(path_of(descriptor), work)


def new_namespace() -> int:
    """A descriptor of a new network namespace; this thread stays where it is."""
    with ThreadPoolExecutor(1) as own_thread:
        return own_thread.submit(namespaces.fresh).result()


class Switch:
    """Made with its first use, and gone when it is closed."""

    def __init__(self, mtu: int = 1500) -> None:
        self._mtu = mtu
        self.descriptor = new_namespace()

        def build() -> tuple[NetlinkSocket, int]:
            netlink = NetlinkSocket()
            netlink.execute(
                rtnetlink.add_bridge(_SWITCH, _MAC), rtnetlink.set_mtu(_SWITCH, mtu), rtnetlink.set_up(_SWITCH)
            )
            return netlink, socket.if_nametoindex(_SWITCH)

        self._netlink, self._master = inside(self.descriptor, build)

    def plug(self, port: str, namespace: int, name: str, addresses: Sequence[Interface]) -> None:
        """Join a namespace by an interface that is called `name` there, with these addresses."""
        self._netlink.execute(
            rtnetlink.add_veth(port, name, peer_namespace=namespace, master=self._master, mtu=self._mtu),
            rtnetlink.set_up(port),
        )

        def configure() -> None:
            with NetlinkSocket() as here:
                index = socket.if_nametoindex(name)
                given = [rtaddresses.add_address(index, address) for address in addresses]
                here.execute(rtnetlink.set_up("lo"), *given, rtnetlink.set_up(name))

        inside(namespace, configure)
        # The switch goes by what its ports take.
        self._netlink.execute(rtnetlink.settle_link(port), rtnetlink.set_mtu(_SWITCH, self._mtu))

    def close(self) -> None:
        """Safe to call twice."""
        if self.descriptor >= 0:
            self._netlink.close()
            os.close(self.descriptor)
            self.descriptor = -1
