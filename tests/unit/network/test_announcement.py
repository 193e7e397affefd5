"""The frames with which an endpoint tells its network of itself, byte by byte."""

from ipaddress import IPv6Address

from husk.errors import Unavailable
from husk.network import announcement
from husk.network.announcement import Acquaintances, checksum, delay, frames
from husk.network.sandbox import Lease

MAC = "02:42:0a:00:00:02"
LEASE = Lease("/run/x", "veth0", "10.0.0.2", 24, "10.0.0.1", MAC)


def test_an_ipv4_address_is_asked_for_by_its_owner():
    (frame,) = frames(LEASE)
    own = bytes.fromhex("02420a000002")
    assert frame[:14] == b"\xff" * 6 + own + b"\x08\x06"
    assert frame[14:] == bytes.fromhex("0001080006040001") + own + b"\x0a\0\0\x02" + bytes(6) + b"\x0a\0\0\x02"


def test_an_ipv6_address_is_advertised_to_all_nodes():
    lease = Lease("/run/x", "veth0", "", 0, "", MAC, ip6_address="fd00::2", prefix6_len=64)
    (frame,) = frames(lease)
    assert frame[:14] == bytes.fromhex("33330000000102420a00000286dd")
    source, target = IPv6Address("fd00::2").packed, IPv6Address("ff02::1").packed
    assert frame[14:54] == bytes.fromhex("6000000000203aff") + source + target
    message = frame[54:]
    assert message[0] == 136 and message[4] == 0x20, "unsolicited, and to be believed"
    assert message[8:] == source + bytes.fromhex("020102420a000002")
    assert checksum(source + target + len(message).to_bytes(4) + bytes([0, 0, 0, 58]) + message) == 0


def test_both_are_told_of_and_nothing_without_a_mac():
    both = Lease("/run/x", "veth0", "10.0.0.2", 24, "", MAC, ip6_address="fd00::2", prefix6_len=64)
    assert len(frames(both)) == 2
    assert frames(Lease("/run/x", "veth0", "10.0.0.2", 24, "", "")) == []


def test_who_has_a_mac_that_the_address_never_had_says_so_at_once():
    assert delay(LEASE) > 0
    assert delay(Lease("/run/x", "veth0", "10.0.0.2", 24, "10.0.0.1", "02:00:00:00:00:07")) == 0


def test_an_address_that_always_had_its_usual_mac_is_no_news():
    known = Acquaintances()
    assert not known.is_news(LEASE) and not known.is_news(LEASE)
    chosen = Lease("/run/x", "veth1", "10.0.0.2", 24, "10.0.0.1", "02:00:00:00:00:07")
    assert known.is_news(chosen)
    assert known.is_news(LEASE), "who knows the address by the chosen one is to hear of it"
    assert not known.is_news(Lease("/run/x", "veth2", "10.0.0.3", 24, "10.0.0.1", "02:42:0a:00:00:03"))


def test_an_ipv6_address_beside_an_ipv4_address_has_not_always_the_same_mac():
    both = Lease("/run/x", "veth0", "10.0.0.2", 24, "", MAC, ip6_address="fd00::2", prefix6_len=64)
    assert Acquaintances().is_news(both)


async def test_a_host_that_lets_no_thread_be_started_hears_nothing() -> None:
    asked: list[Lease] = []

    def say(lease: Lease) -> None:
        asked.append(lease)
        raise Unavailable("this host lets no thread be started now")

    await announcement.repeat(LEASE, 3, 0.0, say)
    assert asked == [LEASE]
