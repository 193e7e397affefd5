"""The addresses of one network: which are free, and whose are the others."""

import logging
from collections.abc import Iterable
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface, ip_network

from husk.errors import HuskError, InvalidParameter
from husk.network.endpoint import EndpointOptions
from husk.network.ipam import AddressSpace
from husk.network.sandbox import Lease

log = logging.getLogger(__name__)

Interface = IPv4Interface | IPv6Interface


class Allocator:
    """The subnets of one network, and which endpoint has which address."""

    def __init__(self, space: AddressSpace | None, space6: AddressSpace | None, reserved: Iterable[str]) -> None:
        self._space = space
        self._space6 = space6
        # Which interface an address belongs to: releasing a lease twice must not free its successor's address.
        self.owners: dict[str, str] = {}
        # All that has an interface on the network, by its name: in use, warm, or on its way back.
        self.leases: dict[str, Lease] = {}
        for text in reserved:
            if (found := self._space_of(text)) is not None:
                found.reserve(ip_address(text))

    @property
    def exhausted(self) -> bool:
        return any(space.exhausted for space in self._spaces)

    def usage(self, idle: Iterable[Lease]) -> dict[str, tuple[int, int]]:
        """(addresses in use, addresses left to give out) by subnet. What idle ones have is anybody's."""
        leases, found = list(idle), {}
        for space in self._spaces:
            texts = [lease.ip_address if space.subnet.version == 4 else lease.ip6_address for lease in leases]
            found[str(space.subnet)] = space.usage([ip_address(text) for text in texts if text])
        return found

    def take(self, options: EndpointOptions) -> tuple[Interface | None, Interface | None]:
        """The addresses of an endpoint, of both versions of IP or none."""
        address = _allocate(self._space, options.address)
        try:
            return address, _allocate(self._space6, options.address6) if options.ipv6 else None
        except HuskError:
            if address is not None:
                self.give_back(str(address.ip))
            raise

    def take_one(self, version: int) -> str:
        """An address for nobody's endpoint; empty when the network has none of that kind."""
        space = self._space if version == 4 else self._space6
        return str(space.allocate()) if space is not None else ""

    def is_taken(self, address: str) -> bool:
        space = self._space_of(address)
        return space is not None and ip_address(address) in space

    def give_back(self, address: str) -> None:
        if (space := self._space_of(address)) is not None:
            space.release(ip_address(address))

    def note(self, lease: Lease) -> None:
        """The addresses are taken; this is whose they are."""
        self.leases[lease.host_interface] = lease
        for address in filter(None, (lease.ip_address, lease.ip6_address)):
            self.owners[address] = lease.host_interface

    def adopt(self, lease: Lease) -> None:
        """One of an earlier daemon."""
        for text in filter(None, (lease.ip_address, lease.ip6_address)):
            space, address = self._space_of(text), ip_address(text)
            if space is None or address not in space.subnet:
                log.warning("%s of a running container is outside the network's subnets", text)
                continue
            space.reserve(address)
            self.owners[text] = lease.host_interface
        self.leases[lease.host_interface] = lease

    def free(self, lease: Lease) -> None:
        """Safe to call twice."""
        self.leases.pop(lease.host_interface, None)
        for address in filter(None, (lease.ip_address, lease.ip6_address)):
            if self.owners.get(address) == lease.host_interface:
                del self.owners[address]
                self.give_back(address)

    @property
    def _spaces(self) -> list[AddressSpace]:
        return [space for space in (self._space, self._space6) if space is not None]

    def _space_of(self, address: str) -> AddressSpace | None:
        return self._space6 if ":" in address else self._space


def subnet_of(gateway: Interface | None, ip_range: str, taken: Interface | None) -> AddressSpace | None:
    """The addresses of a gateway's subnet; None where there is no subnet."""
    if gateway is None:
        return None
    space = AddressSpace(gateway.network, ip_network(ip_range) if ip_range else None)
    if taken is not None:
        space.reserve(taken.ip)
    return space


def _allocate(space: AddressSpace | None, wanted: str) -> IPv4Interface | IPv6Interface | None:
    if space is None:
        if wanted:
            raise InvalidParameter(f"no configured subnet contains IP address {wanted}")
        return None
    return ip_interface((space.allocate(ip_address(wanted) if wanted else None), space.subnet.prefixlen))
