"""The messages for links that we build say what they should, read with the functions that read the kernel's own."""

import struct

import pytest

from husk.kernel import rtnetlink
from husk.kernel.netlink import attributes


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


@pytest.mark.parametrize(("mode", "flags"), [(0, 0), (1, 1), (2, 2)])
def test_an_ipvlan_has_its_parent_mode_and_flags_and_no_mac(mode, flags):
    payload = rtnetlink.add_ipvlan("eth0", 6, mode=mode, flags=flags, namespace=7).payload
    found = attributes(payload[16:])
    assert rtnetlink.parse_link(payload).kind == "ipvlan"
    assert (found[5], found[28], 1 in found) == (struct.pack("=I", 6), struct.pack("=I", 7), False)
    data = attributes(attributes(found[18])[2])
    assert data == {1: struct.pack("=H", mode), 2: struct.pack("=H", flags)}
