"""A container's knowledge of those it is linked to: Docker's old way of names, on the default bridge. Pure.

A linked container is in /etc/hosts under its alias, its host name and its name, and in the environment with its ports
and its own variables. On networks that users make, a link is one more name there (`names`).
"""

from collections.abc import Iterable, Sequence
from itertools import chain, groupby, islice
from typing import NamedTuple

from husk.engine.model.container import Container
from husk.engine.networks.port_requests import stored

# An environment with the variables of so many ports is one that a process can still be started with.
_MOST_PORTS = 1000
_NOT_PASSED_ON = ("HOME", "PATH")


class ContainerLink(NamedTuple):
    """One linked container, as the other one sees it."""

    alias: str
    # Of the one that sees it.
    parent: str
    name: str
    hostname: str
    address: str
    ports: tuple[tuple[int, str], ...]
    env: tuple[str, ...]

    @property
    def host_names(self) -> str:
        return " ".join([self.alias, self.hostname, *([self.name] if self.name != self.alias else [])])


def link(alias: str, parent: str, other: Container, address: str) -> ContainerLink:
    ranges = stored(other.config.exposed_ports)
    ports = set(islice(chain.from_iterable(ranges), _MOST_PORTS))
    # Those of TCP first.
    ordered = sorted(ports, key=lambda port: (port[1] != "tcp", port[1], port[0]))
    return ContainerLink(
        alias, parent, other.name, other.config.hostname, address, tuple(ordered), tuple(other.config.env)
    )


def environment(links: Iterable[ContainerLink]) -> list[str]:
    return [entry for one in links for entry in _environment(one)]


def _environment(link: ContainerLink) -> list[str]:
    prefix = link.alias.upper().replace("-", "_")
    found = []
    if link.ports:
        number, protocol = min(link.ports, key=lambda port: (port[0], port[1] != "tcp"))
        found.append(f"{prefix}_PORT={protocol}://{link.address}:{number}")
    for first, last, protocol in _ranges(link.ports):
        name = f"{prefix}_PORT_{first}_{protocol.upper()}"
        found += [
            f"{name}_START={protocol}://{link.address}:{first}",
            f"{name}_ADDR={link.address}",
            f"{name}_PROTO={protocol}",
            f"{name}_PORT_START={first}",
            f"{name}_END={protocol}://{link.address}:{last}",
            f"{name}_PORT_END={last}",
        ]
    for number, protocol in link.ports:
        name = f"{prefix}_PORT_{number}_{protocol.upper()}"
        found += [
            f"{name}={protocol}://{link.address}:{number}",
            f"{name}_ADDR={link.address}",
            f"{name}_PORT={number}",
            f"{name}_PROTO={protocol}",
        ]
    found.append(f"{prefix}_NAME=/{link.parent}/{link.alias}")
    for entry in link.env:
        name, separator, value = entry.partition("=")
        if separator and name not in _NOT_PASSED_ON:
            found.append(f"{prefix}_ENV_{name}={value}")
    return found


def _ranges(ports: Sequence[tuple[int, str]]) -> list[tuple[int, int, str]]:
    """(first, last, protocol) of three and more ports that follow each other: for two of them dockerd sees no range."""
    found = []
    for (protocol, _), group in groupby(enumerate(ports), lambda item: (item[1][1], item[1][0] - item[0])):
        numbers = [port[0] for _, port in group]
        if len(numbers) > 2:
            found.append((numbers[0], numbers[-1], protocol))
    return found
