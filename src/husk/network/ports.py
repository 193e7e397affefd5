"""Published ports: which port of the host leads to which port of a container, and whether it is still free.

While a port is published, the daemon holds a socket on it: no other program can take it meanwhile, and one that has it
already is noticed before the container runs. Packets do not reach the socket: the firewall leads them on before, all
but for those that no rule can lead: from IPv6 to a container with IPv4 alone, the other way round, and to ::1. A
`relay` takes these. Ports of containers that are reached at their own addresses are no matter of the host's.
"""

import errno
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from husk.errors import HuskError

log = logging.getLogger(__name__)

EVERYWHERE = "0.0.0.0"
EVERYWHERE_6 = "::"
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_BACKLOG = 128
# Ports that are tried before others have a turn: some ten milliseconds where other programs have them.
_AT_ONCE = 100
_DEFAULT_EPHEMERAL = (32768, 60999)

_KINDS = {
    "tcp": (socket.SOCK_STREAM, socket.IPPROTO_TCP),
    "udp": (socket.SOCK_DGRAM, socket.IPPROTO_UDP),
    "sctp": (socket.SOCK_STREAM, socket.IPPROTO_SCTP),
}


# A socket that keeps everybody else from a port of a protocol at an address; None where there is no such protocol.
Hold = Callable[[str, str, int], socket.socket | None]


class PublishedPort(msgspec.Struct, frozen=True):
    """A port of the host that leads to a container; or one of the container's own that is reached there."""

    protocol: str
    host_ip: str
    # 0 for one that is reached at the container's own address.
    host_port: int
    container_ip: str
    container_port: int

    @property
    def everywhere(self) -> bool:
        return self.host_ip in (EVERYWHERE, EVERYWHERE_6)

    @property
    def family(self) -> str:
        """The packets that rules can lead there: `ip` or `ip6`, or "" if they would have to become the others."""
        if (":" in self.host_ip) != (":" in self.container_ip):
            return ""
        return "ip6" if ":" in self.host_ip else "ip"

    @property
    def key(self) -> tuple[str, str, int]:
        return self.protocol, self.host_ip, self.host_port

    @property
    def routed(self) -> bool:
        return not self.host_port


class PortTarget(msgspec.Struct, frozen=True):
    """The place where a container is reached: its addresses, and for which of them no address of the host stands."""

    ipv4: str = ""
    ipv6: str = ""
    routed4: bool = False
    routed6: bool = False

    def at(self, host_ip: str) -> tuple[str, bool]:
        """Return where packets for an address of the host go, and if they go there by themselves; "" for nowhere."""
        own, routed = (self.ipv6, self.routed6) if ":" in host_ip else (self.ipv4, self.routed4)
        if own:
            return own, routed
        other, routed = (self.ipv4, self.routed4) if ":" in host_ip else (self.ipv6, self.routed6)
        return ("", False) if routed else (other, False)


class PortRequest(msgspec.Struct, frozen=True):
    """A port to publish; the first free one between `first` and `last`, or any when `first` is 0."""

    protocol: str
    container_port: int
    host_ip: str = EVERYWHERE
    first: int = 0
    last: int = 0
    # Another address on which the same port is wanted, if this host has such addresses.
    also: str = ""

    @property
    def range(self) -> tuple[str, str, str, int, int]:
        return self.protocol, self.host_ip, self.also, self.first, self.last


class Relays(Protocol):
    """The server of ports whose packets no rule can lead on. A port may be served anew when it leads elsewhere."""

    def serve(self, port: PublishedPort, held: socket.socket) -> None: ...

    def stop(self, port: PublishedPort) -> None: ...


class PortTaken(HuskError):
    """A port cannot be published; the message says which, and why."""


