"""A host's view of one overlay network's endpoints on other hosts, kept address by address. Pure.

Whoever keeps one says which addresses may have changed (`note`, `forget`): what came of one is made anew, and nothing
else is looked at. What stays the same stays the same object, so that to compare two looks costs little.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from husk.engine.networks.sharing import Place
from husk.network.peers import OverlayPeer

Address = IPv4Address | IPv6Address
T = TypeVar("T")


class OverlayView:
    def __init__(self, own: tuple[str, ...]) -> None:
        """`own` are this host's addresses on the network."""
        self.own = own
        self._own = {":" in address: address for address in own}
        # By address: who is where, and by which of our addresses an endpoint there answers us.
        self.peers: dict[str, OverlayPeer] = {}
        self.sources: dict[str, tuple[str, str]] = {}
        # By name and address.
        self.names: dict[str, dict[str, Address]] = {}
        self._named: dict[str, tuple[str, ...]] = {}

    def note(self, place: Place, mac: str, host: str, told: bool) -> None:
        """An address is another host's. `host` is where packets for it go, empty where that is not known; `told` says
        that its names lead there."""
        address = place.address
        source = self._own.get(":" in address) if place.kind == "endpoint" else None
        _put(self.sources, address, (address, source) if source else None)
        _put(self.peers, address, OverlayPeer(address, mac, host) if host else None)
        names = tuple(dict.fromkeys(name.lower() for name in place.names)) if told else ()
        if names != self._named.get(address, ()):
            self._unname(address)
            if names:
                self._named[address] = names
            for name in names:
                self.names.setdefault(name, {})[address] = ip_address(address)

    def forget(self, address: str) -> None:
        """It is nobody's, a service's, or this host's."""
        self.sources.pop(address, None)
        self.peers.pop(address, None)
        self._unname(address)

    def _unname(self, address: str) -> None:
        for name in self._named.pop(address, ()):
            del self.names[name][address]
            if not self.names[name]:
                del self.names[name]


def _put(found: dict[str, T], key: str, value: T | None) -> None:
    """Keep what is the same, and its place in the order."""
    if value is None:
        found.pop(key, None)
    elif found.get(key) != value:
        found[key] = value
