"""Constraints that services set for nodes."""

import pytest

from husk.engine.services.model import Placement
from husk.engine.services.placement import NodeFacts, parse_constraint, suits
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
        # Values are compared as dockerd compares them; names of labels are what they are.
        ("node.labels.zone==North", True),
        ("node.labels.zone!=NORTH", False),
        ("engine.labels.disk==SSD", True),
        ("node.labels.Zone==north", False),
        ("node.labels.missing!=x", True),
        ("node.labels.Tier == a.b", True),
        ("engine.labels.disk==ssd", True),
        ("node.ip==192.0.2.0/24", True),
        ("node.ip!=192.0.2.0/24", False),
        ("node.ip==198.51.100.0/24", False),
        ("node.ip!=somewhere", False),
        # What nodes have not: nowhere, whichever way it is asked for.
        ("node.colour==red", False),
        ("node.colour!=red", False),
        ("node.labels.!=x", False),
    ],
)
def test_constraints(text: str, holds: bool):
    assert parse_constraint(text).holds(NODE) == holds


@pytest.mark.parametrize("text", ["", "node.id", "node.id=n1", "==x", "node.id==", "node.id!= "])
def test_what_is_no_constraint(text: str):
    with pytest.raises(InvalidParameter):
        parse_constraint(text)


def test_tasks_leave_a_node_that_constraints_do_not_hold_on():
    assert suits(None, NODE) and suits(Placement(constraints=["node.labels.zone==north", "node.role==manager"]), NODE)
    assert not suits(Placement(constraints=["node.labels.zone==north", "node.role==worker"]), NODE)
