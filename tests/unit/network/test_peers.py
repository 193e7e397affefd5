"""The kernel's tables of peers as they should be, and the messages that lead there from any other state."""

import struct
from ipaddress import IPv4Address, ip_address

from hypothesis import given
from hypothesis import strategies as st

from husk.kernel import rtaddresses
from husk.kernel.netlink import NetlinkMessage, attributes
from husk.network.ipam import mac_address
from husk.network.peers import OverlayPeer, Roll, Tables, difference, wanted

LOCAL = "192.0.2.1"
BRIDGE, VXLAN = 7, 8
# As `linux/neighbour.h` and `linux/rtnetlink.h` have them.
NDMSG = struct.Struct("=BxxxiHBB")
NEWNEIGH = 28
DST, LLADDR, PROTOCOL = 1, 2, 12
NTF_SELF = 0x02


def peer(number: int, host: int) -> OverlayPeer:
    address = IPv4Address("10.0.9.0") + number
    return OverlayPeer(str(address), mac_address(address), f"192.0.2.{host}")


def apply(tables: Tables, messages: list[NetlinkMessage]) -> Tables:
    """Apply the messages as the kernel would."""
    neighbours, stations, hosts = dict(tables.neighbours), set(tables.stations), dict(tables.hosts)
    for message in messages:
        family, index, _state, flags, _kind = NDMSG.unpack_from(message.payload)
        found = attributes(message.payload[NDMSG.size :])
        adding = message.type == NEWNEIGH
        mac = found.get(LLADDR, b"").hex(":")
        if family != 7:  # AF_BRIDGE
            assert index == BRIDGE
            address = ip_address(found[DST])
            if adding:
                assert found[PROTOCOL] == bytes([rtaddresses.TOLD_OF_PEER])
                neighbours[address] = mac
            else:
                del neighbours[address]
        elif flags & NTF_SELF:
            assert index == VXLAN
            if adding:
                hosts[mac] = ip_address(found[DST])
            else:
                del hosts[mac]
        else:
            assert index == VXLAN
            (stations.add if adding else stations.remove)(mac)
    return Tables(neighbours, frozenset(stations), hosts)


peers = st.lists(st.builds(peer, st.integers(1, 8), st.integers(1, 4)), max_size=12)


@given(peers, peers)
def test_messages_lead_from_any_peers_to_any_others(before, after):
    present, goal = wanted(before, LOCAL), wanted(after, LOCAL)
    messages = difference(present, goal, BRIDGE, VXLAN)
    assert apply(present, messages) == goal
    assert difference(goal, goal, BRIDGE, VXLAN) == []


@st.composite
def told(draw):
    """Peers whose MACs may be others' too, each at an address of its own."""
    macs = st.sampled_from([mac_address(IPv4Address("10.0.9.0") + number) for number in range(4)])
    spelled = st.builds(lambda mac, other: mac.replace(":", "-").upper() if other else mac, macs, st.booleans())
    hosts = draw(st.dictionaries(st.integers(1, 8), st.tuples(spelled, st.integers(1, 4)), max_size=8))
    return [OverlayPeer(f"10.0.9.{number}", mac, f"192.0.2.{host}") for number, (mac, host) in hosts.items()]


@given(st.lists(told(), max_size=6))
def test_what_was_told_last_is_enough_to_know_what_a_change_is(steps):
    roll, kernel = Roll(LOCAL), wanted([], LOCAL)
    for step in steps:
        kernel = apply(kernel, difference(*roll.change(step), BRIDGE, VXLAN))
        assert kernel == wanted(step, LOCAL)


def test_a_change_is_made_of_what_has_changed_alone():
    many = [peer(number, 2) for number in range(1, 200)]
    roll = Roll(LOCAL, many)
    before, after = roll.change([*many[1:], peer(201, 3)])
    assert len(before.neighbours) == len(after.neighbours) == 1
    assert roll.change([*many[1:], peer(201, 3)]) == (wanted([], LOCAL), wanted([], LOCAL))


def test_endpoints_of_this_host_are_not_told_of():
    assert wanted([peer(5, 1)], LOCAL) == wanted([], LOCAL)


def test_endpoints_on_hosts_of_the_other_version_of_ip_are_not_told_of():
    other = OverlayPeer("10.0.9.5", "02:42:0a:00:09:05", "2001:db8::2")
    assert wanted([other, peer(6, 2)], LOCAL) == wanted([peer(6, 2)], LOCAL)
    assert wanted([other, peer(6, 2)], "2001:db8::1") == wanted([other], "2001:db8::1")


def test_a_peer_that_moves_is_one_message():
    [message] = difference(wanted([peer(5, 2)], LOCAL), wanted([peer(5, 3)], LOCAL), BRIDGE, VXLAN)
    assert message.what == "send frames for 02:42:0a:00:09:05 to 192.0.2.3"


def test_new_peers_come_before_old_ones_go_and_the_way_is_made_from_its_end():
    messages = difference(wanted([peer(5, 2)], LOCAL), wanted([peer(6, 2)], LOCAL), BRIDGE, VXLAN)
    assert [message.what for message in messages] == [
        "send frames for 02:42:0a:00:09:06 to 192.0.2.2",
        "add station 02:42:0a:00:09:06",
        "add neighbour 10.0.9.6",
        "delete neighbour 10.0.9.5",
        "delete station 02:42:0a:00:09:05",
        "send no frames for 02:42:0a:00:09:05",
    ]


def test_a_mac_in_another_spelling_is_the_same():
    assert wanted([OverlayPeer("10.0.9.5", "02-42-0A-00-09-05", "192.0.2.2")], LOCAL) == wanted([peer(5, 2)], LOCAL)


def test_both_addresses_of_an_endpoint_are_at_one_mac():
    found = wanted([peer(5, 2), OverlayPeer("fd00::5", mac_address(IPv4Address("10.0.9.5")), "192.0.2.2")], LOCAL)
    assert len(found.neighbours) == 2
    assert len(found.hosts) == len(found.stations) == 1
