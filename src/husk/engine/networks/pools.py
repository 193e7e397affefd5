"""The address pools of a request for a network, read in Docker's words. Pure."""

import ipaddress
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from husk.engine.model.network import IpamConfig, Network, NetworkRequest
from husk.errors import Forbidden, InvalidParameter
from husk.text.subnets import edges, has_nobodys

_NO_POOL = IpamConfig()
# One of each kind is all that a driver takes; each is looked at several times.
_MOST_POOLS = 256
_MOST_AUXILIARY = 4096


def pool_of(request: NetworkRequest, version: int) -> IpamConfig:
    """Return the pool asked for of one kind of addresses; a pool that says nothing is for IPv4."""
    found = [config for config in request.ipam.config if (6 if is_ipv6(config) else 4) == version]
    return found[0] if found else _NO_POOL


def check(request: NetworkRequest, others: Iterable[Network]) -> None:
    """Raise for the first thing that is wrong. As dockerd, an IPv6 pool means nothing without EnableIPv6."""
    if len(request.ipam.config) > _MOST_POOLS:
        raise _wrong(f"too many address pools: {_MOST_POOLS} is the most")
    for version, enabled in ((4, request.enable_ipv4), (6, request.enable_ipv6)):
        if not enabled:
            continue
        found = [config for config in request.ipam.config if (6 if is_ipv6(config) else 4) == version]
        if len(found) > 1:
            driver = request.driver or "bridge"
            raise InvalidParameter(f"{driver} driver supports only one IPv{version} address pool")
        for config in found:
            _check_pool(config, version)
            if config.subnet and not request.config_only and _overlaps(config.subnet, others):
                raise Forbidden("invalid pool request: Pool overlaps with other one on this address space")


def named_gateway(pool: IpamConfig) -> str:
    """The gateway that its owner chose for a pool that `check` let pass."""
    return str(ipaddress.ip_address(pool.gateway)) if pool.gateway else ""


def gateway_of(pool: IpamConfig) -> str:
    """The gateway of a pool that `check` let pass: that which its owner named, or the first free address."""
    if pool.gateway or not pool.subnet:
        return named_gateway(pool)
    whole = ipaddress.ip_network(pool.subnet)
    within = ipaddress.ip_network(pool.ip_range) if pool.ip_range else whole
    taken = {ipaddress.ip_address(text) for text in pool.auxiliary_addresses.values()}
    for number in range(int(within.network_address), int(within.broadcast_address) + 1):
        address = within.network_address + (number - int(within.network_address))
        if address not in taken and not _is_special(address, whole):
            return str(address)
    raise InvalidParameter(f"invalid network config:\nno address is left for the gateway in {within}")


def is_ipv6(config: IpamConfig) -> bool:
    try:
        return bool(config.subnet) and ipaddress.ip_network(config.subnet, strict=False).version == 6
    except ValueError:
        return False


def _overlaps(subnet: str, others: Iterable[Network]) -> bool:
    wanted = ipaddress.ip_network(subnet)
    real = [other for other in others if not other.config_only]
    taken = [ipaddress.ip_network(text) for other in real for text in (other.subnet, other.subnet6) if text]
    return any(wanted.version == network.version and wanted.overlaps(network) for network in taken)


def _check_pool(config: IpamConfig, version: int) -> None:
    if not config.subnet:
        if config.gateway or config.ip_range or config.auxiliary_addresses:
            raise _wrong("no matching subnet: Subnet is needed with the rest of it")
        return
    subnet = _block("subnet", config.subnet)
    if has_nobodys(subnet):
        raise _wrong(f"invalid subnet {config.subnet}: containers cannot have these addresses")
    if subnet.prefixlen == subnet.max_prefixlen:
        raise _wrong(f"subnet {subnet} has no room for a gateway and a container")
    if config.ip_range:
        within = _block("ip-range", config.ip_range, version)
        if within.prefixlen < subnet.prefixlen:
            raise _wrong(f"invalid ip-range {within}: CIDR block is bigger than its parent subnet {subnet}")
        if within.network_address not in subnet:
            raise _wrong(f"invalid ip-range {within}: parent subnet {subnet} doesn't contain ip-range")
    _check_addresses(config, subnet)


def _block(what: str, text: str, version: int = 0) -> IPv4Network | IPv6Network:
    """Addresses of that `version`, where one is given."""
    try:
        found = ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        found = None
    if found is None:
        raise _wrong(f"invalid {what} {text}: invalid CIDR block notation")
    if version not in (0, found.version):
        raise _wrong(f"invalid {what} {text}: parent subnet is an IPv{version} block")
    written = ipaddress.ip_interface(text)
    if written.ip != found.network_address:
        raise _wrong(f"invalid {what} {written}: it should be {found}")
    return found


def _check_addresses(config: IpamConfig, subnet: IPv4Network | IPv6Network) -> None:
    if len(config.auxiliary_addresses) > _MOST_AUXILIARY:
        raise _wrong(f"too many auxiliary addresses: {_MOST_AUXILIARY} of a subnet is the most")
    taken = set()
    named = {f"auxiliary address {name}": text for name, text in config.auxiliary_addresses.items()}
    for what, text in {f"gateway {config.gateway}": config.gateway, **named}.items():
        if not text:
            continue
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise _wrong(f"invalid {what}: invalid address") from None
        if address.version != subnet.version:
            raise _wrong(f"invalid {what}: parent subnet is an IPv{subnet.version} block")
        if address not in subnet:
            raise _wrong(f"invalid {what}: parent subnet {subnet} doesn't contain this address")
        if _is_special(address, subnet):
            raise _wrong(f"invalid {what}: {address} stands for the subnet {subnet} itself, or for all in it")
        if address in taken:
            raise Forbidden("failed to allocate secondary ip address: Address already in use")
        taken.add(address)


def _wrong(what: str) -> InvalidParameter:
    return InvalidParameter(f"invalid network config:\n{what}")


def _is_special(address: IPv4Address | IPv6Address, subnet: IPv4Network | IPv6Network) -> bool:
    first, last = edges(subnet)
    return not first <= int(address) <= last
