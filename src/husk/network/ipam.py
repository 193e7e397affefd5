"""The choice of a network's subnet, and of an endpoint's address. Pure bookkeeping, no I/O."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network, ip_network

from husk.config import AddressPool
from husk.errors import Forbidden, InvalidParameter, Unavailable
from husk.text.subnets import edges

# The ranges dockerd hands out when nobody configured others, in its order.
DEFAULT_POOLS = (
    AddressPool("172.17.0.0/16", 16),
    AddressPool("172.18.0.0/16", 16),
    AddressPool("172.19.0.0/16", 16),
    AddressPool("172.20.0.0/14", 16),
    AddressPool("172.24.0.0/14", 16),
    AddressPool("172.28.0.0/14", 16),
    AddressPool("192.168.0.0/16", 20),
)

# A VPN may split the default route into 0.0.0.0/1 and 128.0.0.0/1: routes this wide claim no addresses.
_WIDEST_ROUTE = 4

# The narrowest that has a network and a broadcast address, and room for a gateway and an endpoint beside them.
_NARROWEST_SUBNET = 30
_SIZE_6 = 64


def special(subnet: str) -> int:
    """Count the addresses of a subnet that no host may have: they count as taken."""
    whole = ip_network(subnet)
    first, last = edges(whole)
    return whole.num_addresses - (last - first + 1)


class AddressSpace:
    """The addresses of one subnet: which are taken.

    `within` narrows what is given out to those who want no address in particular.
    """

    def __init__(self, subnet: IPv4Network | IPv6Network, within: IPv4Network | IPv6Network | None = None) -> None:
        if subnet.prefixlen == subnet.max_prefixlen:
            raise InvalidParameter(f"subnet {subnet} has no room for a gateway and a container")
        self.subnet = subnet
        self._first, self._last = edges(subnet)
        self._taken: set[int] = set()
        self._begin, self._end = self._first, self._last
        if within is not None:
            self._begin = max(self._first, int(within.network_address))
            self._end = min(self._last, int(within.broadcast_address))
        # Everything between the first address to give out and this one is taken.
        self._lowest = self._begin

    def __contains__(self, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the address is taken."""
        return int(address) in self._taken

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def exhausted(self) -> bool:
        """True if no address is left for those who want none in particular."""
        self._advance()
        return self._lowest > self._end

    def usage(self, idle: Iterable[IPv4Address | IPv6Address] = ()) -> tuple[int, int]:
        """(how many addresses are in use, how many are left to give out); those that are idle count as free."""
        used = self._taken - {int(address) for address in idle}
        left = self._end - self._begin + 1 - sum(self._begin <= address <= self._end for address in used)
        return len(used), left

    def allocate(self, wanted: IPv4Address | IPv6Address | None = None) -> IPv4Address | IPv6Address:
        """Take the wanted address, or the lowest free one."""
        if wanted is not None:
            if wanted.version != self.subnet.version or not self._first <= int(wanted) <= self._last:
                raise InvalidParameter(f"no configured subnet contains IP address {wanted}")
            if int(wanted) in self._taken:
                raise Forbidden("Address already in use")
            self._taken.add(int(wanted))
            return wanted
        if self.exhausted:
            raise Unavailable(
                f"no available IPv{self.subnet.version} addresses on this network's address pools: {self.subnet}"
            )
        self._taken.add(self._lowest)
        return IPv4Address(self._lowest) if self.subnet.version == 4 else IPv6Address(self._lowest)

    def _advance(self) -> None:
        while self._lowest in self._taken:
            self._lowest += 1

    def reserve(self, address: IPv4Address | IPv6Address) -> None:
        """Note that an address is in use already; one of another subnet concerns nobody here."""
        if self._first <= int(address) <= self._last:
            self._taken.add(int(address))

    def release(self, address: IPv4Address | IPv6Address) -> None:
        """Give an address back; nothing happens when it was free."""
        if int(address) in self._taken:
            self._taken.discard(int(address))
            self._lowest = min(self._lowest, max(self._begin, int(address)))


def subnets(pools: Sequence[AddressPool]) -> Iterator[IPv4Network]:
    """Every IPv4 subnet the pools offer, in order."""
    for pool in pools:
        if is_ipv6(pool):
            continue
        try:
            base = IPv4Network(pool.base)
            if pool.size > _NARROWEST_SUBNET:
                raise ValueError(f"size {pool.size} is larger than {_NARROWEST_SUBNET}")
            yield from base.subnets(new_prefix=pool.size)
        except ValueError as error:
            raise InvalidParameter(f"invalid default address pool {pool.base} of size {pool.size}: {error}") from error


