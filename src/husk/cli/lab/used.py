"""Addresses that this machine uses: its own, those that it has routes to, speaks with, or finds by a name.

A lab that took one of them would hide what has it: a resolver, or the mirror that packages come from.
"""

import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, ip_address
from pathlib import Path
from threading import Thread

from husk.kernel import rtaddresses
from husk.kernel.netlink import NetlinkSocket

# Files with addresses in them; files, and variables, with names of servers.
_WITH_ADDRESSES = ("/etc/hosts", "/etc/resolv.conf")
_WITH_NAMES = (
    "/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/yum.repos.d",
    "/etc/apk/repositories", "/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/husk/daemon.json",
    "/etc/docker/daemon.json",
)  # fmt: skip
_VARIABLES = re.compile(r"(?i)(?:.*_)?(?:proxy|url|mirror|registry)")
_SOCKETS = ("/proc/net/tcp", "/proc/net/udp")
_URL = re.compile(r"\bhttps?://(?:[^/\s@]*@)?([A-Za-z0-9.-]{1,253})")
_LARGEST = 1 << 20
_MOST_FILES = 100
_MOST_NAMES = 32
# Seconds that all names together may take.
PATIENCE = 2.0
# Half of the world by a route is the way to anywhere, and no use of an address.
_WIDEST = 4


def own_interfaces() -> Iterator[IPv4Interface]:
    """The addresses of this machine."""
    with NetlinkSocket() as netlink:
        for entry in netlink.dump(rtaddresses.list_addresses(4)):
            found = rtaddresses.parse_address(entry).interface
            if isinstance(found, IPv4Interface):
                yield found


def told_in(texts: Iterable[str]) -> Iterator[IPv4Address]:
    """Every word that is an address."""
    for text in texts:
        for word in text.split():
            try:
                address = ip_address(word)
            except ValueError:
                continue
            if isinstance(address, IPv4Address):
                yield address


def names_in(texts: Iterable[str]) -> list[str]:
    """The servers of all addresses of the web, so many at most."""
    found = dict.fromkeys(name for text in texts for name in _URL.findall(text))
    return list(found)[:_MOST_NAMES]


def _asked(name: str) -> Iterator[IPv4Address]:
    for entry in socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM):
        yield IPv4Address(entry[4][0])


def resolved(
    names: Iterable[str], patience: float = PATIENCE, ask: Callable[[str], Iterable[IPv4Address]] = _asked
) -> set[IPv4Address]:
    """Return the addresses that names stand for, as far as they are known soon."""
    found: set[IPv4Address] = set()

    def look_up(name: str) -> None:
        with suppress(OSError, UnicodeError):
            found.update(ask(name))

    # A resolver that does not answer is not waited for.
    threads = [Thread(target=look_up, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return set(found.copy())


def in_use(
    with_addresses: Sequence[str] = _WITH_ADDRESSES,
    with_names: Sequence[str] = _WITH_NAMES,
    resolve: Callable[[list[str]], set[IPv4Address]] = resolved,
) -> list[IPv4Network]:
    """All that is known to be used, of what is told by files with addresses, and by files with names."""
    found = [interface.network for interface in own_interfaces()]
    with NetlinkSocket() as netlink:
        routes = [rtaddresses.parse_route(entry) for entry in netlink.dump(rtaddresses.list_routes(4))]
    for route in routes:
        if route is not None and route.destination.prefixlen > _WIDEST:
            found.append(IPv4Network(route.destination))
    names = names_in(_texts(with_names))
    addresses = {*_peers(), *told_in(map(_read, with_addresses)), *resolve(names)}
    return [*found, *map(IPv4Network, sorted(addresses))]


def _peers() -> Iterator[IPv4Address]:
    """The other ends of connections."""
    for path in _SOCKETS:
        for line in _read(path).splitlines()[1:]:
            words = line.split()
            if len(words) > 2 and (remote := words[2].partition(":")[0]) != "00000000":
                yield IPv4Address(int.from_bytes(bytes.fromhex(remote), "little"))


def _texts(places: Iterable[str]) -> Iterator[str]:
    for name in places:
        place = Path(name).expanduser()
        for path in sorted(place.iterdir())[:_MOST_FILES] if place.is_dir() else [place]:
            yield _read(str(path))
    for name, value in os.environ.items():
        if _VARIABLES.fullmatch(name):
            yield value


def _read(path: str) -> str:
    """The beginning of a file; nothing where there is none that can be read."""
    try:
        if path.startswith("/proc/") or Path(path).is_file():
            with open(path, errors="replace") as file:
                return file.read(_LARGEST)
    except OSError:
        pass
    return ""
