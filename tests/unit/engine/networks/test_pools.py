"""Address pools of a new network: what is taken, what is refused, and which gateway follows."""

import pytest

from husk.engine.model.network import IpamConfig, IpamRequest, Network, NetworkRequest
from husk.engine.networks import pools
from husk.errors import Forbidden, HuskError, InvalidParameter
from tests.support.but import but


def request(*configs: IpamConfig, **changes: object) -> NetworkRequest:
    given = {"enable_ipv4": True, "enable_ipv6": True, **changes}
    return NetworkRequest(name="new", ipam=IpamRequest(config=list(configs)), **given)  # type: ignore[arg-type]


def test_one_pool_of_each_kind() -> None:
    four, six = IpamConfig(subnet="10.0.0.0/24"), IpamConfig(subnet="fd00::/64")
    assert (pools.pool_of(request(six, four), 4), pools.pool_of(request(six, four), 6)) == (four, six)
    assert pools.pool_of(request(), 6).subnet == ""
    pools.check(request(four, six), [])


@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        ([{"subnet": "10.0.0.1/24"}], InvalidParameter, "10.0.0.1/24: it should be 10.0.0.0/24"),
        ([{"subnet": "10.0.0.0/32"}], InvalidParameter, "has no room"),
        ([{"subnet": "0.0.0.0/8"}], InvalidParameter, "subnet 0.0.0.0/8: containers cannot have these addresses"),
        ([{"subnet": "0.0.0.0/0"}], InvalidParameter, "containers cannot have these addresses"),
        ([{"subnet": "127.1.0.0/16"}], InvalidParameter, "containers cannot have these addresses"),
        ([{"subnet": "224.1.0.0/16"}], InvalidParameter, "containers cannot have these addresses"),
        ([{"subnet": "10.0.0.0/24"}] * 257, InvalidParameter, "too many address pools: 256 is the most"),
        (
            [{"subnet": "10.0.0.0/8", "auxiliary_addresses": {str(number): "x" for number in range(4097)}}],
            InvalidParameter,
            "too many auxiliary addresses: 4096 of a subnet is the most",
        ),
        ([{"subnet": "::/0"}], InvalidParameter, "invalid subnet ::/0: containers cannot have these addresses"),
        ([{"subnet": "::/64"}], InvalidParameter, "invalid subnet ::/64"),
        ([{"subnet": "ff02::/64"}], InvalidParameter, "invalid subnet ff02::/64"),
        ([{"subnet": "fd00::%eth0/64"}], InvalidParameter, "invalid subnet fd00::%eth0/64"),
        ([{"gateway": "10.0.0.1"}], InvalidParameter, "no matching subnet"),
        ([{"subnet": "10.0.0.0/24"}, {"subnet": "10.1.0.0/24"}], InvalidParameter, "only one IPv4 address pool"),
        (
            [{"subnet": "10.0.0.0/24", "ip_range": "10.1.0.0/25"}],
            InvalidParameter,
            "doesn't contain ip-range",
        ),
        ([{"subnet": "10.0.0.0/24", "ip_range": "x"}], InvalidParameter, "ip-range x: invalid CIDR block notation"),
        ([{"subnet": "10.0.0.0/24", "ip_range": "10.0.0.0/8"}], InvalidParameter, "bigger than its parent subnet"),
        ([{"subnet": "10.0.0.0/24", "ip_range": "fd00::/64"}], InvalidParameter, "parent subnet is an IPv4 block"),
        ([{"subnet": "10.0.0.0"}], InvalidParameter, "subnet 10.0.0.0: invalid CIDR block notation"),
        ([{"subnet": "x"}], InvalidParameter, "subnet x: invalid CIDR block notation"),
        ([{"subnet": "10.0.0.0/24", "gateway": "fd00::1"}], InvalidParameter, "parent subnet is an IPv4 block"),
        ([{"subnet": "10.0.0.0/24", "gateway": "10.0.1.1"}], InvalidParameter, "doesn't contain this address"),
        ([{"subnet": "10.0.0.0/24", "gateway": "10.0.0.255"}], InvalidParameter, "or for all in it"),
        (
            [{"subnet": "10.0.0.0/24", "auxiliary_addresses": {"a": "nonsense"}}],
            InvalidParameter,
            "address a: invalid",
        ),
        (
            [{"subnet": "10.0.0.0/24", "gateway": "10.0.0.9", "auxiliary_addresses": {"a": "10.0.0.9"}}],
            Forbidden,
            "Address already in use",
        ),
    ],
)
def test_what_is_refused(configs: list[dict[str, object]], error: type[HuskError], message: str) -> None:
    with pytest.raises(error, match=message):
        pools.check(request(*(IpamConfig(**config) for config in configs)), [])  # type: ignore[arg-type]


def test_a_pool_that_overlaps_another_network() -> None:
    known = Network(id="1", name="known", driver="bridge", created="", subnet="10.0.0.0/16")
    wanted = request(IpamConfig(subnet="10.0.3.0/24"))
    with pytest.raises(Forbidden, match="Pool overlaps with other one"):
        pools.check(wanted, [known])
    pools.check(wanted, [but(known, config_only=True)])


def test_an_ipv6_pool_means_nothing_without_ipv6() -> None:
    pools.check(request(IpamConfig(subnet="fd00::/128"), enable_ipv6=False), [])


@pytest.mark.parametrize(
    ("config", "gateway"),
    [
        ({}, ""),
        ({"subnet": "10.0.0.0/24"}, "10.0.0.1"),
        ({"subnet": "10.0.0.0/24", "gateway": "10.0.0.77"}, "10.0.0.77"),
        ({"subnet": "10.0.0.0/24", "ip_range": "10.0.0.128/25"}, "10.0.0.128"),
        ({"subnet": "10.0.0.0/24", "auxiliary_addresses": {"a": "10.0.0.1"}}, "10.0.0.2"),
        ({"subnet": "fd00::/64"}, "fd00::1"),
    ],
)
def test_the_gateway_that_follows(config: dict[str, object], gateway: str) -> None:
    assert pools.gateway_of(IpamConfig(**config)) == gateway  # type: ignore[arg-type]


def test_no_address_is_left_for_the_gateway() -> None:
    full = IpamConfig(subnet="10.0.0.0/30", auxiliary_addresses={"a": "10.0.0.1", "b": "10.0.0.2"})
    with pytest.raises(InvalidParameter, match="no address is left"):
        pools.gateway_of(full)
