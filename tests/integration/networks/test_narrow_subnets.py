"""Subnets of two addresses: one for the gateway, one for a container."""

import json

import pytest

from tests.integration.networks.conftest import Network, address6, network, refused


@pytest.mark.parametrize(
    ("options", "gateway", "address"),
    [((), "10.219.7.4", "10.219.7.5"), (("--gateway", "10.219.7.5"), "10.219.7.5", "10.219.7.4")],
)
def test_a_31_has_a_gateway_and_a_container(net: Network, options: tuple[str, ...], gateway: str, address: str):
    net.create("pair", "--subnet", "10.219.7.4/31", *options)
    net.run("only", "--network", "pair")
    assert net.address("only", "pair") == address
    assert network(net, "pair")["Containers"].popitem()[1]["IPv4Address"] == f"{address}/31"
    assert net.pings("only", gateway)
    assert "no available IPv4 addresses" in refused(net, "run", "--network", "pair", "busybox", "true")
    net.daemon.restart()
    assert net.pings("only", gateway)
    assert "no available IPv4 addresses" in refused(net, "run", "--network", "pair", "busybox", "true")


def test_a_31_without_a_gateway_has_two_containers(net: Network):
    isolated = "com.docker.network.bridge.gateway_mode_ipv4=isolated"
    net.create("pair", "--internal", "-o", isolated, "--subnet", "10.219.7.4/31")
    net.run("one", "--network", "pair")
    net.run("two", "--network", "pair")
    assert {net.address("one", "pair"), net.address("two", "pair")} == {"10.219.7.4", "10.219.7.5"}
    assert net.pings("one", net.address("two", "pair"))


def test_a_127_has_a_gateway_and_a_container(net: Network, prefix: str):
    net.create("pair", "--ipv6", "--subnet", f"{prefix}::/127")
    net.run("only", "--network", "pair")
    assert address6(net, "only", "pair") == f"{prefix}::1"
    assert json.loads(net.inspect("only", "{{json .NetworkSettings.Networks.pair.IPv6Gateway}}")) == f"{prefix}::"
    assert net.pings("only", f"{prefix}::")


def test_a_31_whose_host_has_no_address_has_two_containers(net: Network):
    net.create("pair", "--internal", "-o", "com.docker.network.bridge.inhibit_ipv4=true", "--subnet", "10.219.7.4/31")
    net.run("one", "--network", "pair")
    net.run("two", "--network", "pair")
    assert {net.address("one", "pair"), net.address("two", "pair")} == {"10.219.7.4", "10.219.7.5"}
    assert net.pings("one", net.address("two", "pair"))
    assert network(net, "pair")["IPAM"]["Config"] == [{"Subnet": "10.219.7.4/31"}]
    assert "no available IPv4 addresses" in refused(net, "run", "--network", "pair", "busybox", "true")
    net.daemon.restart()
    assert net.pings("one", net.address("two", "pair"))
