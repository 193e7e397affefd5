"""The ports that a container wants published, as Docker reads its configuration. Pure."""

import asyncio
import ipaddress
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.errors import InvalidParameter
from husk.network.ports import EVERYWHERE, EVERYWHERE_6, PortRequest
from husk.text.patterns import pattern

PROTOCOLS = ("tcp", "udp", "sctp")
# More ports than this no container can have published: it is all that one protocol has.
MOST = 1 << 16
# Of one port. Nothing needs more than one for each address of the host.
_MOST_BINDINGS = 1024
# More than these take a while.
_MANY = 256
_RANGE = pattern(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


class PortRange(Struct, frozen=True, order=True):
    """A port of a container, or a range of them. A range is never spelled out to be shown: three words of an image's
    configuration can name 196,605 ports."""

    first: int
    last: int
    protocol: str

    def __str__(self) -> str:
        numbers = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{numbers}/{self.protocol}"

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return ((number, self.protocol) for number in range(self.first, self.last + 1))

    def __len__(self) -> int:
        return self.last - self.first + 1


def parse_ports(text: str) -> PortRange:
    """Parse `80`, `80/udp` or `8000-8010/tcp`. InvalidParameter where that is no port."""
    numbers, _, protocol = text.partition("/")
    first, last = _parse_range(numbers, numbers)
    protocol = protocol.lower() or "tcp"
    if protocol not in PROTOCOLS:
        raise InvalidParameter(f"invalid proto: {protocol}")
    if not first:
        raise InvalidParameter(f'invalid port specification: "{numbers}"')
    return PortRange(first, last, protocol)


def stored(names: Iterable[str] | None) -> list[PortRange]:
    """Parse a stored configuration's ports, in order. Images may have anything there: what is no port is left out."""
    found = set()
    for text in names or ():
        with suppress(InvalidParameter):
            found.add(parse_ports(text))
    return sorted(found)


def exposed(config: ContainerConfig, host_config: HostConfig) -> list[PortRange]:
    """All ports that the container's process may listen on, in order. Never fails on what is stored."""
    return stored([*(config.exposed_ports or {}), *(host_config.port_bindings or {})])


class PortSet:
    """Ports by protocol, to ask whether some of them are meant: as quick for full ranges as for single ports."""

    def __init__(self, ranges: Iterable[tuple[int, int, str]]) -> None:
        """Of (first, last, protocol)."""
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        for first, last, protocol in sorted(ranges):
            merged = self._ranges.setdefault(protocol, [])
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))

    def meets(self, first: int, last: int, protocol: str) -> bool:
        """Return True if any port of that range is in the set."""
        ranges = self._ranges.get(protocol, [])
        after = bisect_right(ranges, last, key=lambda one: one[0])
        return after > 0 and ranges[after - 1][1] >= first


def port_requests(
    config: ContainerConfig, host_config: HostConfig, host_binding: str = EVERYWHERE
) -> list[PortRequest]:
    """List the ports that are to be published; `host_binding` stands for a host address that is not given."""
    found: list[PortRequest] = []
    bound: set[tuple[int, str]] = set()
    for text, bindings in (host_config.port_bindings or {}).items():
        ports = parse_ports(text)
        for binding in bindings or ():
            if host_config.publish_all_ports:
                bound.update(ports)
            found += _wishes(ports, binding, host_binding, len(found))
    if host_config.publish_all_ports:
        for ports in stored(config.exposed_ports):
            wishes = _wishes(ports, PortBinding(), host_binding, len(found))
            found += [wish for wish in wishes if (wish.container_port, wish.protocol) not in bound]
    # Fixed ports first: a random one must not take what another request names.
    return sorted(found, key=lambda request: (not request.first, request.last - request.first))


async def port_requests_aside(config: ContainerConfig, host_config: HostConfig, host_binding: str) -> list[PortRequest]:
    """As `port_requests`, in a thread where there are many."""
    if are_many(config, host_config):
        return await asyncio.to_thread(port_requests, config, host_config, host_binding)
    return port_requests(config, host_config, host_binding)


def are_many(config: ContainerConfig, host_config: HostConfig) -> bool:
    """Return True if it may take a while to read the ports. A range is short, and may name all that there are."""
    bound, exposed = host_config.port_bindings or {}, config.exposed_ports or {}
    if len(bound) + len(exposed) > _MANY or sum(len(bindings or ()) for bindings in bound.values()) > _MANY:
        return True
    return any("-" in name for name in (*bound, *exposed))


def check(config: ContainerConfig, host_config: HostConfig) -> None:
    """Raise for what is wrong with the ports of a request."""
    for text, bindings in (host_config.port_bindings or {}).items():
        if bindings and len(bindings) > _MOST_BINDINGS:
            raise InvalidParameter(f"port {text[:40]} is bound too often: {_MOST_BINDINGS} times is the most")
    port_requests(config, host_config)
    mode = host_config.network_mode
    if mode.startswith("container:"):
        if host_config.port_bindings or host_config.publish_all_ports:
            raise InvalidParameter("conflicting options: port publishing and the container type network mode")
        if config.exposed_ports:
            raise InvalidParameter("conflicting options: port exposing and the container type network mode")


def _wishes(ports: PortRange, binding: PortBinding, host_binding: str, before: int) -> list[PortRequest]:
    """One for each port; there are some `before`."""
    if before + len(ports) > MOST:
        raise InvalidParameter(f"too many ports to publish: at most {MOST} of a container can be")
    try:
        address = _address(binding.host_ip.strip("[]") or host_binding)
    except ValueError:
        raise InvalidParameter(f"invalid IP address: {binding.host_ip}") from None
    first, last = _parse_range(binding.host_port, binding.host_port) if binding.host_port else (0, 0)
    # Everywhere is on both kinds of addresses, unless the client says which.
    also = EVERYWHERE_6 if address == EVERYWHERE and not binding.host_ip else ""
    return [PortRequest(protocol, number, address, first, last, also) for number, protocol in ports]


@lru_cache(64)
def _address(text: str) -> str:
    """The address as it is usually written. One is asked for by thousands of ports."""
    return str(ipaddress.ip_address(text))


def _parse_range(numbers: str, shown: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(numbers)
    if match is None:
        raise InvalidParameter(f'invalid port specification: "{shown}"')
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last <= 65535:
        raise InvalidParameter(f'invalid port specification: "{shown}"')
    return first, last
