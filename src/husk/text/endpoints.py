"""Endpoints: a host and a port, as people write them. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from husk.errors import InvalidParameter

MANAGER_PORT = 2377
"""Of the cluster port, where nobody names another one."""
LONGEST = 253
"""Characters of a name, as DNS has them; an address with a zone is shorter."""


class HostPort(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_endpoint(text: str, port: int) -> HostPort:
    """`HOST`, `HOST:PORT` or `[IPV6]:PORT`; `port` where none is named. InvalidParameter for anything else."""
    host, colon, number = text, "", ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, number = rest[:1], rest[1:]
        if not bracket or colon not in ("", ":"):
            host = ""
    elif text.count(":") == 1:
        host, colon, number = text.partition(":")
    elif ":" in text:
        raise InvalidParameter(f"put the IPv6 address {text} in brackets")
    if not _is_host(host) or (colon and not _is_port(number)):
        raise InvalidParameter(f"{text!r} is not of the form HOST[:PORT]")
    return HostPort(host, int(number) if colon else port)


def _is_host(text: str) -> bool:
    """An address or a name; whether there is such a host is found when it is asked."""
    if not 0 < len(text) <= LONGEST or not text.isprintable() or any(letter in text for letter in "/@?# "):
        return False
    try:
        # As the resolver writes it: no part is empty, or longer than names have.
        return ":" in text or bool(text.encode("idna"))
    except UnicodeError:
        return False


def write_endpoints(endpoints: Mapping[str, HostPort]) -> dict[str, str]:
    """Those with names, for a record."""
    return {name: str(endpoint) for name, endpoint in endpoints.items()}


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16
