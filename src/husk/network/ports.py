"""Which port of the host leads to which port of a container, and is it still free?

While a port is published, the daemon holds a socket on it: no other program can take it meanwhile, and one that has it
already is noticed before the container runs. No packet reaches the socket: the firewall leads them on before.
"""

import errno
import logging
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from husk.errors import HuskError

log = logging.getLogger(__name__)

EVERYWHERE = "0.0.0.0"
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_EPHEMERAL = (32768, 60999)

_KINDS = {
    "tcp": (socket.SOCK_STREAM, socket.IPPROTO_TCP),
    "udp": (socket.SOCK_DGRAM, socket.IPPROTO_UDP),
    "sctp": (socket.SOCK_STREAM, socket.IPPROTO_SCTP),
}


class PublishedPort(msgspec.Struct, frozen=True):
    """A port of the host that leads to a container."""

    protocol: str
    host_ip: str
    host_port: int
    container_ip: str
    container_port: int

    @property
    def everywhere(self) -> bool:
        return self.host_ip == EVERYWHERE

    @property
    def key(self) -> tuple[str, str, int]:
        return self.protocol, self.host_ip, self.host_port


class PortWish(NamedTuple):
    """A port to publish; the first free one between `first` and `last`, or any when `first` is 0."""

    protocol: str
    container_port: int
    host_ip: str = EVERYWHERE
    first: int = 0
    last: int = 0


class PortTaken(HuskError):
    """A port cannot be published; the message says which, and why."""


class Ports:
    """The ports of the host that this daemon's containers have. Nothing here blocks."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, int], socket.socket | None] = {}
        # (protocol, port) -> addresses, to find a conflict without looking at every port
        self._addresses: dict[tuple[str, int], set[str]] = {}
        self._next: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def take(self, wishes: Sequence[PortWish], container_ip: str) -> list[PublishedPort]:
        """Hold a port for each wish, or none at all."""
        taken: list[PublishedPort] = []
        try:
            for wish in wishes:
                taken.append(self._take(wish, container_ip))
        except PortTaken:
            self.give_back(taken)
            raise
        return taken

    def hold_again(self, ports: Iterable[PublishedPort]) -> None:
        """After a restart of the daemon: these are published already, whoever took the port meanwhile."""
        for port in ports:
            try:
                held = _hold(port.protocol, port.host_ip, port.host_port)
            except OSError as error:
                log.warning("port %s:%d of a running container: %s", port.host_ip, port.host_port, error)
                held = None
            self._note(port.key, held)

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
            if held is not None:
                held.close()

    def close(self) -> None:
        """Let go of all sockets; what is published stays so."""
        for held in self._held.values():
            if held is not None:
                held.close()
        self._held.clear()
        self._addresses.clear()

    def _take(self, wish: PortWish, container_ip: str) -> PublishedPort:
        failure: PortTaken | None = None
        for number in self._candidates(wish):
            try:
                self._try(wish, number, container_ip)
            except PortTaken as error:
                failure = failure or error
            else:
                if not wish.first:
                    self._next[wish.protocol] = number + 1
                return PublishedPort(wish.protocol, wish.host_ip, number, container_ip, wish.container_port)
        if failure is not None and wish.first and wish.first == wish.last:
            raise failure
        raise PortTaken(f"Bind for {wish.host_ip}:{wish.first} failed: all ports are allocated")

    def _try(self, wish: PortWish, number: int, container_ip: str) -> None:
        addresses = self._addresses.get((wish.protocol, number), set())
        if wish.host_ip in addresses or EVERYWHERE in addresses or (addresses and wish.host_ip == EVERYWHERE):
            raise PortTaken(f"Bind for {wish.host_ip}:{number} failed: port is already allocated")
        try:
            held = _hold(wish.protocol, wish.host_ip, number)
        except OSError as error:
            reason = os.strerror(error.errno or errno.EINVAL).lower()
            raise PortTaken(
                f"failed to bind host port for {wish.host_ip}:{number}:{container_ip}:{wish.container_port}"
                f"/{wish.protocol}: {reason}"
            ) from error
        self._note((wish.protocol, wish.host_ip, number), held)

    def _note(self, key: tuple[str, str, int], held: socket.socket | None) -> None:
        self._held[key] = held
        self._addresses.setdefault((key[0], key[2]), set()).add(key[1])

    def _candidates(self, wish: PortWish) -> Iterator[int]:
        if wish.first:
            yield from range(wish.first, wish.last + 1)
            return
        # As dockerd: one after the other, so that a port that was just given back is not soon somebody else's.
        first, last = _ephemeral()
        start = self._next.get(wish.protocol, first)
        start = start if first <= start <= last else first
        yield from range(start, last + 1)
        yield from range(first, start)


def _hold(protocol: str, address: str, port: int) -> socket.socket | None:
    """A socket that keeps everybody else from the port; None where the kernel does not have the protocol."""
    kind, number = _KINDS[protocol]
    try:
        held = socket.socket(socket.AF_INET, kind | socket.SOCK_CLOEXEC, number)
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
            return None
        raise
    try:
        if kind == socket.SOCK_STREAM:
            # Connections that linger after their end are no reason to refuse the port.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, port))
        if kind == socket.SOCK_STREAM:
            held.listen(1)
    except BaseException:
        held.close()
        raise
    return held


def _ephemeral() -> tuple[int, int]:
    with suppress(OSError, ValueError):
        first, last = _EPHEMERAL.read_text().split()
        return int(first), int(last)
    return _DEFAULT_EPHEMERAL
