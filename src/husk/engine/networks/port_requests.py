"""The ports that a container wants published, as Docker reads its configuration. Pure."""

import ipaddress
import re

from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.errors import InvalidParameter
from husk.network.ports import EVERYWHERE, EVERYWHERE_6, PortRequest
from husk.patterns import pattern

PROTOCOLS = ("tcp", "udp", "sctp")
_RANGE = pattern(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


def parse_port(text: str) -> list[tuple[int, str]]:
    """(number, protocol) of each port that `80`, `80/udp` or `8000-8010/tcp` names."""
    numbers, _, protocol = text.partition("/")
    first, last = _parse_range(numbers, numbers)
    protocol = protocol.lower() or "tcp"
    if protocol not in PROTOCOLS:
        raise InvalidParameter(f"invalid proto: {protocol}")
    if not first:
        raise InvalidParameter(f'invalid port specification: "{numbers}"')
    return [(number, protocol) for number in range(first, last + 1)]


def exposed(config: ContainerConfig, host_config: HostConfig) -> list[str]:
    """All ports that the container's process may listen on, as `80/tcp`, in order."""
    named = [*(config.exposed_ports or {}), *(host_config.port_bindings or {})]
    found = {port for text in named for port in parse_port(text)}
    return [f"{number}/{protocol}" for number, protocol in sorted(found)]


def port_requests(
    config: ContainerConfig, host_config: HostConfig, host_binding: str = EVERYWHERE
) -> list[PortRequest]:
    """What is to be published; `host_binding` stands for a host address that is not given."""
    found = []
    bound: set[tuple[int, str]] = set()
    for text, bindings in (host_config.port_bindings or {}).items():
        for number, protocol in parse_port(text):
            for binding in bindings or ():
                bound.add((number, protocol))
                found.append(_wish(number, protocol, binding, host_binding))
    if host_config.publish_all_ports:
        for text in config.exposed_ports or {}:
            for number, protocol in parse_port(text):
                if (number, protocol) not in bound:
                    found.append(_wish(number, protocol, PortBinding(), host_binding))
    # Fixed ports first: a random one must not take what another request names.
    return sorted(found, key=lambda request: (not request.first, request.last - request.first))


def check(config: ContainerConfig, host_config: HostConfig) -> None:
    """Raise for what is wrong with the ports of a request."""
    port_requests(config, host_config)
    mode = host_config.network_mode
    if mode.startswith("container:"):
        if host_config.port_bindings or host_config.publish_all_ports:
            raise InvalidParameter("conflicting options: port publishing and the container type network mode")
        if config.exposed_ports:
            raise InvalidParameter("conflicting options: port exposing and the container type network mode")


def _wish(number: int, protocol: str, binding: PortBinding, host_binding: str) -> PortRequest:
    address = binding.host_ip.strip("[]") or host_binding
    try:
        address = str(ipaddress.ip_address(address))
    except ValueError:
        raise InvalidParameter(f"invalid IP address: {binding.host_ip}") from None
    first, last = _parse_range(binding.host_port, binding.host_port) if binding.host_port else (0, 0)
    # Everywhere is on both kinds of addresses, unless the client says which.
    also = EVERYWHERE_6 if address == EVERYWHERE and not binding.host_ip else ""
    return PortRequest(protocol, number, address, first, last, also)


def _parse_range(numbers: str, shown: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(numbers)
    if match is None:
        raise InvalidParameter(f'invalid port specification: "{shown}"')
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last <= 65535:
        raise InvalidParameter(f'invalid port specification: "{shown}"')
    return first, last
