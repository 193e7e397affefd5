"""Requests that a container may make of its networks."""

from typing import Any, cast

import pytest

from husk.engine.model.container import TASK_LABEL, Endpoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.engine.model.network import Network
from husk.engine.networks import requests
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.requests import one_more, places
from husk.errors import Forbidden, HuskError, InvalidParameter
from husk.network.bridge import BridgeDriver
from tests.support.but import but
from tests.unit.engine.records import container

IFNAME = "com.docker.network.endpoint.ifname"
SYSCTLS = "com.docker.network.endpoint.sysctls"


def live(name: str = "home", **changes: Any) -> LiveNetwork:
    return LiveNetwork(Network(id=name * 8, name=name, driver="bridge", created="", **changes))


@pytest.mark.parametrize(
    ("config", "host", "message"),
    [
        ({"mac_address": "nonsense"}, {}, "nonsense is not a valid mac address"),
        ({}, {"network_mode": "container:"}, "invalid container format"),
        ({"hostname": "x"}, {"network_mode": "container:a"}, "conflicting options: hostname and the network mode"),
        ({}, {"network_mode": "container:a", "dns": ["1.1.1.1"]}, "conflicting options: dns"),
        ({}, {"network_mode": "host", "links": ["a"]}, "host type networking can't be used with links"),
        ({}, {"network_mode": "container:a", "links": ["a"]}, "container type network can't be used with links"),
        ({}, {"links": [":x"]}, "bad format for links"),
    ],
)
def test_a_container_that_is_refused(config: dict[str, Any], host: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        requests.check(ContainerConfig(**config), HostConfig(**host), {})


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"mac_address": "02:42"}, "is not a valid mac address"),
        ({"mac_address": "01:00:5e:00:00:01"}, "no single interface's"),
        ({"mac_address": "FF-FF-FF-FF-FF-FF"}, "no single interface's"),
        ({"mac_address": "00:00:00:00:00:00"}, "no single interface's"),
        ({"ipam_config": {"IPv4Address": "10.0.0.999"}}, "invalid IPv4 address: 10.0.0.999"),
        ({"ipam_config": {"IPv6Address": "::zz"}}, "invalid IPv6 address: ::zz"),
        ({"ipam_config": {"LinkLocalIPs": ["10.0.0.1"]}}, "invalid link-local IP address: 10.0.0.1"),
        ({"ipam_config": {"LinkLocalIPs": ["?"]}}, "invalid link-local IP address"),
        ({"driver_opts": {IFNAME: "lo"}}, "invalid interface name: 'lo'"),
        ({"driver_opts": {IFNAME: "a/b"}}, "invalid interface name"),
        ({"driver_opts": {SYSCTLS: "net.ipv4.conf.eth0.log=1"}}, "unrecognised network interface sysctl"),
        ({"driver_opts": {SYSCTLS: "kernel.panic=1"}}, "unrecognised network interface sysctl"),
        ({"aliases": ["a b"]}, "invalid alias: 'a b'"),
        ({"links": [":"]}, "bad format for links"),
    ],
)
def test_an_endpoint_that_is_refused(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        requests.check_endpoint(EndpointRequest(**request_))


def test_settings_of_the_interface() -> None:
    options = {SYSCTLS: "net.ipv6.conf.IFNAME.accept_ra=2,net.ipv4.conf.ifname.log_martians=1", IFNAME: "lan0"}
    request = EndpointRequest(driver_opts=options, ipam_config={"LinkLocalIPs": ["169.254.1.1"]})
    requests.check_endpoint(request)
    assert requests.interface_name(request) == "lan0"
    assert requests.link_local(request) == ("169.254.1.1",)
    assert requests.interface_sysctls(request) == (
        ("net/ipv6/conf/IFNAME/accept_ra", "2"),
        ("net/ipv4/conf/IFNAME/log_martians", "1"),
    )


def test_networks_of_the_swarm_are_for_tasks() -> None:
    plain, task = container("plain"), container("task", config=ContainerConfig(labels={TASK_LABEL: "t"}))
    swarm = live(scope="swarm")
    requests.check_attachable(swarm, task)
    with pytest.raises(Forbidden, match="not manually attachable"):
        requests.check_attachable(swarm, plain)
    requests.check_attachable(live(scope="swarm", attachable=True), plain)
    with pytest.raises(Forbidden, match="configuration-only"):
        requests.check_attachable(live(config_only=True), plain)


@pytest.mark.parametrize(
    ("mode", "on", "to", "message"),
    [
        ("home", "home", "host", "cannot connect container to host network"),
        ("host", "host", "home", "cannot be connected to any other network"),
        ("container:x", "", "home", "cannot be connected to any other network"),
        ("none", "none", "home", r"private \(none\) mode"),
        ("home", "home", "none", r"private \(none\) mode"),
        ("home", "home", "home", "already exists in network home"),
    ],
)
def test_what_cannot_be_joined(mode: str, on: str, to: str, message: str) -> None:
    record = container("box", status="running", host_config=HostConfig(network_mode=mode))
    record = but(record, endpoints={on: Endpoint(network_name=on, network_id=on)} if on else {})
    with pytest.raises(Forbidden if "exists" in message else InvalidParameter, match=message):
        requests.check_joinable(live(to), record)


@pytest.mark.parametrize(
    ("network", "request_", "message"),
    [
        ({"name": "bridge"}, {"ipam_config": {"IPv4Address": "10.0.0.2"}}, "on user defined networks only"),
        ({}, {"ipam_config": {"IPv4Address": "10.0.0.2"}}, "networks with user configured subnets"),
        (
            {"chosen_subnet": True, "subnet": "10.1.0.0/24"},
            {"ipam_config": {"IPv4Address": "10.0.0.2"}},
            "no configured subnet or ip-range contain the IP address 10.0.0.2",
        ),
        ({"name": "bridge"}, {"aliases": ["x"]}, "network-scoped alias is supported only"),
    ],
)
def test_what_a_network_does_not_have(network: dict[str, Any], request_: dict[str, Any], message: str) -> None:
    endpoint = Endpoint(network_name="x", network_id="x", request=EndpointRequest(**request_))
    with pytest.raises(InvalidParameter, match=message):
        requests.check_request(live(**network), endpoint)


@pytest.mark.parametrize(
    ("sysctls", "options", "off"),
    [
        ({}, {}, False),
        ({"net.ipv6.conf.all.disable_ipv6": "1"}, {}, True),
        ({"net/ipv6/conf/eth0/disable_ipv6": "1"}, {}, True),
        ({"net.ipv6.conf.eth1.disable_ipv6": "1"}, {}, False),
        ({"net.ipv6.conf.lan0.disable_ipv6": "1"}, {IFNAME: "lan0"}, True),
        ({}, {SYSCTLS: "net.ipv6.conf.IFNAME.disable_ipv6=1"}, True),
    ],
)
def test_where_ipv6_is_off_no_address_is_taken(sysctls: dict[str, str], options: dict[str, str], off: bool) -> None:
    record = container("box", host_config=HostConfig(sysctls=sysctls))
    assert requests.without_ipv6(record, EndpointRequest(driver_opts=options)) is off


class _Bridge:
    """Stands for a driver: only that there is one is asked."""


@pytest.fixture
def roster() -> Roster:
    found = Roster()
    for number, (name, driver) in enumerate(
        (("bridge", "bridge"), ("host", "host"), ("none", "null"), ("lan", "bridge"))
    ):
        record = Network(id=f"{number}" * 64, name=name, driver=driver, created="", subnet="10.1.0.0/24")
        bridge = cast(BridgeDriver, _Bridge()) if driver == "bridge" else None
        found.by_name[name] = LiveNetwork(record, bridge)
    return found


def test_where_a_container_is_that_names_nothing(roster: Roster) -> None:
    assert list(places(roster, "", {"bridge": EndpointRequest()}, [])) == ["bridge"]
    assert list(places(roster, "default", {}, [])) == ["bridge"]
    assert places(roster, "container:x", {}, []) == {}


def test_named_networks_are_meant_instead_of_the_default_one(roster: Roster) -> None:
    lan = roster.by_name["lan"].record
    assert list(places(roster, "default", {"lan": EndpointRequest()}, [])) == ["lan"]
    found = places(roster, lan.id, {"lan": EndpointRequest(aliases=["a"])}, [])
    assert found["lan"].request.aliases == ["a"] and found["lan"].network_id == lan.id
    twice = {"lan": EndpointRequest(aliases=["a"]), lan.id: EndpointRequest(aliases=["b"])}
    with pytest.raises(InvalidParameter, match="cannot be connected to network lan twice"):
        places(roster, "lan", twice, [])


def test_links_are_names_on_a_network_that_somebody_made(roster: Roster) -> None:
    assert places(roster, "lan", {}, ["db:database"])["lan"].request.links == ["db:database"]
    assert not places(roster, "bridge", {"bridge": EndpointRequest()}, ["db"])["bridge"].request.links


def test_a_network_that_is_not_there_is_told_at_start(roster: Roster) -> None:
    assert places(roster, "nowhere", {}, [])["nowhere"].network_id == ""


@pytest.mark.parametrize("alone", ["host", "none"])
def test_host_and_none_are_alone(roster: Roster, alone: str) -> None:
    with pytest.raises(InvalidParameter, match=f"cannot be connected to network {alone} and to others"):
        places(roster, alone, {"lan": EndpointRequest()}, [])


def test_one_more_network_for_a_container(roster: Roster) -> None:
    endpoint = one_more(roster.by_name["lan"], container("box"), EndpointRequest())
    assert (endpoint.network_name, endpoint.added) == ("lan", True)
    with pytest.raises(HuskError):
        one_more(roster.by_name["host"], container("box"), EndpointRequest())
