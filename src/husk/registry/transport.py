"""The HTTP exchanges with registries and other servers, and the words in which one fails.

Each connection takes the way that `husk.registry.routes` finds for it, each hop of a redirect too. An insecure registry
is asked once whether it speaks HTTPS (with any certificate) or HTTP, and the answer is remembered until it fails.

aiohttp is loaded with the first exchange, in a thread: that takes longer than all else of a daemon's start together,
and reads the host's certificates.
"""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from husk.aio.once import load
from husk.config import NO_PROXIES, Proxies
from husk.errors import SystemFault
from husk.registry.certificates import DIRECTORIES, context_for
from husk.registry.headers import resolve_location
from husk.registry.routes import (
    ConnectionWay,
    authority,
    base_of,
    find_way,
    netloc_of,
    parse_insecure,
    proxy_for,
    resolve,
    same_origin,
    unverified_context,
)
from husk.text.urls import split_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

    # A door: aiohttp, which takes as long to load as a daemon takes to start.
    from yarl import URL

_CONNECT_SECONDS = 15
_STALLED_SECONDS = 60
# A server may say something all the time that is no answer.
_DOCUMENT_SECONDS = 600
_PROBE_SECONDS = 15
_BUFFER = 512 * 1024
_MOST_REDIRECTS = 10
_LONGEST_QUOTE = 200
_REDIRECTS = (301, 302, 303, 307, 308)
# Chunks of HTTP of a few bytes each cost thousand times what they bring: so many may, and have to bring so much then.
_SMALL_CHUNKS = 4096
_LEAST_OF_THEM = 16 * _SMALL_CHUNKS
# What is said to one server only.
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization", "x-docker-token")
_OF_A_BODY = ("content-length", "content-type", "content-range")

Body = bytes | AsyncIterable[bytes]
MakeBody = Callable[[], Body]
"""Gives the request's body, anew for each time that it is sent."""


class Unreachable(SystemFault):
    """No answer could be had: the connection was not made, or broke before the answer's headers were complete."""

    why = ""  # without the method and the address


class Interrupted(SystemFault):
    """The connection broke in the middle of an answer."""


class _Came(Enum):
    """By what an exchange got to its URL."""

    NOWHERE = "the caller named it"
    OPEN = "an open connection led there"
    VERIFIED = "a verified connection led there"


class TransportLimits(NamedTuple):
    """Limits of speaking with registries: hosts that are remembered, and seconds until the head of an answer."""

    remembered: int = 1000
    headers_seconds: float = 120


LIMITS = TransportLimits()


