"""Subnets: which of their addresses a host may have, and a bridge's own address as settings give it. Pure."""

from ipaddress import IPv4Interface, IPv4Network, IPv6Network

from husk.errors import InvalidParameter

# Addresses that no host has: "this network", the loopback's, and those of groups.
_NOBODYS: dict[int, tuple[IPv4Network | IPv6Network, ...]] = {
    4: (IPv4Network("0.0.0.0/8"), IPv4Network("127.0.0.0/8"), IPv4Network("224.0.0.0/4")),
    6: (IPv6Network("::1/128"), IPv6Network("ff00::/8")),
}


def has_nobodys(subnet: IPv4Network | IPv6Network) -> bool:
    """Return True if the subnet has addresses that no host may have, wherever it is."""
    return any(subnet.overlaps(one) for one in _NOBODYS[subnet.version])


def edges(subnet: IPv4Network | IPv6Network) -> tuple[int, int]:
    """The first and the last address that a host may have.

    Network and broadcast address are none; in IPv6 the first one means any router, and the last is one like the others.
    A subnet of two (RFC 3021, RFC 6164) has no such addresses.
    """
    first, last = int(subnet.network_address), int(subnet.broadcast_address)
    if last - first == 1:
        return first, last
    return first + 1, last - (subnet.version == 4)


def parse_bip(text: str) -> IPv4Interface:
    """The bridge's own address with its prefix length, as `bip` in the configuration gives it."""
    try:
        interface = IPv4Interface(text)
    except ValueError as error:
        raise InvalidParameter(f"invalid bip {text!r}: {error}") from error
    network = interface.network
    if "/" not in text or network.prefixlen == network.max_prefixlen:
        raise InvalidParameter(f"invalid bip {text!r}: an address with a prefix length up to /31 is needed")
    first, last = edges(network)
    if not first <= int(interface.ip) <= last or has_nobodys(IPv4Network(interface.ip)):
        raise InvalidParameter(f"invalid bip {text!r}: {interface.ip} is no address for a host")
    return interface
