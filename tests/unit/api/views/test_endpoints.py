"""Networks and ports of a container as clients see them, while it runs and afterwards."""

from msgspec import UNSET
from msgspec.structs import replace

from husk.api.versioning import Version
from husk.api.views.endpoints import listed_networks, networks, port_list, port_map
from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, PortBinding
from husk.network.ports import PublishedPort
from tests.support.but import but
from tests.unit.engine.records import container


def running(network: str = "back") -> Container:
    record = container("web", status="running", config=ContainerConfig(hostname="www", exposed_ports={"80/tcp": {}}))
    record = but(record, sandbox_path="/run/netns/x")
    record = but(record, state=replace(record.state, started_at="2026-01-01T00:00:00Z"))
    endpoint = Endpoint(
        network_name=network,
        network_id="n",
        request=EndpointRequest(aliases=["db"]),
        endpoint_id="e",
        ip_address="10.0.0.2",
        prefix_len=24,
        gateway="10.0.0.1",
    )
    return but(record, endpoints={network: endpoint})


def published(port: int, host_port: int, host_ip: str = "0.0.0.0") -> PublishedPort:
    return PublishedPort(
        protocol="tcp", host_ip=host_ip, host_port=host_port, container_ip="10.0.0.2", container_port=port
    )


def test_an_endpoint_has_its_addresses_while_the_container_runs() -> None:
    record = running()
    shown = networks(record)["back"]
    assert (shown.ip_address, shown.ip_prefix_len, shown.gateway, shown.endpoint_id) == (
        "10.0.0.2",
        24,
        "10.0.0.1",
        "e",
    )
    record = but(record, state=replace(record.state, status="exited"))
    shown = networks(record)["back"]
    assert (shown.ip_address, shown.ip_prefix_len, shown.gateway, shown.endpoint_id) == ("", 0, "", "")
    assert shown.network_id == "n"


def test_names_are_known_on_networks_that_somebody_made_from_the_first_start_on() -> None:
    record = running()
    assert networks(record)["back"].dns_names == ["web", "db", record.id[:12], "www"]
    assert networks(running("bridge"))["bridge"].dns_names is None
    fresh = container("web")
    fresh = but(fresh, endpoints={**fresh.endpoints, "back": Endpoint(network_name="back", network_id="n")})
    assert networks(fresh)["back"].dns_names is None
    fresh = but(fresh, endpoints={"back": but(fresh.endpoints["back"], added=True)})
    assert networks(fresh)["back"].dns_names == ["web", fresh.id[:12]]


def test_older_clients_find_the_id_among_the_aliases() -> None:
    record = running()
    assert networks(record)["back"].aliases == ["db"]
    assert networks(record, Version(1, 44))["back"].aliases == ["db", record.id[:12], "www"]
    assert networks(running("bridge"), Version(1, 44))["bridge"].aliases == ["db"]


def test_a_list_leaves_names_out() -> None:
    shown = listed_networks(running())["back"]
    assert (shown.aliases, shown.dns_names, shown.links) == (None, None, None)
    assert shown.ip_address == "10.0.0.2"


def test_ports_are_published_or_bare() -> None:
    record = but(running(), config__exposed_ports={"80/tcp": {}, "53/udp": {}})
    record = but(record, published=[published(80, 8080), published(80, 8080, "::")])
    assert [(port.private_port, port.public_port, port.ip, port.type) for port in port_list(record)] == [
        (53, UNSET, UNSET, "udp"), (80, 8080, "0.0.0.0", "tcp"), (80, 8080, "::", "tcp"),
    ]  # fmt: skip
    assert port_map(record) == {
        "53/udp": None,
        "80/tcp": [PortBinding(host_ip="0.0.0.0", host_port="8080"), PortBinding(host_ip="::", host_port="8080")],
    }


def test_one_that_is_reached_at_its_own_address_looks_bare_in_a_list() -> None:
    record = running()
    record = but(record, published=[published(80, 0)])
    assert [(port.private_port, port.public_port) for port in port_list(record)] == [(80, UNSET)]
    assert port_map(record) == {"80/tcp": [PortBinding(host_ip="0.0.0.0", host_port="")]}


def test_one_that_does_not_run_or_has_no_network_has_no_ports() -> None:
    record = running()
    record = but(record, state=replace(record.state, status="exited"))
    assert port_list(record) == [] and port_map(record) == {}
    record = running()
    record = but(record, sandbox_path="")
    assert port_list(record) == []


def test_odd_ports_of_an_image_break_no_list_and_ranges_stay_ranges() -> None:
    odd: dict[str, object] = {"foo": {}, "8080/http": {}, "0/tcp": {}, "1-65535/udp": {}, "7": {}}
    record = but(running(), config__exposed_ports=odd)
    assert [(port.private_port, port.type) for port in port_list(record)] == [(1, "udp"), (7, "tcp")]
    assert port_map(record) == {"1-65535/udp": None, "7/tcp": None}


def test_a_published_range_is_told_port_by_port() -> None:
    record = but(running(), config__exposed_ports={"80-81/tcp": {}})
    record = but(record, published=[published(80, 8080), published(81, 8081)])
    assert sorted(port_map(record)) == ["80/tcp", "81/tcp"]
    assert [port.public_port for port in port_list(record)] == [8080, 8081]
