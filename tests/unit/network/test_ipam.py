"""Addresses are given once until they come back; subnets never overlap what the host can reach already."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.config import AddressPool
from husk.errors import Forbidden, InvalidParameter, Unavailable
from husk.network.ipam import (
    DEFAULT_POOLS,
    AddressSpace,
    choose_subnet,
    choose_subnet_6,
    first_host,
    mac_address,
    special,
    subnets,
    unique_local,
)

A = IPv4Address
N = IPv4Network


def test_the_lowest_free_address_is_given():
    space = AddressSpace(N("172.17.0.0/16"))
    space.reserve(A("172.17.0.1"))
    assert [space.allocate() for _ in range(3)] == [A("172.17.0.2"), A("172.17.0.3"), A("172.17.0.4")]
    space.release(A("172.17.0.3"))
    assert [space.allocate() for _ in range(2)] == [A("172.17.0.3"), A("172.17.0.5")]


def test_a_full_subnet_has_no_network_or_broadcast_address_to_give():
    space = AddressSpace(N("10.0.0.0/29"))
    given_out = {space.allocate() for _ in range(6)}
    assert given_out == set(N("10.0.0.0/29").hosts())
    with pytest.raises(Unavailable, match="no available IPv4 addresses"):
        space.allocate()


def test_a_wanted_address_is_given_once():
    space = AddressSpace(N("10.0.0.0/24"))
    assert space.allocate(A("10.0.0.9")) == A("10.0.0.9")
    with pytest.raises(Forbidden, match="Address already in use"):
        space.allocate(A("10.0.0.9"))


@pytest.mark.parametrize("address", ["10.0.1.1", "10.0.0.0", "10.0.0.255"])
def test_a_wanted_address_must_be_a_host_of_the_subnet(address):
    with pytest.raises(InvalidParameter, match=address):
        AddressSpace(N("10.0.0.0/24")).allocate(A(address))


def test_reserving_an_address_of_another_subnet_changes_nothing():
    space = AddressSpace(N("10.0.0.0/24"))
    space.reserve(A("10.0.1.1"))
    assert len(space) == 0


@pytest.mark.parametrize("subnet", [N("10.0.0.0/32"), IPv6Network("fd00::/128")])
def test_a_subnet_needs_room_for_a_gateway_and_a_container(subnet):
    with pytest.raises(InvalidParameter, match="no room"):
        AddressSpace(subnet)


@pytest.mark.parametrize("subnet", [N("10.0.0.4/31"), IPv6Network("fd00::4/127")])
def test_both_addresses_of_a_subnet_of_two_are_given_out(subnet):
    space = AddressSpace(subnet)
    assert [space.allocate(), space.allocate()] == list(subnet)
    assert space.exhausted


@pytest.mark.parametrize(("subnet", "count"), [("10.0.0.0/24", 2), ("10.0.0.0/31", 0), ("fd00::/64", 1)])
def test_how_many_addresses_are_no_hosts(subnet, count):
    assert special(subnet) == count


operations = st.lists(st.tuples(st.sampled_from(["allocate", "release", "reserve"]), st.integers(0, 17)))


@given(operations)
def test_no_address_is_given_twice_whatever_happens_in_between(steps):
    subnet = N("10.0.0.0/28")
    space = AddressSpace(subnet)
    taken: set[IPv4Address] = set()
    hosts = list(subnet.hosts())
    for operation, offset in steps:
        address = subnet.network_address + offset
        if operation == "release":
            space.release(address)
            taken.discard(address)
        elif operation == "reserve":
            space.reserve(address)
            taken |= {address} & set(hosts)
        elif len(taken) == len(hosts):
            with pytest.raises(Unavailable):
                space.allocate()
        else:
            free = min(set(hosts) - taken)
            assert space.allocate() == free
            taken.add(free)
        assert len(space) == len(taken)
        assert all(host in space for host in taken)


def test_the_default_pools_are_dockers():
    offered = [str(subnet) for subnet in subnets(DEFAULT_POOLS)]
    assert offered[:15] == [f"172.{second}.0.0/16" for second in range(17, 32)]
    assert offered[15:] == [f"192.168.{third}.0/20" for third in range(0, 256, 16)]


def test_the_first_free_subnet_is_chosen():
    assert choose_subnet((), []) == N("172.17.0.0/16")
    assert choose_subnet((), [N("172.17.5.0/24")]) == N("172.18.0.0/16")
    assert choose_subnet((), [N("172.16.0.0/12")]) == N("192.168.0.0/20")


@pytest.mark.parametrize("routes", [["0.0.0.0/0"], ["0.0.0.0/1", "128.0.0.0/1"]])
def test_default_routes_take_no_subnet(routes):
    assert choose_subnet((), [N(route) for route in routes]) == N("172.17.0.0/16")


def test_configured_pools_replace_the_default_ones():
    pools = (AddressPool("10.9.0.0/23", 24),)
    assert choose_subnet(pools, [N("10.9.0.0/24")]) == N("10.9.1.0/24")
    with pytest.raises(Unavailable, match="fully subnetted"):
        choose_subnet(pools, [N("10.9.0.0/16")])


@pytest.mark.parametrize("pool", [AddressPool("10.9.0.1/16", 24), AddressPool("10.9.0.0/24", 16), AddressPool("x", 24)])
def test_an_impossible_pool_is_refused_by_name(pool):
    with pytest.raises(InvalidParameter, match=pool.base):
        choose_subnet((pool,), [])


@pytest.mark.parametrize("size", [31, 32, 33, -1])
def test_a_pool_of_an_impossible_size_is_refused(size):
    with pytest.raises(InvalidParameter, match="invalid default address pool"):
        choose_subnet((AddressPool("10.9.0.0/16", size),), [])


routes = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(4, 32)).map(lambda pair: N(pair, strict=False)))


@given(routes)
def test_a_chosen_subnet_overlaps_no_route(taken):
    try:
        chosen = choose_subnet((), taken)
    except Unavailable:
        assert all(any(offer.overlaps(route) for route in taken) for offer in subnets(DEFAULT_POOLS))
    else:
        assert not any(chosen.overlaps(route) for route in taken)


def test_the_gateway_is_the_first_host():
    assert str(first_host(N("172.17.0.0/16"))) == "172.17.0.1/16"


def test_a_mac_follows_from_its_address():
    assert mac_address(A("172.17.0.2")) == "02:42:ac:11:00:02"


def test_of_two_routes_that_begin_alike_the_wider_one_counts():
    pools = (AddressPool("10.0.0.0/8", 24),)
    taken = [N("10.0.0.0/24"), N("10.0.0.0/16"), N("10.1.0.0/25")]
    assert str(choose_subnet(pools, taken)) == "10.1.1.0/24"


def test_ipv6_subnets_are_of_this_host_alone_and_do_not_overlap():
    base = unique_local("one host")
    assert base != unique_local("another host")
    assert base.prefixlen == 48 and base.is_private
    first = choose_subnet_6(base, [N("10.0.0.0/8")])
    second = choose_subnet_6(base, [first])
    assert (first.prefixlen, second.prefixlen, first.overlaps(second)) == (64, 64, False)


def test_ipv6_subnets_come_from_the_pools_that_are_of_ipv6():
    base = unique_local("one host")
    pools = (AddressPool("10.9.0.0/16", 24), AddressPool("fd00:1::/63", 64), AddressPool("fd00::/16", 80))
    given: list[IPv6Network] = []
    for _ in range(3):
        given.append(choose_subnet_6(base, given, pools))
    assert given == [IPv6Network("fd00:1::/64"), IPv6Network("fd00:1:0:1::/64"), IPv6Network("fd00::/80")]
    wide = [IPv6Network("fd00::/17"), IPv6Network("fd00:8000::/18")]
    assert choose_subnet_6(base, wide, pools) == IPv6Network("fd00:c000::/80"), "at once, however many are taken"
    assert str(choose_subnet(pools, [])) == "10.9.0.0/24"
    with pytest.raises(Unavailable, match="IPv6 address pools fd00:1::/63 are in use"):
        choose_subnet_6(base, [IPv6Network("fd00:1::/63")], pools[1:2])
    with pytest.raises(Unavailable, match="of IPv4"):
        choose_subnet(pools[1:], [])


def test_an_ipv6_space_gives_out_its_addresses_after_the_first():
    space = AddressSpace(IPv6Network("fd00::/126"))
    assert [str(space.allocate()) for _ in range(3)] == ["fd00::1", "fd00::2", "fd00::3"]
    with pytest.raises(Unavailable, match="no available IPv6 addresses"):
        space.allocate()


def test_a_mac_follows_from_an_address_of_either_kind():
    assert mac_address(A("172.17.0.2")) == "02:42:ac:11:00:02"
    six = [mac_address(IPv6Address(f"fd00::{number}")) for number in (2, 2, 3)]
    assert six[0] == six[1] != six[2]
    assert all(mac.startswith("02:42:") and len(mac) == 17 for mac in six)
