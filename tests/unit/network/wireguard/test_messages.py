"""Messages to the kernel's own WireGuard, and its answers."""

import struct

from husk.kernel.netlink import attribute, nested, text
from husk.network.wireguard import messages
from husk.network.wireguard.parties import DeviceChange, DeviceState, Party

ONE, TWO, OWN = b"1" * 32, b"2" * 32, b"0" * 32
FOUR = Party(ONE, "fe80::1", "192.0.2.1", 51820)
SIX = Party(TWO, "fe80::2", "2001:db8::2", 51821)


def test_what_it_was_told_is_what_it_tells():
    """A change and a listing have the same form."""
    own, parties = messages.change(30, "wg", DeviceChange(OWN, 51820, (FOUR, SIX)))
    assert own.type == parties.type == 30
    assert messages.parse([own.payload, parties.payload]) == DeviceState(OWN, 51820, {ONE: FOUR, TWO: SIX})


def test_who_is_gone_is_told_first():
    [told] = messages.change(30, "wg", DeviceChange(parties=(FOUR,), gone=(TWO,)))
    assert told.payload.index(TWO) < told.payload.index(ONE)
    assert list(messages.parse([told.payload]).parties) == [TWO, ONE]


def test_many_take_several_messages():
    many = tuple(Party(n.to_bytes(32), "fe80::1", "192.0.2.1", 1) for n in range(1, 302))
    told = messages.change(30, "wg", DeviceChange(parties=many))
    assert len(told) == 2 and len(messages.parse(one.payload for one in told).parties) == 301


def test_a_new_device_knows_nothing():
    head = struct.pack("=BBH", 0, 1, 0)
    listed = head + text(2, "wg") + attribute(3, bytes(32)) + attribute(6, bytes(2)) + nested(8)
    assert messages.parse([listed]) == DeviceState()


def test_wireguard_is_found_among_others():
    def family(name: str, number: int) -> bytes:
        return struct.pack("=BBH", 1, 2, 0) + text(2, name) + attribute(1, struct.pack("=H", number))

    assert messages.family_of([family("nl80211", 28), family("wireguard", 30)]) == 30
    assert messages.family_of([family("nl80211", 28)]) == 0
    assert messages.list_families().type == 16
    assert messages.get(30, "wg").payload.endswith(b"wg\0\0")
