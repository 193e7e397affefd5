"""Orders to a node that has the swarm's records about what to run."""

from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from husk.registry.auth import Credentials
from husk.storage.state.store import StateStore
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    ContainerSpec,
    FileTarget,
    SecretReference,
    Task,
    TaskSpec,
    TaskStatus,
    is_assigned,
)
from husk.swarm.node.assignments import LOCKED, LocalAssignments
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.unit.swarm.manager.test_planner import make_service, make_task

CREDENTIALS = Credentials("user", "word")


class Desk:
    def __init__(self, state: StateStore) -> None:
        self.store = SwarmRecords.load(SqliteStore(state))
        self.cluster = SimpleNamespace(
            node_id="n", locked=False, node_facts=lambda: NodeFacts(id="n", hostname="alpha")
        )
        self.heard: list[str] = []
        self.assignments = LocalAssignments(
            self.store,
            cast(Cluster, self.cluster),
            AsyncMock(of=AsyncMock(return_value=CREDENTIALS)),
            lambda task: self.heard.append(task.id),
        )


@pytest.fixture
def server(state: StateStore) -> Desk:
    return Desk(state)


async def test_a_node_sees_the_tasks_that_it_was_given(server: Desk):
    mine, other, waits = (
        make_task(1, version=0),
        make_task(2, version=0, node_id="m"),
        make_task(3, "pending", version=0),
    )
    await server.store.save(mine, other, waits)
    assert [task.id for task in server.assignments.tasks()] == [mine.id]
    assert server.assignments.task(mine.id) is server.store.tasks[mine.id]
    assert (
        server.assignments.task(other.id) is server.assignments.task(waits.id) is server.assignments.task("x") is None
    )
    assert [is_assigned(task) for task in (mine, other, waits)] == [True, True, False]
    assert server.assignments.node.id == "n"


async def test_what_becomes_of_a_task_is_written_and_told(server: Desk):
    task = make_task(1, version=0)
    await server.store.save(task)
    await server.assignments.report(task, TaskStatus(timestamp="", state="failed"))
    assert server.store.tasks[task.id].status.state == "failed"
    await server.assignments.gone(task)
    assert server.store.tasks == {} and server.heard == [task.id, task.id]


async def test_a_task_has_its_service_as_long_as_there_is_one(server: Desk):
    task = make_task(1)
    assert server.assignments.service(task) is None and await server.assignments.credentials(task) is None
    server.store.services["s"] = make_service()
    assert server.assignments.service(task) is server.store.services["s"]
    assert await server.assignments.credentials(task) == CREDENTIALS


def test_while_the_swarm_is_locked_nothing_with_a_secret_starts(server: Desk):
    def with_secret() -> Task:
        secret = SecretReference(secret_id="x", secret_name="x", file=FileTarget(name="x"))
        return make_task(1, spec=TaskSpec(container_spec=ContainerSpec(secrets=[secret])))

    assert server.assignments.obstacle(with_secret()) == ""
    server.cluster.locked = True
    assert server.assignments.obstacle(with_secret()) == LOCKED
    assert server.assignments.obstacle(make_task(1)) == ""
