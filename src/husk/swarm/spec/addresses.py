"""Addresses of this node for others, as clients write them: an address or an interface, with or without a port."""

import asyncio
import ipaddress
from collections.abc import Sequence

from husk.errors import InvalidParameter
from husk.network import own_addresses
from husk.text.endpoints import MANAGER_PORT, HostPort, read_endpoint

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_RIGHT = "must be {} IP address or network interface (with optional port number)"
_LISTEN = "listen address " + _RIGHT.format("an")
_DATA_PATH = "data path address must be a non-zero IP address or network interface (without a port number)"
_ADVERTISE = "advertise address " + _RIGHT.format("a non-zero")


async def listening(text: str) -> HostPort:
    """Read the address that the cluster port is to have."""
    found = _parted(text.removeprefix("tcp://"), _LISTEN)
    return HostPort(str(await _resolved(found.host, _LISTEN)), found.port or MANAGER_PORT)


async def advertised(text: str) -> HostPort:
    """Read the address to tell other nodes; without a wish the one that leads out. The port is 0 if none is named."""
    if not text:
        return HostPort(await asyncio.to_thread(own_addresses.outgoing), 0)
    found = _parted(text, _ADVERTISE)
    address = await _resolved(found.host, _ADVERTISE)
    if address.is_unspecified:
        raise InvalidParameter(_ADVERTISE)
    return HostPort(str(address), found.port)


async def data_path(text: str) -> str:
    """Read the address that other hosts send packets of networks to; empty without a wish."""
    address = await _resolved(text, _DATA_PATH) if text else None
    if address is not None and address.is_unspecified:
        raise InvalidParameter(_DATA_PATH)
    return str(address or "")


def _parted(text: str, wrong: str) -> HostPort:
    bare = text.count(":") > 1 and not text.startswith("[")
    try:
        return HostPort(text, 0) if bare else read_endpoint(text, 0)
    except InvalidParameter:
        raise InvalidParameter(wrong) from None


async def _resolved(host: str, wrong: str) -> _Address:
    try:
        # A scope (`%eth0`) says nothing to other hosts, and is no part of an address for Docker either.
        if "%" not in host:
            return ipaddress.ip_address(host)
    except ValueError:
        pass
    found = await asyncio.to_thread(own_addresses.of_interface, host)
    if found is None:
        raise InvalidParameter(wrong)
    return only(host, found)


def only(interface: str, addresses: Sequence[_Address]) -> _Address:
    """The one that an interface means: that of IPv4, else that of IPv6. Pure."""
    for version in (4, 6):
        of_it = [address for address in addresses if address.version == version]
        if len(of_it) > 1:
            raise InvalidParameter(
                f"interface {interface} has more than one IPv{version} address ({of_it[0]} and {of_it[1]})"
            )
        if of_it:
            return of_it[0]
    raise InvalidParameter(f"interface {interface} has no usable IPv4 or IPv6 addresses")
