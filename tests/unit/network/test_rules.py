"""The rules name exactly the networks they are for, and no unchecked name becomes part of a rule."""

from ipaddress import IPv4Network, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.network.ports import PublishedPort
from husk.network.rules import (
    BridgedNetwork,
    GatewayModes,
    port_elements,
    ruleset,
    validate_table,
)
from husk.text.interface_names import validate_interface

NETWORK = BridgedNetwork("hk-1a2b3c-0", IPv4Network("172.17.0.0/16"))


def test_every_command_touches_only_the_daemons_own_table():
    for line in ruleset("husk-1a2b3c", [NETWORK]).splitlines():
        assert line.split()[0] in ("add", "flush")
        assert " ip husk-1a2b3c" in line


def test_a_network_is_an_element_of_each_set():
    commands = ruleset("husk", [NETWORK])
    assert 'add element ip husk bridges { "hk-1a2b3c-0" }' in commands
    assert 'add element ip husk within { "hk-1a2b3c-0" . "hk-1a2b3c-0" }' in commands
    assert "add element ip husk subnets { 172.17.0.0/16 }" in commands


def test_the_rules_are_the_same_for_any_number_of_networks():
    def rules(networks):
        return [line for line in ruleset("husk", networks).splitlines() if line.startswith("add rule")]

    assert rules([]) == rules([NETWORK, NETWORK._replace(interface="husk1")])


@pytest.mark.parametrize("name", ["", "a" * 16, 'x"', "a b", "a;b", "a/b", "-x", "..", "a\n"])
def test_a_bad_interface_name_is_refused(name):
    with pytest.raises(InvalidParameter, match="invalid bridge name"):
        ruleset("husk", [NETWORK._replace(interface=name)])


@pytest.mark.parametrize("name", ["", "1a", "a b", "a;b", "a{", "a\n"])
def test_a_bad_table_name_is_refused(name):
    with pytest.raises(InvalidParameter, match="invalid nftables table name"):
        ruleset(name, [])


@given(st.text())
def test_an_accepted_name_holds_nothing_that_nftables_would_interpret(name):
    for validate in (validate_interface, validate_table):
        try:
            accepted = validate(name)
        except InvalidParameter:
            continue
        assert not set(accepted) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


def test_an_internal_network_is_closed_and_not_masqueraded():
    commands = ruleset("husk", [NETWORK._replace(internal=True)])
    assert 'add element ip husk closed { "hk-1a2b3c-0" }' in commands
    assert "add element ip husk masqueraded" not in commands


def test_a_network_without_icc_is_not_open_within():
    assert "add element ip husk within" not in ruleset("husk", [NETWORK._replace(icc=False)])


def test_into_a_bridge_come_translations_of_published_ports_alone():
    accepting = [line for line in ruleset("husk", []).splitlines() if "ct status dnat" in line and "accept" in line]
    assert len(accepting) == 3
    assert all("@published" in line or "@bound_published" in line or "meta mark and" in line for line in accepting)


def test_a_port_leads_to_its_container_and_is_known_as_published():
    everywhere = PublishedPort("udp", "0.0.0.0", 53, "172.17.0.2", 5353)
    bound = PublishedPort("tcp", "127.0.0.1", 8080, "172.17.0.2", 80)
    commands = port_elements("add", "husk", [everywhere, bound])
    assert commands.splitlines() == [
        "add element ip husk published { udp . 53 }",
        "add element ip husk ports { udp . 53 : 172.17.0.2 . 5353 }",
        "add element ip husk bound_published { tcp . 127.0.0.1 . 8080 }",
        "add element ip husk bound_ports { tcp . 127.0.0.1 . 8080 : 172.17.0.2 . 80 }",
    ]
    assert port_elements("delete", "husk", [bound]).splitlines() == [
        "delete element ip husk bound_published { tcp . 127.0.0.1 . 8080 }",
        "delete element ip husk bound_ports { tcp . 127.0.0.1 . 8080 }",
    ]
    assert ruleset("husk", [], [everywhere]).endswith(port_elements("add", "husk", [everywhere]))


def test_each_gateway_mode_is_a_set():
    def commands(mode, family="ip"):
        network = NETWORK._replace(subnet6=IPv6Network("fd00::/64"), modes=GatewayModes(mode, "nat"))
        return ruleset("husk", [network], family=family)

    assert "husk masqueraded { 172.17.0.0/16 }" in commands("nat")
    assert "husk masqueraded { 172.17.0.0/16 }" in commands("nat-unprotected")
    assert 'husk unprotected { "hk-1a2b3c-0" }' in commands("nat-unprotected")
    assert "husk masqueraded { 172.17.0.0/16 }" not in commands("routed")
    assert 'husk routed { "hk-1a2b3c-0" }' in commands("routed")
    assert "husk masqueraded { fd00::/64 }" in commands("routed", "ip6")


def test_a_network_without_ipv4_has_no_place_in_its_table():
    network = BridgedNetwork("br0", None, internal=True, subnet6=IPv6Network("fd00::/64"))
    assert "br0" not in ruleset("husk", [network])
    assert 'add element ip6 husk closed { "br0" }' in ruleset("husk", [network], family="ip6")


def test_a_port_that_is_reached_at_the_containers_address_is_opened():
    port = PublishedPort("tcp", "0.0.0.0", 0, "10.0.0.2", 80)
    assert port_elements("add", "husk", [port]) == "add element ip husk opened { tcp . 10.0.0.2 . 80 }\n"
    assert port_elements("add", "husk", [port], "ip6") == ""