class Transport:
    """The HTTP sessions to all registries."""

    def __init__(
        self,
        user_agent: str,
        insecure: Sequence[str] = (),
        certificates: Sequence[Path] = DIRECTORIES,
        proxies: Proxies = NO_PROXIES,
        mirrors: Sequence[str] = (),
        limits: TransportLimits = LIMITS,
    ) -> None:
        self._limits = limits
        self._user_agent = user_agent
        self._proxies = proxies
        self._certificates = tuple(certificates)
        self._contexts: dict[tuple[str, bool], ssl.SSLContext | None] = {}
        self._session: ClientSession | None = None
        self._unverified: ssl.SSLContext | None = None
        self._bases: dict[str, str] = {}
        self._verified: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self.configure(insecure, mirrors)

    def configure(self, insecure: Sequence[str], mirrors: Sequence[str] = ()) -> None:
        """Set who may be insecure besides loopback; what was found out under the former setting is forgotten."""
        self._rules = parse_insecure(insecure)
        # The administrator wrote `http://` himself.
        self._plain = frozenset(base_of(url) for url in mirrors if url.lower().startswith("http://"))
        self._bases.clear()
        self._verified.clear()
        self._contexts.clear()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def locate(self, host: str) -> str:
        """The base URL of the registry at `host`, such as `https://registry.example:5000`."""
        async with self._locks.setdefault(host, asyncio.Lock()):
            if host not in self._bases:
                if len(self._bases) >= self._limits.remembered:
                    self._bases.clear()
                    # Whoever holds one, or waits for it, keeps it.
                    self._locks = {one: lock for one, lock in self._locks.items() if lock.locked()}
                self._bases[host] = await self._probe(host) if await self.is_insecure(host) else f"https://{host}"
            return self._bases[host]

    def forget(self, host: str) -> None:
        """Look anew next time how `host` is reached: it just was not."""
        self._bases.pop(host, None)
        self._verified.discard(host.lower())
        for open in (False, True):
            self._contexts.pop((host, open), None)

    async def _probe(self, host: str) -> str:
        try:
            async with asyncio.timeout(_PROBE_SECONDS), self.send("GET", f"https://{host}/v2/"):
                return f"https://{host}"
        except (Unreachable, TimeoutError):
            async with self.send("GET", f"http://{host}/v2/"):
                return f"http://{host}"

    async def is_insecure(self, host: str) -> bool:
        """Tell if `host` may be spoken to without a verified certificate right now, by either scheme."""
        return (await self._way(f"https://{host}/")).open and (await self._way(f"http://{host}/")).open

    async def _way(self, url: str) -> ConnectionWay:
        host = authority(url)
        if host in self._verified and url.startswith("https:"):
            return ConnectionWay(False, proxy_for(url, self._proxies))
        way = await find_way(url, self._rules, self._proxies, resolve)
        if not way.open and url.startswith("https:"):
            # What is open is looked at each time; what is verified needs that no more.
            if len(self._verified) >= self._limits.remembered:
                self._verified.clear()
            self._verified.add(host)
        return way

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        body: MakeBody | None = None,
        *,
        since: str = "",
        registry: bool = True,
    ) -> AsyncIterator["ClientResponse"]:
        """One exchange; redirects are followed, no status is an error.

        Each hop takes the way to its own host, and what a verified connection leads to is verified too. Credentials
        go to the origin of `url` alone. `since` is the base whose answer named `url`, if one did; without `registry`
        the URL is of a file somewhere in the web, wanted by its own scheme and never insecurely.
        """
        came, sent, first = await self._came(since, url), dict(headers or {}), f'{method.capitalize()} "{url}"'
        for _ in range(_MOST_REDIRECTS + 1):
            async with AsyncExitStack() as stack:
                way = await self._admitted(first, url, came, registry)
                response = await stack.enter_async_context(self._answer(way, method, url, sent, form, body))
                target = _target_of(response, url, streams=body is not None)
                if not target:
                    yield response
                    return
                status = response.status
            if came is not _Came.VERIFIED:
                came = _Came.VERIFIED if url.startswith("https:") and not way.open else _Came.OPEN
            if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
                method, form, body = "GET", None, None
                sent = {name: value for name, value in sent.items() if name.lower() not in _OF_A_BODY}
            if not same_origin(url, target):
                sent = {name: value for name, value in sent.items() if name.lower() not in _SECRET_HEADERS}
                if form is not None:
                    raise SystemFault(f"{first}: refused to follow a redirect with credentials to {base_of(target)}")
            url = target
        raise SystemFault(f"{first}: stopped after {_MOST_REDIRECTS} redirects")

    async def _came(self, since: str, url: str) -> _Came:
        if not since or same_origin(since, url):
            return _Came.NOWHERE
        verified = since.startswith("https:") and not (await self._way(since)).open
        return _Came.VERIFIED if verified else _Came.OPEN

    async def _admitted(self, asked: str, url: str, came: _Came, registry: bool) -> ConnectionWay:
        """The way to `url`, unless it is one that may not be taken; `asked` is what the caller asked for."""
        scheme = split_url(url).scheme
        if scheme not in ("http", "https"):
            raise SystemFault(f'{asked}: unsupported protocol scheme "{scheme}"')
        if came is _Came.VERIFIED or not registry:
            if scheme == "http" and came is _Came.VERIFIED:
                raise SystemFault(f"{asked}: refused to follow a redirect from HTTPS to HTTP")
            return ConnectionWay(False, proxy_for(url, self._proxies))
        way = await self._way(url)
        if scheme == "http" and came is _Came.NOWHERE and not way.open and base_of(url) not in self._plain:
            raise Unreachable(f"{asked}: refused to speak plain HTTP: {authority(url)} is not an insecure registry")
        return way

    @asynccontextmanager
    async def _answer(
        self,
        way: ConnectionWay,
        method: str,
        url: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        body: MakeBody | None,
    ) -> AsyncIterator["ClientResponse"]:
        async with self._sessions(way) as session:
            try:
                tls = await self._tls(url, way)
                # What is sent takes its time.
                async with asyncio.timeout(self._limits.headers_seconds if body is None else None):
                    response = await session.request(
                        method,
                        _exact(url),
                        headers=headers,
                        data=form if body is None else body(),
                        proxy=way.proxy,
                        ssl=tls,
                        allow_redirects=False,
                    )
            except broken_connection(ValueError) as error:
                why = describe(error, url)
                unreachable = Unreachable(f'{method.capitalize()} "{base_of(url)}/v2/": {why}')
                unreachable.why = why
                raise unreachable from error
            async with response:
                yield response

    @asynccontextmanager
    async def _sessions(self, way: ConnectionWay) -> AsyncIterator["ClientSession"]:
        """The session for all, or for an open way one of its own that connects to the addresses of this way only."""
        if self._session is None:
            await load("aiohttp")
            if self._session is None:
                self._session = self._new_session()
        if not way.addresses:
            yield self._session
            return
        async with self._new_session(resolver=Pinned(way), use_dns_cache=False, force_close=True) as session:
            yield session

    def _new_session(self, **connecting: Any) -> "ClientSession":
        aiohttp = library()
        session: ClientSession = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, **connecting),
            # Blobs are hashed as they are stored in the registry: nothing may decompress them on the way.
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_STALLED_SECONDS),
            read_bufsize=_BUFFER,
        )
        return session

    async def _tls(self, url: str, way: ConnectionWay) -> ssl.SSLContext | bool:
        """The settings of the administrator's `certs.d` if there are any for this host, else the usual ones."""
        if not url.startswith("https:"):
            return True
        host, key = netloc_of(url), (netloc_of(url), way.open)
        if key not in self._contexts:
            if len(self._contexts) >= self._limits.remembered:
                self._contexts.clear()
            found = await asyncio.to_thread(context_for, host, self._certificates, lenient=way.open)
            self._contexts[key] = found
        return self._contexts.get(key) or (self._lenient_context() if way.open else True)

    def _lenient_context(self) -> ssl.SSLContext:
        if self._unverified is None:
            self._unverified = unverified_context()
        return self._unverified


