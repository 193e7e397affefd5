"""The connected clients: how many there may be, how long they may keep us waiting, and how they all end."""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable
from typing import Protocol

from husk.api.http.channel import Channel
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import RequestHead

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

log = logging.getLogger(__name__)

# How many of those who were turned away are told so at once; each costs a descriptor until it has read that.
_MOST_TOLD = 64
# Seconds between two complaints about a crowd.
_PATIENCE = 10.0


class Guest(Protocol):
    """A client that comes from elsewhere: its channel, or the tunnel of TLS that it speaks through."""

    @property
    def waiting(self) -> bool: ...

    def abort(self) -> None: ...


class Crowd:
    """All connections of one edge."""

    def __init__(self, limits: HttpLimits, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells the date."""
        self.limits = limits
        self._clock = clock
        # Short heads that were read before, see the parser.
        self.known_heads: dict[bytes, RequestHead] = {}
        self._channels: set[Channel] = set()
        # Who was turned away and hears it just now, the oldest first.
        self._told: dict[Channel, None] = {}
        # Who comes from elsewhere, and from where; of each place, the oldest first.
        self._guests: dict[Guest, str] = {}
        self._of_place: dict[str, dict[Guest, None]] = {}
        self._date = b""
        self._date_ends = 0.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._complained = float("-inf")
        self._left = asyncio.Event()

    def date(self) -> bytes:
        """The Date header of now; made once a second."""
        now = time.monotonic()
        if now >= self._date_ends:
            wall = self._clock()
            self._date = _date(wall)
            self._date_ends = now + 1 - wall % 1
        return self._date

    # coming and going

    def admit(self, channel: Channel) -> bool:
        """Take in one more connection; False where there is no room for it."""
        peer = channel.peer
        if len(self._channels) >= self.limits.connections:
            self.complain(peer)
            return False
        if peer is not None and not self.welcome(channel, peer):
            return False
        self._channels.add(channel)
        if self._sweeping is None:
            self._plan_sweep()
        return True

    def turned_away(self, channel: Channel) -> None:
        """One that had no room is being told. Of a flood of them not all are: the oldest goes."""
        if len(self._told) >= _MOST_TOLD:
            oldest = next(iter(self._told))
            del self._told[oldest]
            oldest.abort()
        self._told[channel] = None

    def forget(self, channel: Channel) -> None:
        """One that was turned away has gone."""
        self._told.pop(channel, None)

    def leave(self, channel: Channel) -> None:
        self._channels.discard(channel)
        self.farewell(channel)
        self._left.set()

    def welcome(self, guest: Guest, peer: str) -> bool:
        """Count one more guest from that address, until `farewell`; False if it may not come.

        Where idle ones make room the oldest goes, of the address itself, or where nobody else finds room of the one
        that most come from: who has something to ask does so at once, and nobody keeps others out by asking nothing."""
        place, limits = place_of(peer), self.limits
        there = self._of_place.get(place, {})
        full = len(there) >= limits.peer_connections
        if full or len(self._guests) >= limits.remote_connections:
            self.complain(peer)
            greedy = there if full else max(self._of_place.values(), key=len, default=there)
            fair = full or len(greedy) > len(there) + 1
            idle = next((each for each in greedy if each.waiting), None) if limits.makes_room and fair else None
            if idle is None:
                return False
            self.farewell(idle)
            idle.abort()  # it leaves in this loop's next turn, and is counted no more
        self._guests[guest] = place
        self._of_place.setdefault(place, {})[guest] = None
        return True

    def farewell(self, guest: Guest) -> None:
        """It has gone, or is about to. Safe to call twice."""
        if (place := self._guests.pop(guest, None)) is not None:
            there = self._of_place[place]
            del there[guest]
            if not there:
                del self._of_place[place]

    def settled(self) -> None:
        """One of them is not busy any more."""
        self._left.set()

    def complain(self, peer: str | None) -> None:
        """In the log, but not once for each of a crowd."""
        now = time.monotonic()
        if now - self._complained > _PATIENCE:
            self._complained = now
            log.warning("a client %swas turned away: there are too many connections", f"at {peer} " if peer else "")

    # who keeps us waiting

    def _plan_sweep(self) -> None:
        period = min(max(min(self.limits.head_time, self.limits.idle_time) / 4, 0.01), 15.0)
        self._sweeping = asyncio.get_running_loop().call_later(period, self._sweep)

    def _sweep(self) -> None:
        now = time.monotonic()
        for channel in [each for each in self._channels if each.overdue(now)]:
            channel.give_up_on()
        self._sweeping = None
        if self._channels:
            self._plan_sweep()

    # the end

    def finish(self) -> None:
        """Idle connections end now, the others behind the answer that is under way."""
        for channel in list(self._channels):
            channel.finish()

    async def quiet(self) -> None:
        """Wait until nobody is served any more."""
        while any(channel.busy for channel in self._channels):
            self._left.clear()
            await self._left.wait()

    async def close(self) -> None:
        """End them all, whatever they do."""
        for channel in list(self._channels):
            channel.close()
        for _ in range(50):  # what is written goes out in the next turns of the loop
            if not self._channels:
                break
            await asyncio.sleep(0)
        for channel in list(self._channels):
            channel.abort()
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def __len__(self) -> int:
        return len(self._channels)


def _date(wall: float) -> bytes:
    """In the words of HTTP, which are English wherever the host is. The standard library has it in `email`, which takes
    as long to load as a hundred answers."""
    now = time.gmtime(wall)
    day, month = _DAYS[now.tm_wday], _MONTHS[now.tm_mon - 1]
    return f"Date: {day}, {time.strftime(f'%d {month} %Y %H:%M:%S', now)} GMT\r\n".encode()


def place_of(address: str) -> str:
    """Return the place that an address counts as: for IPv6 its network of 64 bits, all of which its owner may use."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
