"""May a task run on this node?"""

import pytest

from husk.engine.services.model import Amount, Placement, Platform, TaskResources, TaskSpec
from husk.engine.services.placement import NodeFacts, parse_constraint, refusal
from husk.errors import InvalidParameter

NODE = NodeFacts(
    id="n1",
    hostname="Alpha",
    address="192.0.2.1",
    labels={"zone": "north", "Tier": "a.b"},
    engine_labels={"disk": "ssd"},
    nano_cpus=2 * 10**9,
    memory=1 << 30,
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("node.id==n1", True),
        ("node.id != n1", False),
        ("node.hostname == alpha", True),
        ("node.role==manager", True),
        ("node.role!=manager", False),
        ("node.ip==192.0.2.1", True),
        ("node.platform.os==Linux", True),
        ("node.platform.arch==arm64", False),
        ("node.labels.zone==north", True),
        ("node.labels.zone==North", False),
        ("node.labels.missing!=x", True),
        ("node.labels.Tier == a.b", True),
        ("engine.labels.disk==ssd", True),
    ],
)
def test_constraints(text: str, holds: bool):
    assert parse_constraint(text).holds(NODE) == holds


@pytest.mark.parametrize("text", ["", "node.id", "node.id=n1", "node.colour==red", "node.labels.==x", "==x"])
def test_what_is_no_constraint(text: str):
    with pytest.raises(InvalidParameter):
        parse_constraint(text)


def reserving(cpus: float = 0, memory: int = 0) -> TaskSpec:
    return TaskSpec(resources=TaskResources(reservations=Amount(nano_cpus=int(cpus * 10**9), memory_bytes=memory)))


def test_room_is_what_others_have_not_reserved():
    taken = [Amount(nano_cpus=10**9, memory_bytes=1 << 29)]
    assert refusal(reserving(cpus=1), NODE, 0, taken) == ""
    assert "insufficient resources" in refusal(reserving(cpus=1.1), NODE, 0, taken)
    assert refusal(reserving(memory=1 << 29), NODE, 0, taken) == ""
    assert "insufficient resources" in refusal(reserving(memory=(1 << 29) + 1), NODE, 0, taken)


def test_a_service_without_reservations_fits_everywhere():
    assert refusal(TaskSpec(), NODE, 10, [Amount(nano_cpus=10**12)]) == ""


def test_as_many_per_node_as_allowed():
    spec = TaskSpec(placement=Placement(max_replicas=2))
    assert refusal(spec, NODE, 1, []) == ""
    assert "max replicas per node" in refusal(spec, NODE, 2, [])


@pytest.mark.parametrize("availability", ["pause", "drain"])
def test_a_node_that_takes_no_tasks(availability: str):
    node = NodeFacts(id="n", hostname="h", availability=availability)
    assert "not available" in refusal(TaskSpec(), node, 0, [])


def test_a_platform_must_be_the_nodes_own():
    def placed(*platforms: Platform) -> str:
        return refusal(TaskSpec(placement=Placement(platforms=list(platforms))), NODE, 0, [])

    assert placed() == placed(Platform(architecture="amd64", os="linux")) == placed(Platform(os="linux")) == ""
    assert placed(Platform(architecture="arm64", os="linux"), Platform(architecture="x86_64", os="linux")) == ""
    assert "unsupported platform" in placed(Platform(architecture="arm64", os="linux"))
    assert "unsupported platform" in placed(Platform(architecture="amd64", os="windows"))


def test_a_port_of_the_node_is_given_once():
    taken = [("tcp", 80)]
    assert refusal(TaskSpec(), NODE, 0, [], [("tcp", 81), ("udp", 80)], taken) == ""
    assert "host-mode port already in use" in refusal(TaskSpec(), NODE, 0, [], [("tcp", 80)], taken)
