"""Messages about VXLAN say what they should, read with the functions that read the kernel's own."""

import struct
from ipaddress import IPv4Address, IPv6Address

import pytest

from husk.kernel import rtvxlan
from husk.kernel.netlink import attribute, attributes, number
from husk.kernel.rtnetlink import add_bridge
from husk.kernel.rtvxlan import Forwarding, VxlanTunnel

MAC = "02:42:0a:00:09:05"


@pytest.mark.parametrize("local", [IPv4Address("192.0.2.1"), IPv6Address("2001:db8::1")])
def test_a_tunnel_comes_back(local):
    tunnel = VxlanTunnel(4097, 4789, local)
    assert rtvxlan.parse_tunnel(rtvxlan.add_vxlan("vx0", MAC, tunnel, 1450).payload) == tunnel


def test_another_interface_is_no_tunnel():
    assert rtvxlan.parse_tunnel(add_bridge("br0", MAC).payload) is None


def test_a_remote_has_its_host():
    message = rtvxlan.add_remote(8, MAC, IPv4Address("192.0.2.2"))
    assert rtvxlan.parse_forwarding(message.payload, 8) == Forwarding(MAC, IPv4Address("192.0.2.2"))
    assert rtvxlan.parse_forwarding(message.payload, 9) is None


@pytest.mark.parametrize(("state", "found"), [(0x40, Forwarding(MAC, None)), (0x80, None)])
def test_a_station_that_is_the_port_itself_is_left_out(state, found):
    payload = struct.pack("=BxxxiHBB", 7, 8, state, 0, 0)
    payload += attribute(2, bytes.fromhex(MAC.replace(":", ""))) + number(9, 7)
    assert rtvxlan.parse_forwarding(payload, 8) == found


def test_what_is_neither_a_host_nor_on_a_bridge_is_left_out():
    payload = struct.pack("=BxxxiHBB", 7, 8, 0x40, 0, 0) + attribute(2, bytes(6))
    assert rtvxlan.parse_forwarding(payload, 8) is None


def test_a_told_port_learns_and_floods_nothing():
    info = attributes(attributes(rtvxlan.set_told_port("vx0").payload[16:])[18])
    port = attributes(info[5])
    assert port == {8: b"\0", 9: b"\0", 27: b"\0", 30: b"\0", 32: b"\1"}


def test_deletions_name_the_table():
    assert rtvxlan.delete_remote(8, MAC).payload[10] == 2
    assert rtvxlan.delete_station(8, MAC).payload[10] == 4