class Pinned:
    """A resolver for aiohttp that knows one way, and asks nobody."""

    def __init__(self, way: ConnectionWay) -> None:
        self._way = way

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[dict[str, object]]:
        return [
            {
                "hostname": host,
                "host": str(address),
                "port": port,
                "family": socket.AF_INET if address.version == 4 else socket.AF_INET6,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            }
            for address in self._way.addresses
        ]

    async def close(self) -> None:
        """Close nothing: nothing is open."""


def _exact(url: str) -> "URL":
    """The URL, in which neither names nor signed queries are encoded a second time.

    The way was found for the host that urllib reads in it; the connection goes to the one that yarl reads.
    """
    # A door: aiohttp, which takes as long to load as a daemon takes to start.
    from yarl import URL

    exact = URL(url, encoded=True)
    if (exact.raw_host or "").lower() != (split_url(url).hostname or ""):
        raise ValueError(f"ambiguous host in {url!r}")
    return exact


def _target_of(response: "ClientResponse", url: str, *, streams: bool) -> str:
    """Return the URL that a redirect leads to; "" if the answer is none, or is none for what has a body to send."""
    location = response.headers.get("Location", "")
    if not location or response.status not in ((307, 308) if streams else _REDIRECTS):
        return ""
    return resolve_location(url, location)


