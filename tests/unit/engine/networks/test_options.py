"""Networks that may be made, and what becomes of what was asked for."""

from pathlib import Path

import pytest

from husk.engine.model.network import ConfigSource, IpamConfig, IpamRequest, Network, NetworkRequest
from husk.engine.networks import options
from husk.engine.networks.options import (
    check,
    check_template,
    filled_in,
    record,
    settings,
    template_users,
    with_defaults,
)
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, NotImplementedYet
from husk.network.sandbox import ParentLink
from husk.network.settings import BridgeSettings
from tests.support.but import but

OTHER = Network(id="a" * 64, name="other", driver="bridge", created="", subnet="10.1.0.0/16", gateway="10.1.0.1")
BASE = BridgeSettings("husk0", "husk bridge of husk", Path("/run/netns"))
PREFIX = "com.docker.network."


def request(name: str = "new", **changes: object) -> NetworkRequest:
    return with_defaults(NetworkRequest(name=name, **changes), {})  # type: ignore[arg-type]


def pool(subnet: str = "10.2.0.0/16", **changes: object) -> IpamRequest:
    return IpamRequest(config=[IpamConfig(subnet=subnet, **changes)])  # type: ignore[arg-type]


def test_nothing_asked_for_is_fine():
    check(request(), [OTHER])
    made = record(request(), "b" * 64, "now")
    assert (made.subnet, made.gateway, made.chosen_subnet, made.bridge_name) == ("", "", False, "br-" + "b" * 12)


@pytest.mark.parametrize(
    ("changes", "gateway"),
    [
        ({}, "10.2.0.1"),
        ({"gateway": "10.2.9.9"}, "10.2.9.9"),
        ({"ip_range": "10.2.5.0/24"}, "10.2.5.0"),
        ({"auxiliary_addresses": {"router": "10.2.0.1"}}, "10.2.0.2"),
    ],
)
def test_the_gateway(changes, gateway):
    asked = request(ipam=pool(**changes))
    check(asked, [OTHER])
    assert record(asked, "b" * 64, "now").gateway == gateway


def test_options_become_behaviour():
    options = {
        PREFIX + "bridge.name": "mine",
        PREFIX + "bridge.enable_icc": "false",
        PREFIX + "bridge.enable_ip_masquerade": "0",
        PREFIX + "driver.mtu": "1400",
    }
    asked = request(options=options, internal=True, ipam=pool(auxiliary_addresses={"x": "10.2.0.9"}))
    check(asked, [OTHER])
    made = settings(record(asked, "b" * 64, "now"), BASE)
    assert made == BASE._replace(
        interface="mine",
        bip="10.2.0.1/16",
        reserved=("10.2.0.9",),
        internal=True,
        icc=False,
        masquerade=False,
        mtu=1400,
    )


def test_ipv6_has_a_pool_of_its_own():
    both = IpamRequest(config=[IpamConfig(subnet="fd00:1::/64"), IpamConfig(subnet="10.2.0.0/16")])
    asked = request(enable_ipv6=True, ipam=both)
    check(asked, [OTHER])
    made = record(asked, "b" * 64, "now")
    assert (made.gateway, made.gateway6, made.chosen_subnet6) == ("10.2.0.1", "fd00:1::1", True)
    behaviour = settings(made, BASE._replace(pool6="fd99::/48"))
    assert (behaviour.bip, behaviour.bip6, behaviour.pool6) == ("10.2.0.1/16", "fd00:1::1/64", "")


def test_ipv6_without_a_pool_gets_one_of_ours_and_a_pool_without_ipv6_means_nothing():
    asked = request(enable_ipv6=True)
    assert settings(record(asked, "b" * 64, "now"), BASE._replace(pool6="fd99::/48")).pool6 == "fd99::/48"
    asked = request(ipam=pool("fd00::/64"))
    check(asked, [OTHER])
    assert record(asked, "b" * 64, "now").subnet6 == ""


def test_an_ipv6_pool_of_another_network_is_refused():
    other = Network(id="a" * 64, name="six", driver="bridge", created="", subnet6="fd00::/48")
    with pytest.raises(Forbidden, match="Pool overlaps"):
        check(request(enable_ipv6=True, ipam=pool("fd00:0:0:5::/64")), [other])


