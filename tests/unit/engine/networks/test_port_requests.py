"""What a client writes about ports means what Docker takes it to mean."""

import pytest

from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.engine.networks.port_requests import check, exposed, parse_port, port_requests
from husk.errors import InvalidParameter
from husk.network.ports import PortRequest


def host(**bindings: list[PortBinding] | None) -> HostConfig:
    return HostConfig(
        port_bindings={name.replace("_", "/").removeprefix("p"): value for name, value in bindings.items()}
    )


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("80", [(80, "tcp")]),
        ("80/udp", [(80, "udp")]),
        ("80/TCP", [(80, "tcp")]),
        ("80-82/sctp", [(80, "sctp"), (81, "sctp"), (82, "sctp")]),
    ],
)
def test_ports_as_they_are_written(text, ports):
    assert parse_port(text) == ports


@pytest.mark.parametrize("text", ["", "x", "0", "0/tcp", "65536", "9-8", "80/", "80/icmp", "80/tcp/udp", "-1", "1-"])
def test_nonsense(text):
    if text == "80/":
        assert parse_port(text) == [(80, "tcp")]
        return
    with pytest.raises(InvalidParameter):
        parse_port(text)


def test_bindings_become_wishes_fixed_ones_first():
    config = host(p80_tcp=[PortBinding(), PortBinding(host_ip="127.0.0.1", host_port="8080")], p53_udp=None)
    assert port_requests(ContainerConfig(), config) == [
        PortRequest("tcp", 80, "127.0.0.1", 8080, 8080),
        PortRequest("tcp", 80, "0.0.0.0", 0, 0, "::"),
    ]


def test_a_range_on_the_host_is_a_choice():
    assert port_requests(ContainerConfig(), host(p80_tcp=[PortBinding(host_port="8000-8009")])) == [
        PortRequest("tcp", 80, "0.0.0.0", 8000, 8009, "::")
    ]


@pytest.mark.parametrize(("given", "address"), [("::1", "::1"), ("[::]", "::"), ("0.0.0.0", "0.0.0.0")])
def test_who_names_an_address_means_no_other(given, address):
    [request] = port_requests(ContainerConfig(), host(p80_tcp=[PortBinding(host_ip=given)]))
    assert (request.host_ip, request.also) == (address, "")


def test_publish_all_leaves_out_what_is_bound():
    config = host(p80_tcp=[PortBinding(host_port="8080")])
    config.publish_all_ports = True
    found = port_requests(ContainerConfig(exposed_ports={"80/tcp": {}, "81-82/tcp": {}}), config)
    assert [(w.container_port, w.first) for w in found] == [(80, 8080), (81, 0), (82, 0)]


def test_a_network_may_have_an_address_of_its_own_for_ports():
    assert port_requests(ContainerConfig(), host(p80_tcp=[PortBinding()]), "127.0.0.1")[0].host_ip == "127.0.0.1"


def test_everything_named_is_exposed():
    assert exposed(ContainerConfig(exposed_ports={"81/udp": {}, "9": {}}), host(p80_tcp=None)) == [
        "9/tcp",
        "80/tcp",
        "81/udp",
    ]


def test_refusals():
    with pytest.raises(InvalidParameter, match="invalid IP address: x"):
        check(ContainerConfig(), host(p80_tcp=[PortBinding(host_ip="x")]))
    shared = HostConfig(network_mode="container:x", publish_all_ports=True)
    with pytest.raises(InvalidParameter, match="conflicting options: port publishing"):
        check(ContainerConfig(), shared)