def overlaps(subnet: IPv4Network | IPv6Network, taken: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Return True if addresses of the subnet are already reached some other way than through a default route."""
    return any(
        route.prefixlen >= _WIDEST_ROUTE and subnet.version == route.version and subnet.overlaps(route)
        for route in taken
    )


class _Ranges:
    """Networks of one kind as ranges of numbers, for who asks many times whether something overlaps one of many."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        narrow = [network for network in networks if network.prefixlen >= _WIDEST_ROUTE]
        # Networks lie apart or inside each other: with the widest first, what begins inside the last one ends there.
        for first, last in sorted(
            ((int(one.network_address), int(one.broadcast_address)) for one in narrow),
            key=lambda one: (one[0], -one[1]),
        ):
            if not self._lasts or first > self._lasts[-1]:
                self._firsts.append(first)
                self._lasts.append(last)

    def overlap(self, subnet: IPv4Network | IPv6Network) -> bool:
        return self.last_of_overlap(subnet) is not None

    def last_of_overlap(self, subnet: IPv4Network | IPv6Network) -> int | None:
        """The last address of the range that overlaps the subnet, and ends last of all that do."""
        before = bisect_right(self._firsts, int(subnet.broadcast_address)) - 1
        if before < 0 or self._lasts[before] < int(subnet.network_address):
            return None
        return self._lasts[before]


def choose_subnet(pools: Sequence[AddressPool], taken_routes: Iterable[IPv4Network | IPv6Network]) -> IPv4Network:
    """The first IPv4 subnet of the pools (dockerd's when there are none) that overlaps no route of the host."""
    taken = _Ranges(route for route in taken_routes if route.version == 4)
    for subnet in subnets(pools or DEFAULT_POOLS):
        if not taken.overlap(subnet):
            return subnet
    raise Unavailable(
        "all predefined address pools have been fully subnetted: every one of IPv4 overlaps a route of this host; "
        "configure others with default-address-pools or bip"
    )


def unique_local(seed: str) -> IPv6Network:
    """The IPv6 addresses that networks get on the host with this name: local ones that no other site has (RFC 4193)."""
    return IPv6Network((b"\xfd" + hashlib.sha256(seed.encode()).digest()[:5] + bytes(10), 48))


def choose_subnet_6(
    base: IPv6Network, taken: Iterable[IPv4Network | IPv6Network], pools: Sequence[AddressPool] = ()
) -> IPv6Network:
    """The first subnet of the pools that overlaps nothing; of the base, a /64, where no pool is of IPv6."""
    others = _Ranges(network for network in taken if network.version == 6)
    own = [pool for pool in pools if is_ipv6(pool)] or [AddressPool(str(base), max(_SIZE_6, base.prefixlen))]
    for pool in own:
        if (found := _first_free_6(IPv6Network(pool.base), pool.size, others)) is not None:
            return found
    raise Unavailable(f"all subnets of the IPv6 address pools {', '.join(pool.base for pool in own)} are in use")


def _first_free_6(base: IPv6Network, size: int, taken: "_Ranges") -> IPv6Network | None:
    """A pool may hold more subnets than can be counted: what is taken is skipped in one step."""
    step = 1 << (base.max_prefixlen - size)
    first = int(base.network_address)
    while first <= int(base.broadcast_address):
        subnet = IPv6Network((first, size))
        if (last := taken.last_of_overlap(subnet)) is None:
            return subnet
        first = (last // step + 1) * step
    return None


def is_ipv6(pool: AddressPool) -> bool:
    return ":" in pool.base


def first_host(subnet: IPv4Network) -> IPv4Interface:
    """The gateway's address when nobody chose one."""
    return IPv4Interface((int(subnet.network_address) + 1, subnet.prefixlen))


def first_host_6(subnet: IPv6Network) -> IPv6Interface:
    return IPv6Interface((int(subnet.network_address) + 1, subnet.prefixlen))


def mac_address(address: IPv4Address | IPv6Address, beginning: bytes = b"\x02\x42") -> str:
    """A MAC that follows from the address: neighbours' caches stay right when another container gets the address."""
    ending = address.packed if address.version == 4 else hashlib.sha256(address.packed).digest()[:4]
    return ":".join(f"{byte:02x}" for byte in beginning + ending)
