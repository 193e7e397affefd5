"""Sign-in: one-time links, the sessions that they begin, and a limit on guesses.

    link made ──opened once, within minutes──> session ──unused, too old, signed out──> gone

A session is known by three things together: the secret in its cookie, the place of its pages, and the address of the
browser. The place is a word that nobody can guess, the first of the path of every page: browsers send a cookie to all
ports of a host, and so to whatever a container serves there, but only for paths below the cookie's own. The address
makes a cookie worth nothing to a container that has got hold of it all the same.

Secrets of cookies and links are kept as digests only: a dump of this process's memory has none that can be used.
"""

import hashlib
import ipaddress
import logging
import re
import secrets
import time
from collections import deque
from collections.abc import Callable

import msgspec

log = logging.getLogger(__name__)

# Seconds.
LINK_LIFE = 600.0
SESSION_IDLE = 3600.0
SESSION_LIFE = 12 * 3600.0
_GUESS_TIME = 60.0
# Guesses that one address, and all together, may have wrong within that time.
_MOST_GUESSES = 10
_MOST_GUESSES_OF_ALL = 60
_MOST_LINKS = 16
_MOST_SESSIONS = 64
# Streams and sockets that one session may have open: a browser itself opens six to one server.
MOST_STREAMS = 32
_MOST_NOTICES = 8
_PLACE = re.compile(r"/(~[A-Za-z0-9_-]{43})(?=/|$)")


class Notice(msgspec.Struct, frozen=True):
    """One line for the top of the next page."""

    text: str
    bad: bool = False


class BrowserSession(msgspec.Struct, kw_only=True):
    """One browser that has signed in."""

    digest: bytes
    # The first word of the paths of its pages, and the address that it was begun from.
    place: str
    peer: str
    # Every form that changes something has it: a page of another site cannot know it.
    csrf: str
    begun: float
    used: float
    streams: int = 0
    notices: list[Notice] = []
    # What the person chose to see: the order and the filter of a list by its path, and the colours of all pages.
    choices: dict[str, str] = {}
    strayed: bool = False

    @property
    def root(self) -> str:
        """The beginning of every path of the session's pages."""
        return f"/{self.place}" if self.place else ""

    def notify(self, text: str, bad: bool = False) -> None:
        """Tell something on the next page."""
        self.notices = [*self.notices, Notice(text, bad)][-_MOST_NOTICES:]

    def take_notices(self) -> list[Notice]:
        told, self.notices = self.notices, []
        return told

    def proves(self, token: str) -> bool:
        """Tell if `token`, which a request has, is that of this session's forms."""
        return secrets.compare_digest(token.encode(errors="replace"), self.csrf.encode())


def placed(path: str) -> tuple[str, str]:
    """(place, path below it) of the path of a request; the place is empty where there is none."""
    found = _PLACE.match(path)
    return (found[1], path[found.end() :]) if found else ("", path)


class TooManyGuesses(Exception):
    """Somebody tries links. The right one still opens."""


class BrowserSessions:
    """Links and sessions of one dashboard."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._links: dict[bytes, float] = {}
        self._sessions: dict[bytes, BrowserSession] = {}
        self._guesses: dict[str, deque[float]] = {}

    def make_link(self) -> str:
        """The token of a new one-time link."""
        while len(self._links) >= _MOST_LINKS:
            del self._links[next(iter(self._links))]
        token = secrets.token_urlsafe(32)
        self._links[_digest(token)] = self._now()
        return token

    def sign_in(self, token: str, peer: str = "") -> tuple[str, BrowserSession] | None:
        """The secret of a new session's cookie, and the session; None for a link that is used, too old or no link.

        TooManyGuesses where such were tried too often. Nobody's guesses lock anybody out who has a good link: that
        cannot be guessed.
        """
        now = self._now()
        made = self._links.pop(_digest(token), None)
        if made is None or now - made > LINK_LIFE:
            self._count_guess(peer, now)
            return None
        self._make_room(now)
        secret = secrets.token_urlsafe(32)
        session = BrowserSession(
            digest=_digest(secret),
            place=f"~{secrets.token_urlsafe(32)}",
            peer=_known(peer),
            csrf=secrets.token_urlsafe(32),
            begun=now,
            used=now,
        )
        self._sessions[session.digest] = session
        return secret, session

    def find(self, secret: str, place: str, peer: str = "") -> BrowserSession | None:
        """The session of a cookie, which is used by that; None unless it came to its own place from its own peer."""
        session = self._sessions.get(_digest(secret)) if secret else None
        if session is None or not self.alive(session) or not secrets.compare_digest(session.place, place):
            return None
        if session.peer != _known(peer):
            if not session.strayed:
                log.warning("a session of the dashboard that %s began was used from %s: refused", session.peer, peer)
            session.strayed = True
            return None
        session.used = self._now()
        return session

    def alive(self, session: BrowserSession) -> bool:
        """Tell if a session still lasts; forget one that does not. A session with an open stream is in use."""
        now = self._now()
        if session.streams:
            session.used = now
        ended = now - session.begun > SESSION_LIFE or now - session.used > SESSION_IDLE
        if ended:
            self._sessions.pop(session.digest, None)
        return not ended and session.digest in self._sessions

    def sign_out(self, session: BrowserSession) -> None:
        self._sessions.pop(session.digest, None)

    def _make_room(self, now: float) -> None:
        for session in list(self._sessions.values()):
            self.alive(session)
        while len(self._sessions) >= _MOST_SESSIONS:
            oldest = min(self._sessions.values(), key=lambda session: session.used)
            del self._sessions[oldest.digest]

    def _count_guess(self, peer: str, now: float) -> None:
        for each in list(self._guesses):
            guesses = self._guesses[each]
            while guesses and now - guesses[0] > _GUESS_TIME:
                guesses.popleft()
            if not guesses:
                del self._guesses[each]
        of_peer = len(self._guesses.get(peer, ()))
        if of_peer >= _MOST_GUESSES or sum(map(len, self._guesses.values())) >= _MOST_GUESSES_OF_ALL:
            raise TooManyGuesses
        self._guesses.setdefault(peer, deque()).append(now)


def _known(peer: str) -> str:
    """An address as it is compared: all of the loopback is one host, and IPv4 stays IPv4 inside of IPv6."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return "loopback" if address.is_loopback else str(address)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