class HostPorts:
    """The ports of the host that this daemon's containers have. Nothing here blocks."""

    def __init__(self, relays: Relays | None = None, hold: Hold | None = None) -> None:
        """`hold` takes a port from everybody else, by a socket on it."""
        self._hold = hold or _hold
        self._relays = relays
        self._held: dict[tuple[str, str, int], socket.socket | None] = {}
        # (protocol, port) -> addresses, to find a conflict without looking at every port
        self._addresses: dict[tuple[str, int], set[str]] = {}
        self._next: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def take(self, requests: Sequence[PortRequest], target: PortTarget) -> list[PublishedPort]:
        """Hold a port for each request, or none at all."""
        taken: list[PublishedPort] = []
        try:
            for _ in self.taking(requests, target, taken):
                pass
        except PortTaken:
            self.give_back(taken)
            raise
        return taken

    def taking(self, requests: Sequence[PortRequest], target: PortTarget, taken: list[PublishedPort]) -> Iterator[None]:
        """As `take`, and stop now and then so that others have a turn. What is in `taken` is the caller's to give back,
        also when this fails."""
        search = _Search(cache(_listens), _ephemeral())
        for request in requests:
            yield from self._take(request, target, search, taken)

    def hold_again(self, ports: Iterable[PublishedPort]) -> None:
        """After a restart of the daemon: these are published already, whoever took the port meanwhile."""
        for port in ports:
            if port.routed:
                continue
            try:
                held = self._hold(port.protocol, port.host_ip, port.host_port)
            except OSError as error:
                log.warning("port %s:%d of a running container: %s", port.host_ip, port.host_port, error)
                held = None
            self._note(port, held)

    def retarget(self, ports: Iterable[PublishedPort]) -> None:
        """The container of these is reached elsewhere now."""
        for port in ports:
            if (held := self._held.get(port.key)) is not None:
                self._serve(port, held)

    def give_back(self, ports: Iterable[PublishedPort]) -> None:
        """Nothing happens for those that are not held."""
        for port in ports:
            if port.key not in self._held:
                continue
            held = self._held.pop(port.key)
            addresses = self._addresses[port.protocol, port.host_port]
            addresses.discard(port.host_ip)
            if not addresses:
                del self._addresses[port.protocol, port.host_port]
            self._let_go(port, held)

    def close(self) -> None:
        """Let go of all sockets; what is published stays so."""
        for (protocol, address, number), held in self._held.items():
            self._let_go(PublishedPort(protocol, address, number, "", 0), held)
        self._held.clear()
        self._addresses.clear()

    def _let_go(self, port: PublishedPort, held: socket.socket | None) -> None:
        if held is not None:
            if self._relays is not None:
                self._relays.stop(port)
            held.close()

    def _take(
        self, request: PortRequest, target: PortTarget, search: "_Search", taken: list[PublishedPort]
    ) -> Iterator[None]:
        failure: PortTaken | None = None
        opened: list[PublishedPort] = []
        leading: list[tuple[str, str]] = []
        for address in (request.host_ip, request.also):
            to, routed = target.at(address) if address else ("", False)
            if routed:
                everywhere = EVERYWHERE_6 if ":" in address else EVERYWHERE
                opened.append(PublishedPort(request.protocol, everywhere, 0, to, request.container_port))
            # SCTP goes by rules alone, and these lead from IPv4 to IPv4 and from IPv6 to IPv6.
            elif not to or (request.protocol == "sctp" and (":" in to) != (":" in address)):
                continue
            elif address == request.host_ip or search.listens(address):
                leading.append((address, to))
        if not leading:
            taken += opened
            return
        for number in self._candidates(request, search):
            search.tried += 1
            if search.tried % _AT_ONCE == 0:
                yield
            known = any(self._conflicts(request.protocol, at, number) for at, _ in leading)
            if known and (not request.first or request.first != request.last):
                continue
            ports = [PublishedPort(request.protocol, at, number, to, request.container_port) for at, to in leading]
            try:
                self._try(ports)
            except PortTaken as error:
                failure = failure or error
            else:
                if not request.first:
                    self._next[request.protocol] = number + 1
                search.behind[request.range] = number + 1
                taken += [*ports, *opened]
                return
        if failure is not None and request.first and request.first == request.last:
            raise failure
        raise PortTaken(f"Bind for {_shown(request.host_ip)}:{request.first} failed: all ports are allocated")

    def _try(self, ports: list[PublishedPort]) -> None:
        """Hold all of them or none."""
        for done, port in enumerate(ports):
            try:
                self._try_one(port)
            except PortTaken:
                self.give_back(ports[:done])
                raise

    def _try_one(self, port: PublishedPort) -> None:
        address, number = port.host_ip, port.host_port
        if self._conflicts(port.protocol, address, number):
            raise PortTaken(f"Bind for {_shown(address)}:{number} failed: port is already allocated")
        try:
            held = self._hold(port.protocol, address, number)
        except OSError as error:
            reason = os.strerror(error.errno or errno.EINVAL).lower()
            raise PortTaken(
                f"failed to bind host port for {_shown(address)}:{number}:{_shown(port.container_ip)}"
                f":{port.container_port}/{port.protocol}: {reason}"
            ) from error
        self._note(port, held)

    def _conflicts(self, protocol: str, address: str, number: int) -> bool:
        """Return True if the port at that address is another container's."""
        everywhere = EVERYWHERE_6 if ":" in address else EVERYWHERE
        others = [other for other in self._addresses.get((protocol, number), ()) if (":" in other) == (":" in address)]
        return address in others or everywhere in others or bool(others and address == everywhere)

    def _note(self, port: PublishedPort, held: socket.socket | None) -> None:
        self._held[port.key] = held
        self._addresses.setdefault((port.protocol, port.host_port), set()).add(port.host_ip)
        if held is not None:
            self._serve(port, held)

    def _serve(self, port: PublishedPort, held: socket.socket) -> None:
        if self._relays is None:
            return
        if (":" in port.host_ip or not port.family) and port.protocol != "sctp":
            self._relays.serve(port, held)
        else:
            self._relays.stop(port)

    def _candidates(self, request: PortRequest, search: "_Search") -> Iterator[int]:
        if request.first:
            yield from range(search.behind.get(request.range, request.first), request.last + 1)
            return
        # As dockerd: one after the other, so that a port that was just given back is not soon somebody else's.
        first, last = search.ephemeral
        start = self._next.get(request.protocol, first)
        start = start if first <= start <= last else first
        yield from range(start, last + 1)
        yield from range(first, start)


