"""The messages we build say what they should, read with the functions that read the kernel's own."""

import struct
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.kernel import rtaddresses, rtnetlink
from husk.kernel.netlink import attribute, attributes, number


def test_a_bridge_has_its_name_kind_and_mac():
    message = rtnetlink.add_bridge("husk0", "02:42:ac:11:00:01")
    link = rtnetlink.parse_link(message.payload)
    assert (link.name, link.kind, link.master, link.up) == ("husk0", "bridge", 0, False)
    assert attributes(message.payload[16:])[1] == bytes.fromhex("0242ac110001")


def test_a_veth_has_its_bridge_and_a_peer_in_the_namespace():
    message = rtnetlink.add_veth("veth1", "eth0", peer_mac="02:42:ac:11:00:02", peer_namespace=7, master=5, mtu=1400)
    link = rtnetlink.parse_link(message.payload)
    assert (link.name, link.kind, link.master, link.mtu) == ("veth1", "veth", 5, 1400)
    info = attributes(attributes(message.payload[16:])[18])
    peer = attributes(info[2])[1]
    assert rtnetlink.parse_link(peer).name == "eth0"
    assert rtnetlink.parse_link(peer).mtu == 1400
    assert attributes(peer[16:])[28] == struct.pack("=I", 7)


def test_setting_a_link_up_changes_no_other_flag():
    payload = rtnetlink.set_up("lo").payload
    assert struct.unpack_from("=II", payload, 8) == (1, 1)
    assert rtnetlink.parse_link(payload).up


def test_an_alias_comes_back():
    assert rtnetlink.parse_link(rtnetlink.set_alias("husk0", "of husk").payload).alias == "of husk"


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
    assert route == rtaddresses.Route(IPv4Network("0.0.0.0/0"), 0)


def _route(kind: int) -> bytes:
    header = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 2, 253, kind, 0)
    return header + attribute(1, IPv4Address("10.5.0.0").packed) + number(4, 9)


def test_a_route_has_its_network_and_interface():
    assert rtaddresses.parse_route(_route(1)) == rtaddresses.Route(IPv4Network("10.5.0.0/16"), 9)


def test_a_local_route_is_left_out():
    assert rtaddresses.parse_route(_route(2)) is None


@pytest.mark.parametrize(("mode", "flags"), [(0, 0), (1, 1), (2, 2)])
def test_an_ipvlan_has_its_parent_mode_and_flags_and_no_mac(mode, flags):
    payload = rtnetlink.add_ipvlan("eth0", 6, mode=mode, flags=flags, namespace=7).payload
    found = attributes(payload[16:])
    assert rtnetlink.parse_link(payload).kind == "ipvlan"
    assert (found[5], found[28], 1 in found) == (struct.pack("=I", 6), struct.pack("=I", 7), False)
    data = attributes(attributes(found[18])[2])
    assert data == {1: struct.pack("=H", mode), 2: struct.pack("=H", flags)}


@pytest.mark.parametrize(("version", "family", "scope"), [(4, 2, 253), (6, 10, 0)])
def test_a_default_route_without_a_gateway_leaves_by_an_interface(version, family, scope):
    message = rtaddresses.direct_default_route(version, 9)
    header = struct.unpack_from("=BBBBBBBBI", message.payload)
    assert (header[0], header[1], header[6]) == (family, 0, scope)
    assert attributes(message.payload[12:]) == {4: struct.pack("=I", 9)}


def test_any_default_route_is_deleted_wherever_it_leads():
    assert rtaddresses.delete_default_route(4).payload[6] == 255
