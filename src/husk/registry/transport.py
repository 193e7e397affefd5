"""By which URL, proxy and TLS settings is a registry reached, and in which words does it fail to be?

HTTPS, verified, always; except for loopback addresses and the registries the administrator called insecure. Those are
asked once whether they speak HTTPS (with any certificate) or HTTP, and the answer is remembered until it fails.

aiohttp is loaded with the first exchange, in a thread: that takes longer than all else of a daemon's start together,
and reads the host's certificates.
"""

import asyncio
import errno
import ipaddress
import re
import socket
import ssl
import urllib.parse
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from husk.config import NO_PROXIES, Proxies
from husk.errors import SystemFault
from husk.registry.certificates import DIRECTORIES, context_for

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_LOOPBACK = ("127.0.0.0/8", "::1/128")
_CONNECT_SECONDS = 15
_STALLED_SECONDS = 60
_PROBE_SECONDS = 15
_BUFFER = 512 * 1024

Body = bytes | AsyncIterable[bytes]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Unreachable(SystemFault):
    """No answer could be had: the connection was not made, or broke before the answer's headers were complete."""


class Interrupted(SystemFault):
    """The connection broke in the middle of an answer."""


class Transport:
    """The HTTP session to all registries."""

    def __init__(
        self,
        user_agent: str,
        insecure: Sequence[str] = (),
        certificates: Sequence[Path] = DIRECTORIES,
        proxies: Proxies = NO_PROXIES,
    ) -> None:
        self._user_agent = user_agent
        self._proxies = proxies
        self._certificates = tuple(certificates)
        self._contexts: dict[str, ssl.SSLContext | None] = {}
        self._session: ClientSession | None = None
        self._unverified: ssl.SSLContext | None = None
        self._bases: dict[str, str] = {}
        self._lenient: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self.configure(insecure)

    def configure(self, insecure: Sequence[str]) -> None:
        """Set who may be insecure besides loopback; what was found out under the former setting is forgotten."""
        self._names, self._networks = parse_insecure(insecure)
        self._bases.clear()
        self._lenient.clear()
        self._contexts.clear()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def locate(self, host: str) -> str:
        """The base URL of the registry at `host`, such as `https://registry.example:5000`."""
        async with self._locks.setdefault(host, asyncio.Lock()):
            if host not in self._bases:
                self._bases[host] = await self._probe(host) if await self.is_insecure(host) else f"https://{host}"
            return self._bases[host]

    def forget(self, host: str) -> None:
        """Look anew next time how `host` is reached: it just was not."""
        self._bases.pop(host, None)
        self._contexts.pop(f"https://{host}", None)

    async def _probe(self, host: str) -> str:
        self._lenient.add(f"https://{host}")
        try:
            async with asyncio.timeout(_PROBE_SECONDS), self.send("GET", f"https://{host}/v2/"):
                return f"https://{host}"
        except (Unreachable, TimeoutError):
            async with self.send("GET", f"http://{host}/v2/"):
                return f"http://{host}"

    async def is_insecure(self, host: str) -> bool:
        """Whether `host` may be spoken to without a verified certificate."""
        if host in self._names:
            return True
        name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            addresses = [ipaddress.ip_address(name)]
        except ValueError:
            addresses = await _resolve(name)
        return any(address in network for address in addresses for network in self._networks)

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        body: Body | None = None,
        follow: bool = True,
    ) -> AsyncIterator["ClientResponse"]:
        """One exchange; redirects are followed (without credentials to another host), no status is an error.

        A body that streams can be sent once only: whoever sends one follows by himself, with `may_follow`.
        """
        base = _base_of(url)
        session = await self._sessions()
        from yarl import URL

        try:
            response = await session.request(
                method,
                # Built here once and exactly: neither names nor signed queries may be encoded a second time.
                URL(url, encoded=True),
                headers=headers,
                data=form if body is None else body,
                proxy=proxy_for(url, self._proxies),
                ssl=await self._tls(base),
                allow_redirects=follow,
            )
        except broken_connection(ValueError) as error:
            raise Unreachable(f'{method.capitalize()} "{base}/v2/": {describe(error, url)}') from error
        async with response:
            self.may_follow(method, url, str(response.url))
            yield response

    def may_follow(self, method: str, url: str, target: str) -> None:
        """Raise if a redirect leads from a verified connection to an open one."""
        base = _base_of(url)
        if base.startswith("https:") and not target.startswith("https:") and base not in self._lenient:
            raise SystemFault(f'{method.capitalize()} "{url}": refused to follow a redirect from HTTPS to HTTP')

    async def _sessions(self) -> "ClientSession":
        if self._session is None:
            await asyncio.to_thread(import_module, "aiohttp")
            import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                # Blobs are hashed as they are stored in the registry: nothing may decompress them on the way.
                headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_STALLED_SECONDS),
                read_bufsize=_BUFFER,
                requote_redirect_url=False,  # object stores sign the exact text of the URL
            )
        return self._session

    async def _tls(self, base: str) -> ssl.SSLContext | bool:
        """The settings of the administrator's `certs.d` if there are any for this host, else the usual ones."""
        if not base.startswith("https:"):
            return True
        if base not in self._contexts:
            host = base.removeprefix("https://")
            self._contexts[base] = await asyncio.to_thread(
                context_for, host, self._certificates, lenient=base in self._lenient
            )
        return self._contexts[base] or (self._lenient_context() if base in self._lenient else True)

    def _lenient_context(self) -> ssl.SSLContext:
        if self._unverified is None:
            # Not create_default_context: it reads all of the host's certificates (20 ms) that nobody asks here.
            self._unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._unverified.check_hostname = False
            self._unverified.verify_mode = ssl.CERT_NONE
        return self._unverified


