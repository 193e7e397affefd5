"""The way to a host: with verified TLS, or open, to which addresses, and through which proxy.

One function decides it, for each connection, from the host's name, the administrator's settings and all addresses of
the name. Open (plain HTTP, or any certificate) is the way

- to names that the administrator listed as insecure, at the port that is listed;
- to literal addresses in an insecure network; the loopback always is one;
- to names of which every address is in an insecure network, and then the connection goes to exactly the addresses that
  were looked at: a second answer of the DNS is not asked for, and one address among others opens nothing.

Everything else is verified, and Docker Hub is, whatever the settings and the DNS say. A proxy resolves names itself, so
that nobody here knows where it connects to: through one only listed names and literal addresses may be open.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType

from msgspec import Struct

from husk.config import NO_PROXIES, Proxies
from husk.text.urls import split_url

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str], Awaitable[Sequence[Address]]]

_LOOPBACK = ("127.0.0.0/8", "::1/128")
_LOOPBACK_ADDRESSES = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))
_HUB = "docker.io"


class RouteRules(Struct, frozen=True):
    """The hosts to which connections may be open: names with their ports, and networks."""

    names: frozenset[str]
    networks: tuple[Network, ...]

    def within(self, addresses: Sequence[Address]) -> bool:
        """Tell if there are addresses, and all of them are in insecure networks."""
        return bool(addresses) and all(any(one in net for net in self.networks) for one in map(_unmapped, addresses))


class ConnectionWay(Struct, frozen=True):
    """The way of one connection; without `addresses` it goes to any that the name has, or where the proxy finds it."""

    open: bool
    proxy: str | None = None
    addresses: tuple[Address, ...] = ()


def parse_insecure(entries: Sequence[str]) -> RouteRules:
    """The rules in `--insecure-registry` values; loopback is always among the networks."""
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
        names.add(bare.lower())
    return RouteRules(frozenset(names), tuple(networks))


async def find_way(url: str, rules: RouteRules, proxies: Proxies, resolve: Resolve) -> ConnectionWay:
    """The way to the host of `url`."""
    proxy = proxy_for(url, proxies)
    if proxy is not None and proxy.startswith("https:") and url.startswith("https:"):
        return ConnectionWay(
            False, proxy
        )  # the connection to the proxy has the same TLS settings: its certificate matters
    host = authority(url)
    name = (split_url(url).hostname or "").rstrip(".")
    if not name or name == _HUB or name.endswith(f".{_HUB}"):
        return ConnectionWay(False, proxy)
    if host in rules.names:
        return ConnectionWay(True, proxy)
    if (literal := _literal(name)) is not None:
        return ConnectionWay(rules.within([literal]), proxy)
    if proxy is not None:
        return ConnectionWay(False, proxy)
    # Names below `localhost` need not be known to the DNS (RFC 6761).
    found = tuple(await resolve(name)) or (_LOOPBACK_ADDRESSES if is_localhost(name) else ())
    return ConnectionWay(True, None, found) if rules.within(found) else ConnectionWay(False)


def netloc_of(url: str) -> str:
    """The host of `url` and its port if that is written, without a user's name."""
    return split_url(url).netloc.rpartition("@")[2]


def authority(url: str) -> str:
    """The host and port by which rules are looked up."""
    return netloc_of(url).lower()


def base_of(url: str) -> str:
    """The scheme, host and port of `url`, as they are written."""
    parts = split_url(url)
    return f"{parts.scheme.lower()}://{authority(url)}"


def same_origin(one: str, other: str) -> bool:
    """Tell if two URLs have scheme, host and port in common: only then may credentials for one go to the other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = split_url(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


async def resolve(name: str) -> list[Address]:
    """All addresses of a name; none if it has none: the request itself will fail on that, in better words."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(address[4][0]) for address in found]


def unverified_context() -> ssl.SSLContext:
    """TLS with any certificate."""
    # Not create_default_context: it reads all of the host's certificates (20 ms) that nobody asks here.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def proxy_for(url: str, settings: Proxies = NO_PROXIES) -> str | None:
    """The proxy that the daemon's settings, or the environment, ask for; never one for loopback.

    (aiohttp's own way would also read ~/.netrc.)
    """

    parts = split_url(url)
    name = parts.hostname or ""
    literal = _literal(name)
    local = is_localhost(name) if literal is None else literal.is_loopback
    around = _urllib().getproxies()
    proxy = (settings.https_proxy if parts.scheme == "https" else settings.http_proxy) or around.get(parts.scheme)
    without = settings.no_proxy or around.get("no", "")
    if local or not proxy or _bypassed(parts.netloc, name, without):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _urllib() -> ModuleType:
    # A door: it brings email and more along, and credentials are read without it.
    import urllib.request

    return urllib.request


def _bypassed(netloc: str, name: str, without: str) -> bool:
    """Tell if `no-proxy` names the host: itself, a domain above it, or a network that its address is in."""

    if _urllib().proxy_bypass_environment(netloc, {"no": without}):
        return True
    address = _literal(name)
    if address is None:
        return False
    for entry in without.split(","):
        try:
            if "/" in entry and address in ipaddress.ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _literal(name: str) -> Address | None:
    try:
        return _unmapped(ipaddress.ip_address(name))
    except ValueError:
        return None


def _unmapped(address: Address) -> Address:
    """An IPv4 address in IPv6 clothes is the IPv4 address."""
    return getattr(address, "ipv4_mapped", None) or address