def test_macvlan_is_on_a_parent_or_on_nothing_at_all():
    asked = request(driver="macvlan", options={"parent": "eth7", "macvlan_mode": "vepa"}, ipam=pool())
    check(asked, [OTHER])
    made = settings(record(asked, "b" * 64, "now"), BASE)
    assert (made.interface, made.parent_link, made.alone, made.internal) == (
        "eth7",
        ParentLink("macvlan", 2),
        False,
        False,
    )
    made = settings(record(request(driver="macvlan"), "b" * 64, "now"), BASE)
    assert (made.interface, made.alone, made.internal) == ("dm-" + "b" * 12, True, True)


def test_a_parent_has_one_network():
    other = Network(id="a" * 64, name="first", driver="macvlan", created="", options={"parent": "eth7"})
    with pytest.raises(Forbidden, match="network first is already using parent interface eth7"):
        check(request(driver="ipvlan", options={"parent": "eth7"}), [other])


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(""), InvalidParameter),
        (request(" \n"), InvalidParameter),
        (request("a b", driver="overlay"), InvalidParameter),
        (request("a" * 64, driver="overlay"), InvalidParameter),
        (request("0" * 100 + "!", driver="overlay"), InvalidParameter),
        (request("bridge"), Forbidden),
        (request("other"), Conflict),
        (request(driver="host"), Forbidden),
        (request(driver="macvlan", options={"parent": "lo"}), InvalidParameter),
        (request(driver="macvlan", options={"macvlan_mode": "round"}), InvalidParameter),
        (request(driver="ipvlan", options={"ipvlan_mode": "l4"}), InvalidParameter),
        (request(driver="ipvlan", options={"ipvlan_flag": "red"}), InvalidParameter),
        (request(driver="nonsense"), NotFound),
        (request(enable_ipv6=True, enable_ipv4=False, driver="overlay"), InvalidParameter),
        (request(enable_ipv4=False), InvalidParameter),
        (request(enable_ipv6=True, ipam=pool("fd00::/128")), InvalidParameter),
        (request(enable_ipv6=True, ipam=pool("fd00::/64", gateway="fd00::")), InvalidParameter),
        (request(enable_ipv6=True, ipam=pool("fd00::/64", gateway="10.2.0.1")), InvalidParameter),
        (request(enable_ipv6=True, ipam=pool("fd00::/64", ip_range="fd01::/80")), InvalidParameter),
        (request(scope="swarm"), NotImplementedYet),
        (request(ipam=pool("10.1.7.0/24")), Forbidden),
        (request(ipam=pool("10.2.0.1/16")), InvalidParameter),
        (request(ipam=pool("nonsense")), InvalidParameter),
        (request(ipam=pool("10.2.0.0/32")), InvalidParameter),
        (request(ipam=pool(gateway="10.3.0.1")), InvalidParameter),
        (request(ipam=pool(gateway="10.2.255.255")), InvalidParameter),
        (request(ipam=pool(ip_range="10.3.0.0/24")), InvalidParameter),
        (request(ipam=pool("", gateway="10.2.0.1")), InvalidParameter),
        (request(ipam=pool(gateway="10.2.0.1", auxiliary_addresses={"x": "10.2.0.1"})), Forbidden),
        (request(ipam=IpamRequest(driver="other")), InvalidParameter),
        (request(ipam=IpamRequest(config=[IpamConfig(), IpamConfig()])), InvalidParameter),
        (request(options={PREFIX + "bridge.name": "a/b"}), InvalidParameter),
        (request(options={PREFIX + "bridge.name": "br-" + "a" * 12}), Forbidden),
        (request(options={PREFIX + "bridge.enable_icc": "maybe"}), InvalidParameter),
        (request(options={PREFIX + "driver.mtu": "12x"}), InvalidParameter),
        (request(options={PREFIX + "bridge.host_binding_ipv4": "::1"}), InvalidParameter),
        (request(options={PREFIX + "bridge.gateway_mode_ipv4": "natted"}), InvalidParameter),
        (request(options={PREFIX + "bridge.gateway_mode_ipv6": "isolated"}), InvalidParameter),
    ],
)
def test_refusals(asked, error):
    with pytest.raises(error):
        check(asked, [OTHER])