async def read_limited(response: "ClientResponse", limit: int, cut: bool = False) -> bytes:
    """The answer's body; of one with more than `limit` bytes the beginning if `cut`, else an error."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            parts.append(part)
            if size > limit and not cut:
                raise SystemFault(f'Get "{response.url}": the answer is larger than {limit} bytes')
            if size > limit:
                break
    except broken_connection() as error:
        raise Interrupted(f'Get "{response.url}": {describe(error, str(response.url))}') from error
    return b"".join(parts)[:limit]


def parse_insecure(entries: Sequence[str]) -> tuple[frozenset[str], tuple[Network, ...]]:
    """Registry names and networks out of `--insecure-registry` values; loopback is always among the networks."""
    names: set[str] = set()
    networks: list[Network] = [ipaddress.ip_network(text) for text in _LOOPBACK]
    for entry in entries:
        bare = entry.removeprefix("http://").removeprefix("https://").rstrip("/")
        try:
            if "/" in bare:
                networks.append(ipaddress.ip_network(bare, strict=False))
                continue
        except ValueError:
            pass
        names.add(bare)
    return frozenset(names), tuple(networks)


async def _resolve(name: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []  # the request itself will fail on this, in better words
    return [ipaddress.ip_address(address[4][0]) for address in found]


def proxy_for(url: str, settings: Proxies = NO_PROXIES) -> str | None:
    """The proxy that the daemon's settings, or the environment, ask for; never one for loopback.

    (aiohttp's own way would also read ~/.netrc.)
    """
    import urllib.request

    parts = urllib.parse.urlsplit(url)
    name = parts.hostname or ""
    try:
        local = ipaddress.ip_address(name).is_loopback
    except ValueError:
        local = name == "localhost"
    around = urllib.request.getproxies()
    proxy = (settings.https_proxy if parts.scheme == "https" else settings.http_proxy) or around.get(parts.scheme)
    without = settings.no_proxy or around.get("no", "")
    if local or not proxy or _bypassed(parts.netloc, name, without):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _bypassed(netloc: str, name: str, without: str) -> bool:
    """Whether `no-proxy` names the host: itself, a domain above it, or a network that its address is in."""
    import urllib.request

    if urllib.request.proxy_bypass_environment(netloc, {"no": without}):  # type: ignore[attr-defined]
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    for entry in without.split(","):
        try:
            if "/" in entry and address in ipaddress.ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _base_of(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def broken_connection(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What is raised when a connection breaks, and `more`."""
    import aiohttp

    return aiohttp.ClientError, OSError, *more


def is_unknown_name(error: BaseException | None) -> bool:
    """Did an exchange fail because nobody knows the host's name?"""
    import aiohttp

    return isinstance(error, aiohttp.ClientConnectorDNSError)


def describe(error: BaseException, url: str) -> str:
    """Why a request failed, in the words of the Go network library, which docker users and their scripts know."""
    import aiohttp

    parts = urllib.parse.urlsplit(url)
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
