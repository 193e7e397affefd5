"""The options of one endpoint. Pure."""

from msgspec import Struct

from husk.network.sandbox import Lease


class EndpointOptions(Struct, frozen=True):
    """The addresses, name and settings that an endpoint is to have; empty for whatever comes."""

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
        """Return True if the lease has an address that is wanted here."""
        return bool(self.address and self.address == lease.ip_address) or bool(
            self.address6 and self.address6 == lease.ip6_address
        )


DEFAULTS = EndpointOptions()
