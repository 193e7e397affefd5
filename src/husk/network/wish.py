"""What is an endpoint to have, and which addresses does it get? Pure."""

from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.network.ipam import AddressSpace
from husk.network.sandbox import Lease


class Wish(NamedTuple):
    """What an endpoint is to have; empty for whatever comes."""

    address: str = ""
    address6: str = ""
    mac: str = ""
    # The interface's name inside the container, and its settings.
    name: str = ""
    sysctls: tuple[tuple[str, str], ...] = ()
    # Addresses of the link besides those of the network.
    link_local: tuple[str, ...] = ()
    # Whether it takes an address of that kind, where the network has them.
    ipv6: bool = True

    def fits(self, lease: Lease) -> bool:
        """Whether the lease has an address that is wanted here."""
        return bool(self.address and self.address == lease.ip_address) or bool(
            self.address6 and self.address6 == lease.ip6_address
        )


ANYTHING = Wish()


def allocate(space: AddressSpace | None, wanted: str) -> IPv4Interface | IPv6Interface | None:
    if space is None:
        if wanted:
            raise InvalidParameter(f"no configured subnet contains IP address {wanted}")
        return None
    return ip_interface((space.allocate(ip_address(wanted) if wanted else None), space.subnet.prefixlen))
