"""Constraints that services set for nodes."""

import pytest

from husk.errors import InvalidParameter
from husk.swarm.model.placement import (
    FAILURE_WINDOW,
    MANY_FAILURES,
    NodeFacts,
    NodeUsage,
    TaskUsage,
    check_constraint,
    parse_constraint,
    takes_room,
)
from husk.swarm.model.services import (
    SECOND,
    Amount,
    DiscreteResource,
    GenericResource,
    TaskResources,
    TaskSpec,
    TaskState,
)
from tests.unit.swarm.manager.test_planner import START, make_task

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


# What dockerd 28 was asked, and its answers.
@pytest.mark.parametrize(
    "text",
    ["node.labels.a==b", "node==x", "_a==b", "node.labels.a == b c", "node.ip==10.0.0.0/8", "node.labels.a\n==b",
     "node.labels.a==b\nc", "node.labels.a==*?+()[]^$|/\\", "node.labels.a==\u00a0b", "node.labels.a==\u212a"],
)  # fmt: skip
def test_what_dockerd_takes(text: str):
    check_constraint(text)
    assert parse_constraint(text).equal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a==b", "key 'a' is invalid"),
        ("==b", "key '' is invalid"),
        ("1a==b", "key '1a' is invalid"),
        ("node.labels.a/b==c", "key 'node.labels.a/b' is invalid"),
        ("node.labels.a b==c", "key 'node.labels.a b' is invalid"),
        ("node.labels.a!=b==c", "key 'node.labels.a!=b' is invalid"),
        ("node.labels.\u00e4==b", "key 'node.labels.\u00e4' is invalid"),
        ("node.id==", "value '' is invalid"),
        ("node.labels.a==b,c", "value 'b,c' is invalid"),
        ("node.labels.a===b", "value '=b' is invalid"),
        ("node.labels.a==\u00fc", "value '\u00fc' is invalid"),
        ("node.labels.a==b\vc", "value 'b\vc' is invalid"),
        ("node.labels.a=b", "constraint expected one operator from ==, !="),
    ],
)
def test_what_dockerd_does_not_take(text: str, said: str):
    with pytest.raises(InvalidParameter) as refused:
        check_constraint(text)
    assert refused.value.message == f"rpc error: code = Unknown desc = {said}"


@pytest.mark.parametrize("text", ["a==b", "node.labels.a/b==c,d", "node.labels.a!=b==c"])
def test_what_former_releases_took_is_still_read(text: str):
    assert parse_constraint(text).value


GPU = GenericResource(discrete_resource_spec=DiscreteResource(kind="gpu", value=2))
RESERVED = TaskResources(reservations=Amount(nano_cpus=5, memory_bytes=7, generic_resources=[GPU]))


def test_what_a_task_takes_it_gives_back():
    room = NodeUsage()
    use = TaskUsage(make_task(1, spec=TaskSpec(resources=RESERVED)), [("tcp", 80)])
    room.add(use)
    assert (room.tasks, room.services["s"], room.nano_cpus, room.memory, room.generic["gpu"]) == (1, 1, 5, 7, 2)
    assert ("tcp", 80) in room.ports
    room.add(use, -1)
    assert (room.tasks, room.nano_cpus, room.memory) == (0, 0, 0)
    assert not room.services and not room.generic and not room.ports


def test_one_that_is_to_end_has_its_resources_and_is_not_counted():
    room = NodeUsage()
    room.add(TaskUsage(make_task(1, desired_state="shutdown", spec=TaskSpec(resources=RESERVED))))
    assert room.tasks == 0 and room.memory == 7


@pytest.mark.parametrize(
    ("state", "node", "takes"),
    [
        ("pending", "n", False),
        ("assigned", "n", True),
        ("running", "n", True),
        ("failed", "n", False),
        ("new", "", False),
    ],
)
def test_who_takes_room(state: TaskState, node: str, takes: bool):
    assert takes_room(make_task(1, state, node_id=node)) == takes


def test_a_service_fails_on_a_node_when_it_did_so_often_within_minutes():
    room = NodeUsage()
    for number in range(MANY_FAILURES):
        assert room.fails("s", 1, START + number * SECOND) == 0
        room.failed("s", 1, START + number * SECOND)
    assert room.fails("s", 1, START + 5 * SECOND) == MANY_FAILURES
    assert room.fails("s", 2, START + 5 * SECOND) == 0, "another template is another chance"
    assert room.fails("other", 1, START + 5 * SECOND) == 0
    assert room.fails("s", 1, START + FAILURE_WINDOW) == 0
