"""The default network follows the daemon's settings at every start, and keeps what was chosen for it."""

from pathlib import Path

from husk.config import Config, DefaultBridge
from husk.engine.model.network import Network
from husk.engine.networks.default_bridge import settings, settled
from husk.network.settings import BridgeSettings

BASE = BridgeSettings("husk0", "husk bridge of husk", Path("/run/netns"), pool6="fd11:22::/48")
PREFIX = "com.docker.network."


def bridge(**known: str) -> Network:
    return Network(id="a" * 64, name="bridge", driver="bridge", created="", **known)  # type: ignore[arg-type]


def made(config: Config, network: Network | None = None) -> tuple[Network, BridgeSettings]:
    network = network or bridge()
    network = settled(network, config)
    return network, settings(network, config, BASE)


def test_without_settings_it_is_dockers() -> None:
    network, found = made(Config())
    assert network.options == {
        PREFIX + "bridge.default_bridge": "true",
        PREFIX + "bridge.enable_icc": "true",
        PREFIX + "bridge.enable_ip_masquerade": "true",
        PREFIX + "bridge.name": "husk0",
        PREFIX + "driver.mtu": "1500",
    }
    assert not network.enable_ipv6
    assert (found.bip, found.bip6, found.pool6, found.mtu) == ("", "", "", 0)


def test_a_range_alone_is_the_subnet_unless_the_bridge_is_somebody_elses() -> None:
    wanted = DefaultBridge(fixed_cidr="10.9.8.0/24")
    assert made(Config(default_bridge=wanted))[1].bip == "10.9.8.1/24"
    assert made(Config(default_bridge=wanted, bip="10.9.0.1/16"))[1].bip == "10.9.0.1/16"
    assert made(Config(default_bridge=wanted, bridge="br0"))[1].bip == ""


def test_ipv6_is_from_the_settings_else_what_it_was_else_from_the_pool() -> None:
    remembered = bridge(subnet6="fd11:22:0:5::/64", gateway6="fd11:22:0:5::1")
    assert made(Config(default_bridge=DefaultBridge(ipv6=True)))[1].pool6 == BASE.pool6
    network, found = made(Config(default_bridge=DefaultBridge(ipv6=True)), remembered)
    assert (found.bip6, found.pool6, network.subnet6) == ("fd11:22:0:5::1/64", "", "fd11:22:0:5::/64")
    network, found = made(Config(default_bridge=DefaultBridge(ipv6=True, fixed_cidr_v6="fd00:1::/80")), remembered)
    assert (found.bip6, found.ip_range6, network.subnet6) == ("fd00:1::1/80", "fd00:1::/80", "fd00:1::/80")
    network, found = made(Config(default_bridge=DefaultBridge(ipv6=True, bip6="fd00:2::9/64")), remembered)
    assert (found.bip6, network.gateway6) == ("fd00:2::9/64", "fd00:2::9")
    network, found = made(Config(), remembered)
    assert (network.enable_ipv6, network.subnet6, found.bip6) == (False, "", "")


def test_another_gateway_is_kept_free_and_used() -> None:
    wanted = DefaultBridge(default_gateway="10.9.0.9", icc=False, ip_masq=False, mtu=1400, ip="192.0.2.1")
    network, found = made(Config(bip="10.9.0.1/16", default_bridge=wanted))
    assert (found.route, found.reserved, found.icc, found.masquerade, found.mtu) == (
        "10.9.0.9",
        ("10.9.0.9",),
        False,
        False,
        1400,
    )
    assert network.aux_addresses == {"DefaultGatewayIPv4": "10.9.0.9"}
    assert network.options[PREFIX + "bridge.host_binding_ipv4"] == "192.0.2.1"
