"""Properties that follow from the record of a network."""

import pytest

from husk.engine.model.network import GATEWAY_MODE_4, GATEWAY_MODE_6, Network
from husk.network.rules import GatewayModes


def network(name: str = "back", driver: str = "bridge", **fields: object) -> Network:
    return Network(id="0123456789abcdef", name=name, driver=driver, created="", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("driver", "bridged", "on_parent"), [
    ("bridge", True, False), ("overlay", True, False), ("macvlan", False, True), ("ipvlan", False, True),
    ("host", False, False),
])  # fmt: skip
def test_a_driver_has_a_bridge_or_a_parent(driver: str, bridged: bool, on_parent: bool) -> None:
    found = network(driver=driver)
    assert (found.bridged, found.on_parent) == (bridged, on_parent)


def test_interfaces_are_named_by_the_options_or_else_by_the_id() -> None:
    assert (network().bridge_name, network().parent) == ("br-0123456789ab", "dm-0123456789ab")
    named = network(options={"com.docker.network.bridge.name": "mine", "parent": "eth1"})
    assert (named.bridge_name, named.parent) == ("mine", "eth1")


def test_the_bridges_address_is_the_gateway_or_else_the_first_of_the_subnet() -> None:
    assert network(subnet="10.1.0.0/16").gateway_interface == "10.1.0.1/16"
    assert network(subnet="10.1.0.0/16", gateway="10.1.9.9").gateway_interface == "10.1.9.9/16"
    assert network(subnet6="fd00::/64").gateway_interface6 == "fd00::1/64"


def test_gateway_modes_are_those_of_bridges() -> None:
    options = {GATEWAY_MODE_4: "routed", GATEWAY_MODE_6: "isolated"}
    assert network(options=options).gateway_modes == GatewayModes("routed", "isolated")
    assert network(driver="overlay", options=options).gateway_modes == GatewayModes()


def test_nobody_but_containers_has_an_address_where_it_is_isolated_or_routed_by_ipvlan() -> None:
    assert network().bare == frozenset()
    assert network(options={GATEWAY_MODE_6: "isolated"}).bare == {6}
    assert network(driver="ipvlan", options={"ipvlan_mode": "l3"}).bare == {4, 6}
    assert network(driver="ipvlan", options={"ipvlan_mode": "l2"}).bare == frozenset()


def test_names_are_resolved_on_networks_that_somebody_made() -> None:
    assert network().resolves_names
    assert not network("bridge").resolves_names
    assert not network(ingress=True).resolves_names


def test_ports_are_bound_everywhere_unless_the_network_says_where() -> None:
    assert network().host_binding == "0.0.0.0"
    assert network(options={"com.docker.network.bridge.host_binding_ipv4": "127.0.0.1"}).host_binding == "127.0.0.1"