class _Search:
    """The state of one search for ports: thousands of requests of one range do not each try its first."""

    def __init__(self, listens: Callable[[str], bool], ephemeral: tuple[int, int]) -> None:
        self.listens, self.ephemeral = listens, ephemeral
        self.tried = 0
        # The number after the last one that was taken of a range.
        self.behind: dict[tuple[str, str, str, int, int], int] = {}


def _hold(protocol: str, address: str, port: int) -> socket.socket | None:
    """A socket that keeps everybody else from the port; None where the kernel does not have the protocol."""
    kind, number = _KINDS[protocol]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        held = socket.socket(family, kind | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, number)
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
            return None
        raise
    try:
        if kind == socket.SOCK_STREAM:
            # Connections that linger after their end are no reason to refuse the port.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        held.bind((address, port))
        if kind == socket.SOCK_STREAM:
            held.listen(_BACKLOG)
    except BaseException:
        held.close()
        raise
    return held


def _listens(address: str) -> bool:
    """Return True if this host has addresses of that kind at all."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _ephemeral() -> tuple[int, int]:
    with suppress(OSError, ValueError):
        first, last = _EPHEMERAL.read_text().split()
        return int(first), int(last)
    return _DEFAULT_EPHEMERAL


def retargeted(ports: Sequence[PublishedPort], target: PortTarget) -> list[PublishedPort] | None:
    """The same ports for a container that is reached there now; None when others have to be found for it."""
    moved = []
    for port in ports:
        to, routed = target.at(port.host_ip)
        if not to or routed != port.routed or (port.protocol == "sctp" and (":" in to) != (":" in port.host_ip)):
            return None
        moved.append(msgspec.structs.replace(port, container_ip=to))
    return moved
