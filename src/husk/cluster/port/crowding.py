"""How many are too many: connections of strangers, of one address, of one node; wrong tokens. Pure: clocks are given.

The port is open to everybody, so what a stranger can take is small and soon given back; nodes have their own share,
which strangers cannot take away.
"""

import ipaddress
from collections import Counter, OrderedDict

MOST_STRANGERS = 64
MOST_OF_ADDRESS = 16
MOST_OF_NODE = 8
MOST_NODES = 4096

# So many wrong tokens of an address at once, then one in so many seconds.
BURST = 5
PAUSE = 10.0
# Addresses that are remembered; the oldest is forgotten first.
_MOST_REMEMBERED = 4096


class Crowd:
    """Connections that are open."""

    def __init__(self) -> None:
        self.strangers = 0
        self._addresses: Counter[str] = Counter()
        self._nodes: Counter[str] = Counter()

    def welcome(self, address: str) -> bool:
        """One more of somebody whom we do not know yet: is there room?"""
        place = place_of(address)
        if self.strangers >= MOST_STRANGERS or self._addresses[place] >= MOST_OF_ADDRESS:
            return False
        self.strangers += 1
        self._addresses[place] += 1
        return True

    def farewell(self, address: str) -> None:
        place = place_of(address)
        self.strangers -= 1
        self._addresses[place] -= 1
        if not self._addresses[place]:
            del self._addresses[place]

    def admit(self, address: str, node: str) -> bool:
        """A stranger has turned out to be a node: is there room? It is a stranger no more, or has to go."""
        if self._nodes[node] >= MOST_OF_NODE or self._nodes.total() >= MOST_NODES:
            return False
        self.farewell(address)
        self._nodes[node] += 1
        return True

    def part(self, node: str) -> None:
        self._nodes[node] -= 1
        if not self._nodes[node]:
            del self._nodes[node]

    @property
    def nodes(self) -> int:
        """Connections of nodes."""
        return self._nodes.total()


class Attempts:
    """Wrong tokens, by the address that they came from."""

    def __init__(self) -> None:
        # Until when what an address did wrong is remembered: each wrong one adds a pause.
        self._until: OrderedDict[str, float] = OrderedDict()

    def allowed(self, address: str, now: float) -> bool:
        """May it try (once more)?"""
        return self._until.get(place_of(address), now) - now <= (BURST - 1) * PAUSE

    def failed(self, address: str, now: float) -> None:
        place = place_of(address)
        self._until[place] = max(self._until.get(place, now), now) + PAUSE
        self._until.move_to_end(place)
        if len(self._until) > _MOST_REMEMBERED:
            self._until.popitem(last=False)


def place_of(address: str) -> str:
    """One that its owner cannot change at will: an IPv6 address counts by its network of 64 bits."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
