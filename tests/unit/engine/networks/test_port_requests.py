"""A client's words about ports mean what Docker takes them to mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.engine.networks.port_requests import (
    MOST,
    PortSet,
    check,
    exposed,
    parse_ports,
    port_requests,
    port_requests_aside,
    stored,
)
from husk.errors import InvalidParameter
from husk.network.ports import PortRequest
from tests.support.but import but


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
    assert list(parse_ports(text)) == ports


@pytest.mark.parametrize("text", ["", "x", "0", "0/tcp", "65536", "9-8", "80/", "80/icmp", "80/tcp/udp", "-1", "1-"])
def test_nonsense(text):
    if text == "80/":
        assert list(parse_ports(text)) == [(80, "tcp")]
        return
    with pytest.raises(InvalidParameter):
        parse_ports(text)


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
    config = but(host(p80_tcp=[PortBinding(host_port="8080")]), publish_all_ports=True)
    found = port_requests(ContainerConfig(exposed_ports={"80/tcp": {}, "81-82/tcp": {}}), config)
    assert [(w.container_port, w.first) for w in found] == [(80, 8080), (81, 0), (82, 0)]


def test_a_network_may_have_an_address_of_its_own_for_ports():
    assert port_requests(ContainerConfig(), host(p80_tcp=[PortBinding()]), "127.0.0.1")[0].host_ip == "127.0.0.1"


def test_everything_named_is_exposed():
    found = exposed(ContainerConfig(exposed_ports={"81/udp": {}, "9": {}}), host(p80_tcp=None))
    assert [str(ports) for ports in found] == ["9/tcp", "80/tcp", "81/udp"]


def test_what_an_image_calls_a_port_and_is_none_is_left_out():
    odd = ["foo", "8080/http", "0/tcp", "99999/tcp", "", "9-8/tcp", "70-80/TCP", "7"]
    config = ContainerConfig(exposed_ports={name: {} for name in odd})
    assert [str(ports) for ports in exposed(config, HostConfig())] == ["7/tcp", "70-80/tcp"]
    found = port_requests(config, HostConfig(publish_all_ports=True))
    assert [wish.container_port for wish in found] == [7, *range(70, 81)]


def test_ranges_stay_ranges():
    every: dict[str, dict[str, object]] = {f"1-65535/{protocol}": {} for protocol in ("tcp", "udp", "sctp")}
    assert len(exposed(ContainerConfig(exposed_ports=every), HostConfig())) == 3


@pytest.mark.parametrize(
    ("config", "host_config"),
    [
        ({}, HostConfig(port_bindings={"1-65535/tcp": [PortBinding()] * 2})),
        ({"1-65535/tcp": {}, "1-65535/udp": {}}, HostConfig(publish_all_ports=True)),
    ],
)
def test_more_ports_than_can_be_published_are_refused_before_they_are_counted_up(config, host_config):
    with pytest.raises(InvalidParameter, match=f"too many ports to publish: at most {MOST}"):
        port_requests(ContainerConfig(exposed_ports=config), host_config)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.sampled_from(["tcp", "udp"]))),
    st.tuples(st.integers(0, 50), st.integers(0, 9), st.sampled_from(["tcp", "udp", "x"])),
)
def test_a_set_of_ports_meets_a_range_where_they_share_a_port(ranges, asked):
    """`ranges` are (first, how many more, protocol)."""
    ports = PortSet((first, first + more, protocol) for first, more, protocol in ranges)
    held = {(port, protocol) for first, more, protocol in ranges for port in range(first, first + more + 1)}
    first, more, protocol = asked
    assert ports.meets(first, first + more, protocol) == any(
        (port, protocol) in held for port in range(first, first + more + 1)
    )


def test_stored_names_are_each_told_once():
    assert [str(ports) for ports in stored(["80", "80/tcp", "80/TCP"])] == ["80/tcp"]
    assert stored(None) == []


def test_refusals():
    with pytest.raises(InvalidParameter, match="invalid IP address: x"):
        check(ContainerConfig(), host(p80_tcp=[PortBinding(host_ip="x")]))
    shared = HostConfig(network_mode="container:x", publish_all_ports=True)
    with pytest.raises(InvalidParameter, match="conflicting options: port publishing"):
        check(ContainerConfig(), shared)


def test_one_port_is_bound_a_thousand_times_and_no_more():
    check(ContainerConfig(), host(p80_tcp=[PortBinding()] * 1024))
    with pytest.raises(InvalidParameter, match="port 80/tcp is bound too often: 1024 times is the most"):
        check(ContainerConfig(), host(p80_tcp=[PortBinding()] * 1025))


@pytest.mark.parametrize(
    ("bindings", "aside"),
    [
        ({"80/tcp": [PortBinding()]}, False),
        ({"1-65535/tcp": [PortBinding()]}, True),
        ({"80/tcp": [PortBinding()] * 300}, True),
        ({str(number): [PortBinding()] for number in range(1, 300)}, True),
    ],
)
async def test_many_ports_are_read_in_a_thread(bindings, aside, monkeypatch):
    threads = []

    async def noting(work, *arguments):
        threads.append(work)
        return work(*arguments)

    monkeypatch.setattr("asyncio.to_thread", noting)
    config, host_config = ContainerConfig(), HostConfig(port_bindings=bindings)
    found = await port_requests_aside(config, host_config, "0.0.0.0")
    assert found == port_requests(config, host_config) and bool(threads) is aside
