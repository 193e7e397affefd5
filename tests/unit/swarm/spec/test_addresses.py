"""Addresses that a node says it is at."""

from ipaddress import ip_address

import pytest

from husk.errors import InvalidParameter
from husk.network import own_addresses
from husk.swarm.spec.addresses import advertised, data_path, listening, only
from husk.text.endpoints import HostPort


async def test_addresses_are_taken_as_they_are() -> None:
    assert await listening("[::]:5") == HostPort("::", 5)
    assert await listening("tcp://127.0.0.1") == HostPort("127.0.0.1", 2377)
    assert await advertised("192.0.2.7") == HostPort("192.0.2.7", 0)
    assert await advertised("192.0.2.7:99") == HostPort("192.0.2.7", 99)
    assert await advertised("2001:db8::1") == HostPort("2001:db8::1", 0)


async def test_an_interface_stands_for_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_addresses, "of_interface", {"eth7": [ip_address("192.0.2.7")]}.get)
    monkeypatch.setattr(own_addresses, "outgoing", lambda: "192.0.2.8")
    assert await advertised("eth7:99") == HostPort("192.0.2.7", 99)
    assert await listening("eth7") == HostPort("192.0.2.7", 2377)
    assert await advertised("") == HostPort("192.0.2.8", 0)


@pytest.mark.parametrize(
    "wrong",
    ["eth8", "0.0.0.0", "::", "garbage:::", "a b", "[::1", "192.0.2.7:x", "fe80::1%eth0", "[fe80::1%eth0]:2377"],
)
async def test_what_nobody_can_be_found_by(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_addresses, "of_interface", lambda name: None)
    with pytest.raises(InvalidParameter, match="advertise address must be a non-zero IP address"):
        await advertised(wrong)


async def test_a_scope_is_no_part_of_an_address() -> None:
    with pytest.raises(InvalidParameter, match="listen address must be an IP address or network interface"):
        await listening("[fe80::1%lo]:2377")
    with pytest.raises(InvalidParameter, match="data path address must be"):
        await data_path("fe80::1%lo")
    assert await advertised("fe80::1") == HostPort("fe80::1", 0)


async def test_where_packets_of_networks_go() -> None:
    assert (await data_path(""), await data_path("192.0.2.7"), await data_path("lo")) == ("", "192.0.2.7", "127.0.0.1")
    for wrong in ("0.0.0.0", "192.0.2.7:99", "no-such-interface", "a\0b", "a\ud800"):
        with pytest.raises(InvalidParameter, match="data path address must be"):
            await data_path(wrong)


def test_which_address_an_interface_means() -> None:
    four, other, six = map(ip_address, ("192.0.2.7", "192.0.2.8", "2001:db8::1"))
    assert only("eth7", [six, four]) == four
    assert only("eth7", [six]) == six
    with pytest.raises(InvalidParameter, match=r"more than one IPv4 address \(192.0.2.7 and 192.0.2.8\)"):
        only("eth7", [four, other])
    with pytest.raises(InvalidParameter, match="no usable"):
        only("eth7", [])