@pytest.mark.parametrize("name", ["a b", " ab", "-ab", "_x", "a/b", "a:b", "../x", "ä", "a" * 300])
def test_any_name_will_do_as_with_dockerd(name):
    check(request(name), [OTHER])


@pytest.mark.parametrize(
    ("asked", "gateway"),
    [
        (pool("10.2.0.4/31"), "10.2.0.4"),
        (pool("10.2.0.4/31", gateway="10.2.0.5"), "10.2.0.5"),
    ],
)
def test_both_addresses_of_a_subnet_of_two_may_be_the_gateway(asked, gateway):
    check(request(ipam=asked), [OTHER])
    assert record(request(ipam=asked), "a" * 64, "").gateway_interface == f"{gateway}/31"


def test_without_ipv4_there_is_a_subnet_of_the_other_kind_alone():
    asked = request(enable_ipv4=False, enable_ipv6=True, ipam=pool("fd00::/64"))
    check(asked, [OTHER])
    made = record(asked, "b" * 64, "now")
    assert (made.subnet, made.gateway, made.subnet6, made.gateway6) == ("", "", "fd00::/64", "fd00::1")
    assert (settings(made, BASE).ipv4, settings(made, BASE).bip) == (False, "")


def test_gateway_modes():
    modes = {PREFIX + "bridge.gateway_mode_ipv4": "routed", PREFIX + "bridge.gateway_mode_ipv6": "nat-unprotected"}
    asked = request(options=modes, enable_ipv6=True)
    check(asked, [OTHER])
    made = settings(record(asked, "b" * 64, "now"), BASE)
    assert (made.gateway_modes, made.bare) == (("routed", "nat-unprotected"), frozenset())


def test_an_isolated_network_has_no_gateway_but_keeps_a_chosen_one_free():
    mode = {PREFIX + "bridge.gateway_mode_ipv4": "isolated"}
    for chosen, gateway, reserved in (({}, "", ()), ({"gateway": "10.2.0.9"}, "10.2.0.9", ("10.2.0.9",))):
        asked = request(options=mode, internal=True, ipam=pool(**chosen))
        check(asked, [OTHER])
        network = record(asked, "b" * 64, "now")
        made = settings(network, BASE)
        assert (network.gateway, made.reserved, made.bare) == (gateway, reserved, frozenset({4}))
        assert made.bip == f"{gateway or '10.2.0.1'}/16"


@pytest.mark.parametrize(("mode", "number"), [("l3", 1), ("l3s", 2)])
def test_ipvlan_that_routes_has_no_gateway(mode, number):
    asked = request(driver="ipvlan", options={"parent": "eth7", "ipvlan_mode": mode}, ipam=pool())
    check(asked, [OTHER])
    network = record(asked, "b" * 64, "now")
    made = settings(network, BASE)
    assert (made.parent_link, made.bare, network.gateway) == (
        ParentLink("ipvlan", number, 0, True),
        frozenset({4, 6}),
        "",
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("nmsgs", "4", "com.docker.network.advertise_addr_nmsgs must be in the range 0 to 3"),
        ("nmsgs", "-1", "com.docker.network.advertise_addr_nmsgs must be in the range 0 to 3"),
        ("nmsgs", "x", 'value for option com.docker.network.advertise_addr_nmsgs "x" must be an integer'),
        ("ms", "99", "com.docker.network.advertise_addr_ms must be in the range 100 to 2000"),
        ("ms", "", 'value for option com.docker.network.advertise_addr_ms "" must be integer milliseconds'),
    ],
)
def test_how_often_addresses_are_announced_has_bounds(name, value, said):
    with pytest.raises(InvalidParameter) as refused:
        check(request(options={f"{PREFIX}advertise_addr_{name}": value}), [])
    assert refused.value.message == said


def test_how_often_addresses_are_announced_is_the_networks_choice():
    options = {f"{PREFIX}advertise_addr_nmsgs": "1", f"{PREFIX}advertise_addr_ms": "150"}
    made = settings(record(request(options=options), "b" * 64, "now"), BASE)
    assert (made.announcements, made.announcement_interval) == (1, 0.15)
    usual = settings(record(request(), "b" * 64, "now"), BASE)
    assert (usual.announcements, usual.announcement_interval) == (3, 1.0)


