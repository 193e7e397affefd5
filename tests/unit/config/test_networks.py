"""Settings of the default bridge and of names: what fits together, and what is told when it does not."""

import pytest

from husk.config import DefaultBridge
from husk.config.networks import default_bridge, host_gateways, search_domain
from husk.config.settings import Settings
from husk.errors import InvalidParameter


def test_nothing_said_is_the_standard() -> None:
    assert default_bridge(Settings()) == DefaultBridge()
    assert default_bridge(Settings(icc=True, ip_masq=True, ip="0.0.0.0", mtu=0, ipv6=False)) == DefaultBridge()


def test_everything_said_arrives() -> None:
    settings = Settings(
        bip="10.9.0.1/16",
        bip6="fd00:9::1/64",
        fixed_cidr="10.9.8.7/24",
        fixed_cidr_v6="fd00:9::8:0/112",
        ipv6=True,
        default_gateway="10.9.0.9",
        default_gateway_v6="fd00:9::9",
        icc=False,
        ip_masq=False,
        mtu=9000,
        ip="192.0.2.1",
    )
    assert default_bridge(settings) == DefaultBridge(
        ipv6=True,
        bip6="fd00:9::1/64",
        fixed_cidr="10.9.8.0/24",
        fixed_cidr_v6="fd00:9::8:0/112",
        default_gateway="10.9.0.9",
        default_gateway_v6="fd00:9::9",
        icc=False,
        ip_masq=False,
        mtu=9000,
        ip="192.0.2.1",
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(fixed_cidr="x"), "invalid fixed-cidr 'x'"),
        (Settings(fixed_cidr="fd00::/64"), "invalid fixed-cidr 'fd00::/64'"),
        (Settings(bip="10.9.0.1/24", fixed_cidr="10.8.0.0/25"), "is not a part of the bridge's subnet 10.9.0.0/24"),
        (Settings(fixed_cidr="10.9.0.0/31"), "has no room for one"),
        (Settings(fixed_cidr_v6="10.0.0.0/8"), "invalid fixed-cidr-v6"),
        (Settings(fixed_cidr_v6="ff00::/64"), "multicast"),
        (Settings(bip6="fd00::1"), "it needs a prefix"),
        (Settings(bip6="10.0.0.1/8"), "invalid bip6"),
        (Settings(default_gateway="fd00::1"), "it is no IPv4 address"),
        (Settings(bip="10.9.0.1/24", default_gateway="10.8.0.1"), "not in the bridge's subnet"),
        (Settings(default_gateway_v6="x"), "it is no IP address"),
        (Settings(mtu=-1), "invalid default MTU: -1"),
        (Settings(mtu=10), "invalid default MTU: 10"),
        (Settings(ip="localhost"), "invalid ip 'localhost'"),
        (Settings(bridge="br0", bip="10.9.0.1/24"), "You specified -b & --bip, mutually exclusive options"),
        (Settings(bridge="br0", bip6="fd00::1/64"), "You specified -b & --bip6, mutually exclusive options"),
        (Settings(bridge="none", bip="10.9.0.1/24"), "You specified -b & --bip, mutually exclusive options"),
    ],
)
def test_what_does_not_fit_is_told(settings: Settings, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        default_bridge(settings)


def test_what_a_bridge_is_to_be_that_is_not_made_nobody_looks_at() -> None:
    settings = Settings(bridge="none", fixed_cidr="x", fixed_cidr_v6="y", default_gateway="10.8.0.1")
    assert default_bridge(settings) == DefaultBridge()


def test_gateways_of_the_host_are_one_of_each_kind() -> None:
    assert host_gateways(["2001:db8::1", "192.0.2.1"]) == ("192.0.2.1", "2001:db8::1")
    for texts in (["192.0.2.1", "192.0.2.2"], ["192.0.2.1", "2001:db8::1", "2001:db8::2"], ["x"]):
        with pytest.raises(InvalidParameter):
            host_gateways(texts)


@pytest.mark.parametrize(("text", "fine"), [(".", True), ("a.b-c.example", True), ("a b", False), ("-a", False)])
def test_search_domains(text: str, fine: bool) -> None:
    if fine:
        assert search_domain(text) == text
    else:
        with pytest.raises(InvalidParameter, match="is not a valid domain"):
            search_domain(text)
