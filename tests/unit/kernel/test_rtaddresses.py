"""Messages for addresses and routes say what they should, read with the functions that read the kernel's own."""

import struct
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.kernel import rtaddresses
from husk.kernel.netlink import attribute, attributes, number


@given(st.integers(0, 2**32 - 1), st.integers(0, 32), st.integers(1, 2**31))
def test_an_address_comes_back(value, prefix, index):
    interface = IPv4Interface((value, prefix))
    address = rtaddresses.parse_address(rtaddresses.add_address(index, interface).payload)
    assert (address.index, address.interface) == (index, interface)


def test_the_local_end_of_a_point_to_point_link_is_its_address():
    payload = struct.pack("=BBBBI", 2, 32, 0, 0, 3)
    payload += attribute(1, IPv4Address("10.0.0.2").packed) + attribute(2, IPv4Address("10.0.0.1").packed)
    assert rtaddresses.parse_address(payload).interface == IPv4Interface("10.0.0.1/32")


def test_a_default_route_is_the_network_of_all_addresses():
    route = rtaddresses.parse_route(rtaddresses.add_default_route(IPv4Address("172.17.0.1")).payload)
    assert route == rtaddresses.KernelRoute(IPv4Network("0.0.0.0/0"), 0)


def _route(kind: int) -> bytes:
    header = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 2, 253, kind, 0)
    return header + attribute(1, IPv4Address("10.5.0.0").packed) + number(4, 9)


def test_a_route_has_its_network_and_interface():
    assert rtaddresses.parse_route(_route(1)) == rtaddresses.KernelRoute(IPv4Network("10.5.0.0/16"), 9)


def test_a_local_route_is_left_out():
    assert rtaddresses.parse_route(_route(2)) is None


@pytest.mark.parametrize(("version", "family", "scope"), [(4, 2, 253), (6, 10, 0)])
def test_a_default_route_without_a_gateway_leaves_by_an_interface(version, family, scope):
    message = rtaddresses.direct_default_route(version, 9)
    header = struct.unpack_from("=BBBBBBBBI", message.payload)
    assert (header[0], header[1], header[6]) == (family, 0, scope)
    assert attributes(message.payload[12:]) == {4: struct.pack("=I", 9)}


def test_any_default_route_is_deleted_wherever_it_leads():
    assert rtaddresses.delete_default_route(4).payload[6] == 255


@pytest.mark.parametrize("address", [IPv4Address("10.0.0.2"), IPv6Address("fd00::2")])
def test_a_neighbour_that_we_tell_of_is_permanent(address):
    message = rtaddresses.add_neighbour(7, address, "02:42:ac:11:00:02")
    assert rtaddresses.parse_neighbour(message.payload) == rtaddresses.Neighbour(
        7, address, permanent=True, mac="02:42:ac:11:00:02", told=rtaddresses.TOLD_HERE
    )
