"""The bridge keeps its subnet where it can, and gives way where it must."""

from ipaddress import IPv4Interface, IPv4Network, IPv6Network
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.errors import InvalidParameter
from husk.kernel import nflisting, rtnetlink
from husk.kernel.netlink import NetlinkMessage
from husk.network import host
from husk.network.host import BridgePlan, HostSurroundings, addresses_of, decide, parse_name_servers

PLAN = BridgePlan(interface="husk0", owner="test", bip="", pools=(), remembered=None, in_use=False)
TUN = rtnetlink.Link(index=7, name="wg", kind="tun", master=0, up=False, mtu=1420, alias="")
EMPTY = HostSurroundings(bridge=None, own=[], taken=[], mtu=1500)
VPN = replace(EMPTY, taken=[IPv4Network("172.17.0.0/16")])


def test_a_new_bridge_gets_the_first_free_subnet():
    assert decide(PLAN, EMPTY) == IPv4Interface("172.17.0.1/16")
    assert decide(PLAN, VPN) == IPv4Interface("172.18.0.1/16")


def test_bip_wins_over_everything():
    plan = replace(PLAN, bip="172.17.9.9/24", remembered="10.0.0.0/24", in_use=True)
    assert decide(plan, VPN) == IPv4Interface("172.17.9.9/24")


def test_the_subnet_of_last_time_is_kept():
    assert decide(replace(PLAN, remembered="172.25.0.0/16"), EMPTY) == IPv4Interface("172.25.0.1/16")


def test_the_gateway_of_last_time_is_kept_too():
    surroundings = replace(EMPTY, own=[IPv4Interface("10.3.0.7/24"), IPv4Interface("172.25.0.9/16")])
    assert decide(replace(PLAN, remembered="172.25.0.0/16"), surroundings) == IPv4Interface("172.25.0.9/16")


def test_a_remembered_subnet_that_something_else_took_is_given_up():
    assert decide(replace(PLAN, remembered="172.17.0.0/16"), VPN) == IPv4Interface("172.18.0.1/16")


def test_a_subnet_of_running_containers_is_never_given_up():
    plan = replace(PLAN, remembered="172.17.0.0/16", in_use=True)
    assert decide(plan, VPN) == IPv4Interface("172.17.0.1/16")


def test_a_bridge_that_exists_keeps_its_address():
    surroundings = replace(EMPTY, own=[IPv4Interface("10.3.0.7/24")])
    assert decide(PLAN, surroundings) == IPv4Interface("10.3.0.7/24")


def test_a_remembered_subnet_that_is_none_is_refused():
    with pytest.raises(InvalidParameter, match="invalid subnet"):
        decide(replace(PLAN, remembered="172.17.0.1/16"), EMPTY)


def test_name_servers_are_read_from_resolv_conf():
    text = "# nameserver 9.9.9.9\nsearch lan\nnameserver 192.168.1.1 # router\nnameserver fe80::1\nnameserver\n"
    servers = parse_name_servers(text)
    assert servers == ["192.168.1.1", "fe80::1"]
    assert addresses_of([*servers, "fd00::53", "dns.example"]) == [
        IPv4Network("192.168.1.1/32"),
        IPv6Network("fd00::53/128"),
    ]


class FakeNetlink:
    """A host's interfaces, by name with their owners; the rules of `with` and of requests are the socket's."""

    def __init__(self, owners: dict[str, str]) -> None:
        self.links = {name: rtnetlink.set_alias(name, owner).payload for name, owner in owners.items()}

    def __enter__(self) -> "FakeNetlink":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def dump(self, message: NetlinkMessage) -> list[bytes]:
        return list(self.links.values())

    def attempt(self, messages: list[NetlinkMessage]) -> list[OSError | None]:
        for message in messages:
            del self.links[rtnetlink.parse_link(message.payload).name]
        return [None for _ in messages]


@pytest.fixture
def netlink(monkeypatch: pytest.MonkeyPatch) -> FakeNetlink:
    double = FakeNetlink({"husk0": "ours", "br-1": "ours", "br-2": "ours", "br-3": "ours, too", "eth0": ""})
    monkeypatch.setattr(host, "NetlinkSocket", lambda: double)
    return double


def test_interfaces_of_this_owner_that_no_network_has_are_swept(netlink: FakeNetlink) -> None:
    assert host.sweep("ours", {"husk0", "br-2"}) == ["br-1"]
    assert list(netlink.links) == ["husk0", "br-2", "br-3", "eth0"]


def test_a_name_is_free_for_its_owner_and_where_nothing_has_it(
    netlink: FakeNetlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.if_nameindex", lambda: [*enumerate(netlink.links, 1)])
    with host.free_name("br-1", "ours") as own, host.free_name("br-3", "ours") as anothers:
        assert (own, anothers) == (True, False)
    with host.free_name("nothing0", "ours") as first, host.free_name("nothing0", "another's") as second:
        assert (first, second) == (True, False)
    with host.free_name("nothing0", "another's") as third:
        assert third


def test_a_bridge_is_removed_by_its_owner_alone(netlink: FakeNetlink) -> None:
    host.remove("br-3", "ours")
    host.remove("br-1", "ours")
    assert list(netlink.links) == ["husk0", "br-2", "br-3", "eth0"]


@pytest.mark.parametrize(
    ("link", "table", "socket", "left"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, False, True, True),
        (TUN, False, False, True),
        (replace(TUN, kind="wireguard"), False, False, True),
        (replace(TUN, up=True), True, True, False),
        (replace(TUN, alias="somebody's"), True, True, False),
        (replace(TUN, kind="dummy"), True, True, False),
    ],
)
def test_parts_of_a_device_are_found_and_those_of_others_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, link: rtnetlink.Link | None, table: bool, socket: bool, left: bool
) -> None:
    monkeypatch.setattr(host, "find", lambda _: link)
    monkeypatch.setattr(nflisting, "has_table", lambda family, name: table and (family, name) == ("ip6", "husk-wg"))
    if socket:
        (tmp_path / "wg.sock").touch()
    assert host.has_left("wg", "husk-wg", tmp_path / "wg.sock") is left


def test_an_interface_is_found_by_its_name() -> None:
    found = host.find("lo")
    assert found is not None and found.name == "lo" and host.find("none-such") is None
