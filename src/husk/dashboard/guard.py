"""Rules on the headers Host and Origin: a request must be meant for us, and come from our own pages. Pure.

A browser sends the name that it looked up as `Host`, and the site that a request was made by as `Origin`. A site
whose name was bent to our address (DNS rebinding) is known by its Host, a foreign page that posts to us by its Origin.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.text.digits import read_number

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Listening(NamedTuple):
    """An address to listen on. A port of 0 is chosen by the system."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback

    @property
    def is_wildcard(self) -> bool:
        return self.host != "localhost" and ipaddress.ip_address(self.host).is_unspecified

    def __str__(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"


def listening(text: str) -> Listening:
    """`ADDRESS:PORT`, read; InvalidParameter where it is none. Names are not looked up, `localhost` is known."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        if not colon or (number := read_number(port, most=0xFFFF)) is None:
            raise ValueError(text)
        if host != "localhost":
            host = str(ipaddress.ip_address(host))
    except ValueError:
        raise InvalidParameter(
            f"invalid address of the dashboard {text!r}: expected ADDRESS:PORT, as in 127.0.0.1:2380"
        ) from None
    return Listening(host, number)


def guarded(text: str, tls: bool) -> Listening:
    """The address to listen on; InvalidParameter where others would reach it and could read what is said."""
    found = listening(text)
    if not tls and not found.is_loopback:
        raise InvalidParameter(
            f"the dashboard does not listen on {text} without TLS, for whoever reads a session is root here: "
            "give --tlscert and --tlskey, or listen on 127.0.0.1 and reach it through ssh -L"
        )
    return found


class Guard:
    """The guard of a server on one address, which lets requests in; `names` are others that browsers may know it by."""

    def __init__(self, address: Listening, tls: bool, names: Iterable[str] = ()) -> None:
        self.scheme = "https" if tls else "http"
        self.port = address.port
        self._any_address = address.is_wildcard
        hosts = [*_LOOPBACK_NAMES] if address.is_loopback or address.is_wildcard else [_bracketed(address.host)]
        self._hosts = {name.lower().rstrip(".") for name in (*hosts, _bracketed(address.host), *names)}
        self.url = f"{self.scheme}://{_shown(address, hosts)}"
        if self.port != _DEFAULT_PORTS[self.scheme]:
            self.url += f":{self.port}"

    def knows_host(self, host: str) -> bool:
        """Tell if this `Host` is one of ours."""
        name, port = _split(host.lower())
        if port != self.port and not (port is None and self.port == _DEFAULT_PORTS[self.scheme]):
            return False
        return name in self._hosts or (self._any_address and _is_address(name))

    def is_own_origin(self, origin: str, host: str, fetch_site: str = "") -> bool:
        """Tell if a page of ours made the request. A browser that does not tell the origin must tell the relation."""
        if not origin:
            return fetch_site == "same-origin"
        scheme, separator, place = origin.lower().partition("://")
        return bool(separator) and scheme == self.scheme and place == host.lower() and self.knows_host(host)


def _split(host: str) -> tuple[str, int | None]:
    """(name, port) of a Host header; a port that cannot be is -1."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.rstrip("."), None
    number = read_number(port, most=0xFFFF)
    return name.rstrip("."), -1 if number is None else number


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _shown(address: Listening, hosts: list[str]) -> str:
    return hosts[0] if address.is_wildcard else _bracketed(address.host)
