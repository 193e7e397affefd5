"""Networks that are only a configuration, and those that are made from one."""

import pytest

from husk.engine.model.network import ConfigSource, IpamConfig, IpamRequest, Network, NetworkRequest
from husk.engine.networks import options
from husk.engine.networks.templates import check, filled_in, users
from husk.errors import Forbidden, NotFound


def template() -> Network:
    wanted = NetworkRequest(
        name="settings",
        config_only=True,
        ipam=IpamRequest(config=[IpamConfig(subnet="10.2.0.0/16", ip_range="10.2.9.0/24")]),
        options={"com.docker.network.driver.mtu": "1400"},
        labels={"who": "me"},
    )
    request = options.with_defaults(wanted, {})
    check(request)
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
    check(request)
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
    assert users(existing[0], [*existing, made]) == [made]
    assert users(made, [*existing, made]) == []


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
        check(request_)
