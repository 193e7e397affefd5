"""Limits for connections of strangers, of one address, of one node, and for wrong tokens. Pure: clocks are given.

The port is open to everybody, so what a stranger can take is small and soon given back; nodes have their own share,
which strangers cannot take away. Whoever comes from an address of a node has places of its own, too, and waits for its
turn: when hundreds of nodes come back at once nobody has to go for another.
"""

import ipaddress
from collections import Counter, OrderedDict
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

MOST_STRANGERS = 64
MOST_OF_ADDRESS = 16
MOST_OF_NODE = 8
MOST_NODES = 4096
# Of those who come from addresses of nodes: how many say who they are at once, in all and of one address.
MOST_TURNS = 64
MOST_TURNS_OF_ADDRESS = 2

# So many wrong tokens of an address at once, then one in so many seconds.
BURST = 5
PAUSE = 10.0
# Addresses that are remembered; the oldest is forgotten first.
_MOST_REMEMBERED = 4096


class UnknownVisit:
    """A connection of somebody whom we do not know yet."""

    __slots__ = ("place", "room", "waits")

    def __init__(self, place: str, room: "_Room", waits: bool) -> None:
        self.place = place
        self.room = room
        # Has it to wait for its turn?
        self.waits = waits


class _Room:
    """Those who are here, the oldest first."""

    def __init__(self, most: int, *, in_turn: bool) -> None:
        self.visits: dict[UnknownVisit, None] = {}
        self._most = most
        self._in_turn = in_turn

    def enter(self, place: str) -> tuple[UnknownVisit, UnknownVisit | None]:
        leaving = self._too_many(place)
        if leaving is not None:
            del self.visits[leaving]
        visit = UnknownVisit(place, self, self._in_turn)
        self.visits[visit] = None
        return visit, leaving

    def turns(self) -> list[UnknownVisit]:
        """Those whose turn it is now: who has waited for the longest, and few of one address."""
        begun = Counter(visit.place for visit in self.visits if not visit.waits)
        total, found = begun.total(), []
        for visit in self.visits:
            if total >= MOST_TURNS:
                break
            if visit.waits and begun[visit.place] < MOST_TURNS_OF_ADDRESS:
                visit.waits = False
                begun[visit.place] += 1
                total += 1
                found.append(visit)
        return found

    def _too_many(self, place: str) -> UnknownVisit | None:
        """Return the visit that has to go for one more: the oldest of its own address, or of the one that most come
        from; None if there is room."""
        counts = Counter(visit.place for visit in self.visits)
        if counts[place] < MOST_OF_ADDRESS:
            if len(self.visits) < self._most:
                return None
            place = max(counts, key=lambda each: counts[each])
        return next(visit for visit in self.visits if visit.place == place)


class ConnectionCrowd:
    """Connections that are open."""

    def __init__(self) -> None:
        self._anybody = _Room(MOST_STRANGERS, in_turn=False)
        # Of addresses of nodes, or at which nodes were heard: nodes come back from there.
        self._expected = _Room(MOST_NODES, in_turn=True)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._nodes: Counter[str] = Counter()

    @property
    def strangers(self) -> int:
        return len(self._anybody.visits) + len(self._expected.visits)

    def welcome(self, address: str, *, home: bool = False) -> tuple[UnknownVisit, UnknownVisit | None]:
        """One more of somebody whom we do not know yet, at the `home` of a node or not; and who has to go for it, where
        there are too many. Those who say who they are do so at once: who has been silent for the longest is the least
        of a loss."""
        place = place_of(address)
        return (self._expected if home or place in self._known else self._anybody).enter(place)

    def turns(self) -> list[UnknownVisit]:
        """Those that waited, and may say now who they are. To be asked whenever somebody has come or gone."""
        return self._expected.turns()

    def unmask(self, visit: UnknownVisit) -> tuple[UnknownVisit, UnknownVisit | None]:
        """One that has no certificate is a stranger, wherever it comes from: another visit of it, and who has to go."""
        if visit.room is self._anybody:
            return visit, None
        self.farewell(visit)
        return self._anybody.enter(visit.place)

    def farewell(self, visit: UnknownVisit) -> None:
        """Safe to call twice, and for one that had to go."""
        visit.room.visits.pop(visit, None)

    def admit(self, visit: UnknownVisit, node: str) -> bool:
        """Count a stranger as the node that it has turned out to be; False if there is no room, and it has to go."""
        if self._nodes[node] >= MOST_OF_NODE or self._nodes.total() >= MOST_NODES:
            return False
        self.farewell(visit)
        self._nodes[node] += 1
        _remember(self._known, visit.place, None)
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
        """Return True if somebody at this address may try (once more)."""
        return self._until.get(place_of(address), now) - now <= (BURST - 1) * PAUSE

    def failed(self, address: str, now: float) -> None:
        place = place_of(address)
        _remember(self._until, place, max(self._until.get(place, now), now) + PAUSE)


class Pauses:
    """Something that each of many may do once in a while, by who they are."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: OrderedDict[str, float] = OrderedDict()

    def allowed(self, who: str, now: float) -> bool:
        """Return True if the act is allowed now. It is taken as done then."""
        if now - self._last.get(who, now - self._seconds) < self._seconds:
            return False
        _remember(self._last, who, now)
        return True

    def take_back(self, who: str, when: float) -> None:
        """Forget an act that was allowed then and has not been done. An act allowed later stays."""
        if self._last.get(who) == when:
            del self._last[who]


def _remember(table: "OrderedDict[str, T]", key: str, value: T) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > _MOST_REMEMBERED:
        table.popitem(last=False)


@lru_cache(maxsize=_MOST_REMEMBERED)
def place_of(address: str) -> str:
    """One that its owner cannot change at will: an IPv6 address counts by its network of 64 bits."""
    found = peer_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return address if found is None else str(found)


def peer_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Of a connection, as the kernel tells it: without its scope, and IPv4 as such. None for what is none."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