def test_the_daemons_options_fill_in_what_a_request_does_not_say() -> None:
    usual = {"bridge": {PREFIX + "driver.mtu": "1400", PREFIX + "enable_ipv6": "true"}, "macvlan": {"parent": "eth9"}}
    plain = with_defaults(NetworkRequest(name="n"), usual)
    assert (plain.options[PREFIX + "driver.mtu"], plain.enable_ipv4, plain.enable_ipv6) == ("1400", True, True)
    own = with_defaults(NetworkRequest(name="n", options={PREFIX + "driver.mtu": "1300"}, enable_ipv6=False), usual)
    assert (own.options, own.enable_ipv6) == ({PREFIX + "driver.mtu": "1300"}, False)
    assert with_defaults(NetworkRequest(name="n", driver="macvlan"), usual).options == {"parent": "eth9"}
    derived = NetworkRequest(name="n", config_from=ConfigSource(network="settings"))
    assert with_defaults(derived, usual).options == {}
    with pytest.raises(InvalidParameter, match="neither true nor false"):
        with_defaults(NetworkRequest(name="n", options={PREFIX + "enable_ipv6": "maybe"}), usual)


def test_a_bridge_that_is_there_keeps_the_addresses_of_services() -> None:
    network = but(record(request(), "b" * 64, "now"), service_addresses=["10.0.9.7"])
    assert settings(network, BASE).own == ("10.0.9.7",) and "10.0.9.7" in settings(network, BASE).reserved
    # On one that hosts share, records tell who has an address.
    shared = settings(but(network, vni=4097), BASE)
    assert shared.warm == 0 and shared.own == ("10.0.9.7",) and "10.0.9.7" not in shared.reserved


def template() -> Network:
    wanted = NetworkRequest(
        name="settings",
        config_only=True,
        ipam=IpamRequest(config=[IpamConfig(subnet="10.2.0.0/16", ip_range="10.2.9.0/24")]),
        options={"com.docker.network.driver.mtu": "1400"},
        labels={"who": "me"},
    )
    request = options.with_defaults(wanted, {})
    check_template(request)
    options.check(request, [])
    return options.record(request, "a" * 64, "now")


def derived(**changes: object) -> NetworkRequest:
    made = NetworkRequest(name="real", config_from=ConfigSource(network="settings"), **changes)  # type: ignore[arg-type]
    return options.with_defaults(made, {})


def test_a_configuration_is_no_network():
    made = template()
    assert (made.driver, made.scope, made.bridged, made.gateway) == ("null", "local", False, "")


def test_a_network_has_the_settings_of_its_configuration():
    existing = [template()]
    request = derived(internal=True)
    check_template(request)
    request = filled_in(request, existing)
    options.check(request, existing)
    made = options.record(request, "b" * 64, "now")
    assert (made.driver, made.subnet, made.ip_range, made.gateway) == (
        "bridge",
        "10.2.0.0/16",
        "10.2.9.0/24",
        "10.2.9.0",
    )
    assert (made.options, made.labels) == (existing[0].options, {"who": "me"})
    assert (made.config_from, made.config_only, made.internal) == ("settings", False, True)
    assert template_users(existing[0], [*existing, made]) == [made]
    assert template_users(made, [*existing, made]) == []


def test_the_configuration_must_be_there():
    with pytest.raises(NotFound, match='configuration network "settings" does not exist'):
        filled_in(derived(), [Network(id="a" * 64, name="settings", driver="bridge", created="")])


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (NetworkRequest(name="c", config_only=True, internal=True), "can only contain network specific fields"),
        (NetworkRequest(name="c", config_only=True, scope="swarm"), "can only contain network specific fields"),
        (derived(config_only=True), "cannot depend on another configuration network"),
        (derived(enable_ipv6=True), "user specified configurations are not supported"),
        (derived(labels={"a": "b"}), "user specified configurations are not supported"),
        (derived(ipam=IpamRequest(config=[IpamConfig()])), "user specified configurations are not supported"),
        (derived(options={"a": "b"}), "network driver options are not supported"),
    ],
)
def test_what_does_not_go_together(request_, words):
    with pytest.raises(Forbidden, match=words):
        check_template(request_)
