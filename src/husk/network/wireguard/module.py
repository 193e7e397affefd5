"""WireGuard by the kernel's own module: the device is an interface, and netlink tells it what to know."""

import errno

from husk.kernel import rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.network.wireguard import messages
from husk.network.wireguard.parties import DeviceChange, DeviceState

_LACKING = (errno.EOPNOTSUPP, errno.ENODEV, errno.ENOENT)


class Module:
    """`Device` of one interface."""

    pidfd = -1

    def __init__(self, interface: str) -> None:
        self._interface = interface

    def start(self) -> bool:
        """Make the interface, or take the one that is there; False where the kernel has no WireGuard."""
        with NetlinkSocket() as netlink:
            (error,) = netlink.attempt([rtnetlink.add_wireguard(self._interface)])
        if error is not None and error.errno != errno.EEXIST:
            if error.errno in _LACKING:
                return False
            raise error
        return True

    def read(self) -> DeviceState:
        with NetlinkSocket(messages.PROTOCOL) as netlink:
            return messages.parse(netlink.dump(messages.get(_family(netlink), self._interface)))

    def write(self, change: DeviceChange) -> None:
        with NetlinkSocket(messages.PROTOCOL) as netlink:
            netlink.execute(*messages.change(_family(netlink), self._interface, change))

    def let_go(self) -> None:
        """The kernel goes on by itself."""

    def end(self) -> None:
        """There is nothing but the interface."""


def _family(netlink: NetlinkSocket) -> int:
    if not (found := messages.family_of(netlink.dump(messages.list_families()))):
        raise OSError(errno.EOPNOTSUPP, "the kernel has no WireGuard any more")
    return found
