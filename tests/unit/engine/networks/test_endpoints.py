"""The endpoints of a container: which is first, which leads out, and what the container is called on them."""

import pytest

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.engine.networks import endpoints
from husk.errors import InvalidParameter
from husk.network.sandbox import Lease
from tests.support.but import but
from tests.unit.engine.records import container


def endpoint(name: str, *, priority: int = 0, **fields: object) -> Endpoint:
    request = EndpointRequest(gw_priority=priority)
    return Endpoint(network_name=name, network_id=f"id-of-{name}", request=request, **fields)  # type: ignore[arg-type]


def on(*found: Endpoint, mode: str = "bridge") -> Container:
    record = container("web", config=ContainerConfig(hostname="www"), host_config=HostConfig(network_mode=mode))
    record = but(record, endpoints={one.network_name: one for one in found})
    return record


GIVEN = Lease(
    sandbox_path="/run/netns/x",
    host_interface="veth1",
    ip_address="10.0.0.2",
    prefix_len=24,
    gateway="10.0.0.1",
    mac_address="02:42:0a:00:00:02",
    interface="eth0",
    ip6_address="fd00::2",
    prefix6_len=64,
    gateway6="fd00::1",
    direct=True,
)


def test_what_a_driver_gave_can_be_given_back() -> None:
    one = endpoint("back")
    assert endpoints.lease("/run/netns/x", one) is None, "it has nothing yet"
    one = endpoints.leased(one, GIVEN)
    assert endpoints.lease("/run/netns/x", one) == GIVEN


def test_at_rest_an_endpoint_keeps_what_was_asked_for_alone() -> None:
    one = endpoint("back", priority=5, added=True)
    one = endpoints.leased(one, GIVEN)
    one = but(one, endpoint_id="e")
    assert endpoints.fresh(one) == endpoint("back", priority=5, added=True)


@pytest.mark.parametrize("mode", ["m", "id-of-m"])
def test_the_network_of_the_mode_is_first_and_the_others_go_by_name(mode: str) -> None:
    record = on(endpoint("b"), endpoint("m"), endpoint("a"), mode=mode)
    assert [one.network_name for one in endpoints.in_order(record)] == ["m", "a", "b"]


def test_the_way_out_is_that_of_the_highest_priority_then_by_name() -> None:
    record = on(endpoint("b", gateway="1"), endpoint("a", gateway="1"), endpoint("internal", priority=9))
    assert endpoints.gateway_endpoint(record) is record.endpoints["a"]
    record = but(record, endpoints={**record.endpoints, "b": but(record.endpoints["b"], request__gw_priority=1)})
    assert endpoints.gateway_endpoint(record) is record.endpoints["b"]


def test_ipv6_may_leave_by_another_network() -> None:
    record = on(endpoint("a", gateway="1"), endpoint("b", gateway6="::1"))
    assert endpoints.gateway6_endpoint(record) is record.endpoints["b"]


def test_without_a_gateway_a_link_of_its_own_leads_out() -> None:
    assert endpoints.leads_out(on(endpoint("a", direct=True, ip_address="10.0.0.2")))
    assert not endpoints.leads_out(on(endpoint("a", ip_address="10.0.0.2")))


def test_a_container_has_each_of_its_names_once() -> None:
    one = but(endpoint("back"), request__aliases=["db", "web"])
    record = on(one)
    assert endpoints.dns_names(record, one) == ["web", "db", record.id[:12], "www"]


def test_addresses_that_were_asked_for() -> None:
    request = EndpointRequest(ipam_config={"IPv4Address": "10.0.0.9", "IPv6Address": None})
    assert (endpoints.wanted_address(request), endpoints.wanted_address6(request)) == ("10.0.0.9", "")
    assert endpoints.wanted_address(EndpointRequest()) == ""


# --- links


@pytest.mark.parametrize(
    ("link", "read"),
    [("db", {"db": "db"}), ("db:store", {"store": "db"}), ("/db:/web/store", {"store": "db"}), ("/db", {"db": "db"})],
)
def test_a_link_is_read_in_all_its_forms(link: str, read: dict[str, str]) -> None:
    assert endpoints.parse_links([link]) == read


def test_a_link_to_nobody_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="bad format for links: :x"):
        endpoints.parse_links([":x"])


def test_links_are_names_for_everybody_on_the_default_bridge_alone() -> None:
    record = but(on(), host_config__links=["db:store"])
    assert endpoints.link_names(record) == {"web/store": "db"}
    assert endpoints.link_names(but(record, host_config__network_mode="back")) == {}


def test_links_follow_a_rename_of_either_side() -> None:
    links = ["/db:/web/store", "/other:/web/o"]
    assert endpoints.links_after_rename(links, "db", "new") == ["/new:/web/store", "/other:/web/o"]
    assert endpoints.links_after_rename(links, "web", "new") == ["/db:/new/store", "/other:/new/o"]
