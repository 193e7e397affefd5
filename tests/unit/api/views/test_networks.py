"""A network as clients see it: its pools, who is on it, and which filters choose it."""

import pytest
from msgspec import UNSET

from husk.api.views import networks as views
from husk.engine.model.container import Endpoint
from husk.engine.model.filters import Filters
from husk.engine.model.network import Network
from husk.swarm.spec.network_services import ServiceOnNetwork, TaskOnNetwork
from tests.support.but import but
from tests.unit.engine.records import container


def network(name: str = "back", **fields: object) -> Network:
    fields.setdefault("driver", "bridge")
    return Network(id="0123456789", name=name, created="2026-01-01T00:00:00Z", **fields)  # type: ignore[arg-type]


def test_each_version_of_ip_has_its_pool() -> None:
    record = network(subnet="10.0.0.0/24", gateway="10.0.0.1", subnet6="fd00::/64", ip_range6="fd00::/80")
    four, six = views.network(record, {}).ipam.config or []
    assert (four.subnet, four.gateway, four.ip_range) == ("10.0.0.0/24", "10.0.0.1", UNSET)
    assert (six.subnet, six.gateway, six.ip_range) == ("fd00::/64", UNSET, "fd00::/80")


def test_a_gateway_that_nobody_asked_for_is_not_told_before_the_next_start() -> None:
    record = network(subnet="10.0.0.0/24", gateway="10.0.0.1", untold_gateways=[4])
    (pool,) = views.network(record, {}).ipam.config or []
    assert pool.gateway is UNSET


def test_one_without_addresses_has_no_pool() -> None:
    assert views.network(network("none", driver="null"), {}).ipam.config is None


def test_one_of_the_swarm_is_known_in_less_detail_until_it_is_used_here() -> None:
    record = network(scope="swarm", driver="overlay")
    shown = views.network(record, {})
    assert (shown.containers, shown.labels) == (None, None)
    used = views.network(record, views.containers_on(record, [on(record)]))
    assert used.containers and used.labels == {}
    assert views.network(record, UNSET).containers is UNSET


def on(record: Network):
    endpoint = Endpoint(
        network_name=record.name, network_id=record.id, endpoint_id="e", ip_address="10.0.0.2", prefix_len=24
    )
    return but(container("web"), endpoints={record.name: endpoint})


def test_containers_are_shown_with_their_prefixes() -> None:
    record = network()
    member = on(record)
    (shown,) = views.containers_on(record, [member, container("elsewhere")]).values()
    assert (shown.name, shown.endpoint_id) == ("web", "e")
    assert (shown.ipv4_address, shown.ipv6_address) == ("10.0.0.2/24", "")


def test_services_are_shown_with_their_tasks_on_this_host() -> None:
    task = TaskOnNetwork(name="web.1", endpoint_id="e", address="10.0.0.3")
    service = ServiceOnNetwork(virtual_address="10.0.0.9", ports=((80, 8080),), tasks=(task,))
    shown = views.services({"web": service}, "192.0.2.1")["web"]
    assert (shown.vip, shown.ports) == ("10.0.0.9", ["Target: 80, Publish: 8080"])
    assert [(one.name, one.endpoint_ip, one.info) for one in shown.tasks] == [
        ("web.1", "10.0.0.3", {"Host IP": "192.0.2.1"})
    ]


def test_more_addresses_than_the_wire_can_count_are_as_many_as_it_can() -> None:
    subnets = views.status({"fd00::/32": (1, 2**96)}).ipam.subnets
    assert subnets["fd00::/32"].dynamic_ips_available == 2**64 - 1


@pytest.mark.parametrize(
    ("filters", "chosen"),
    [
        ({}, True),
        ({"name": ["ack"]}, True),
        ({"name": ["front", "back"]}, True),
        ({"name": ["front"]}, False),
        ({"id": ["0123"]}, True),
        ({"driver": ["bridge"]}, True),
        ({"driver": ["brid"]}, False),
        ({"scope": ["swarm"]}, False),
        ({"type": ["custom"]}, True),
        ({"type": ["builtin"]}, False),
        ({"label": ["a=1"]}, True),
        ({"label": ["a=2"]}, False),
        ({"name": ["back"], "driver": ["overlay"]}, False),
    ],
)
def test_all_kinds_of_filter_must_hold_and_of_one_kind_one_value(filters: dict[str, list[str]], chosen: bool) -> None:
    assert views.matches(network(labels={"a": "1"}), Filters(filters)) == chosen
