"""Resources that tasks take of their node."""

import pytest

from husk.swarm.model.services import (
    SECOND,
    Amount,
    DiscreteResource,
    GenericResource,
    TaskResources,
    TaskSpec,
    TaskState,
)
from husk.swarm.model.usage import FAILURE_WINDOW, MANY_FAILURES, NodeUsage, TaskUsage, takes_room
from tests.unit.swarm.manager.test_planner import START, make_task

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