async def pieces_of(response: "ClientResponse") -> AsyncIterator[bytes]:
    """The answer's body, as it comes."""
    chunks = size = 0
    if response.content.at_eof():
        return  # aiohttp (3.14) has one body for all answers without any, which gives empty chunks without end
    # Each piece as it came: to join them would cost more than to receive them.
    async for piece, ends_chunk in response.content.iter_chunks():
        size += len(piece)
        if ends_chunk and (chunks := chunks + 1) == _SMALL_CHUNKS:
            if size < _LEAST_OF_THEM:
                raise SystemFault(f'Get "{response.url}": the answer comes in chunks of a few bytes')
            chunks = size = 0
        if piece:
            yield piece


async def read_limited(
    response: "ClientResponse", limit: int, cut: bool = False, patience: float = _DOCUMENT_SECONDS
) -> bytes:
    """The answer's body; of one with more than `limit` bytes the beginning if `cut`, else an error."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience):
            async for part in pieces_of(response):
                size += len(part)
                parts.append(part)
                if size > limit and not cut:
                    raise SystemFault(f'Get "{response.url}": the answer is larger than {limit} bytes')
                if size > limit:
                    break
    except broken_connection() as error:
        raise Interrupted(f'Get "{response.url}": {describe(error, str(response.url))}') from error
    return b"".join(parts)[:limit]


def library() -> ModuleType:
    """Return aiohttp, which `load` has loaded in a thread where there is an exchange."""
    # A door: aiohttp, which takes as long to load as a daemon takes to start.
    import aiohttp

    return aiohttp


def broken_connection(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions that a broken connection raises, and `more`."""
    aiohttp = library()
    return aiohttp.ClientError, OSError, *more


def is_unknown_name(error: BaseException | None) -> bool:
    """Tell if an exchange failed because nobody knows the host's name."""
    aiohttp = library()
    return isinstance(error, aiohttp.ClientConnectorDNSError)


def describe(error: BaseException, url: str) -> str:
    """Tell why a request failed, in the words of Go's network library, which docker users and their scripts know."""
    aiohttp = library()
    parts = split_url(url)
    address = parts.netloc
    if not re.search(r":\d+$", address):
        address += ":443" if parts.scheme == "https" else ":80"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        unknown = error.os_error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME), None)
        return f"dial tcp: lookup {parts.hostname}: {'no such host' if unknown else 'server misbehaving'}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: x509: {_certificate_problem(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientSSLError):
        if re.search(r"WRONG_VERSION_NUMBER|RECORD_LAYER|HTTP_REQUEST", str(error)):
            return "http: server gave HTTP response to HTTPS client"
        return f"tls: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"dial tcp {address}: i/o timeout"
        return "net/http: timeout awaiting response headers"
    if isinstance(error, aiohttp.ClientConnectorError):
        # asyncio puts the address that it tried into the text of its exception, uvloop does not.
        tried = re.search(r"\('([^']+)', (\d+)", str(error.os_error))
        where = address
        if tried:
            where = f"[{tried[1]}]:{tried[2]}" if ":" in tried[1] else f"{tried[1]}:{tried[2]}"
        return f"dial tcp {where}: connect: {_os_words(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"malformed HTTP response: {error.message.partition(chr(10))[0][:_LONGEST_QUOTE].rstrip(':')}"
    if isinstance(error, OSError):
        return _os_words(error)
    return str(error) or type(error).__name__


def _os_words(error: OSError) -> str:
    known = {
        errno.ECONNREFUSED: "connection refused",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
        errno.ECONNRESET: "connection reset by peer",
        errno.ETIMEDOUT: "connection timed out",
    }
    return known.get(error.errno or 0) or error.strerror or str(error)


def _certificate_problem(error: Exception) -> str:
    reason = str(getattr(error, "verify_message", "")) or str(error)
    if "mismatch" in reason.lower() or "not valid for" in reason:
        return f"certificate is not valid for this name: {reason}"
    if "expired" in reason or "not yet valid" in reason:
        return "certificate has expired or is not yet valid"
    if "self" in reason or "local issuer" in reason:
        return "certificate signed by unknown authority"
    return reason
