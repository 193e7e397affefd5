"""Changes that a plan makes to records: all of it comes into the store, or memory is as before."""

from typing import Any

import msgspec
import pytest

from husk.storage.state.store import StateStore
from husk.swarm.manager.changes import TaskChanges
from husk.swarm.manager.planner import Action, Create, Forget, Orphan, Plan, Stop
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ContainerSpec, DriverSpec, Mode, ReplicatedJob, Service, TaskState
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import MOST_BYTES, MOST_STEPS, Put, Stale, Step
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_service, make_task

NODES = {"n": NodeFacts(id="n", hostname="alpha")}


@pytest.fixture
def store(state: StateStore) -> SwarmRecords:
    return SwarmRecords.load(SqliteStore(state))


async def carry_out(store: SwarmRecords, *actions: Action, service: Service | None = None) -> bool:
    changes = TaskChanges(store, NODES)
    done = changes.carry_out(Plan(list(actions)), service or make_service(), DriverSpec(name="local"))
    await changes.write()
    return done


async def add(store: SwarmRecords, state: TaskState = "running", node_id: str = "n", **fields: object) -> str:
    task = make_task(1, state, node_id=node_id, version=0, **fields)
    await store.save(task)
    return task.id


async def test_new_tasks_wait_for_a_node(store: SwarmRecords):
    assert await carry_out(store, Create(1, (5,)), Create(0, (), "n"))
    first, second = store.tasks.values()
    assert (first.slot, first.restarts, first.node_id, first.status.state) == (1, (5,), "", "pending")
    assert (second.slot, second.node_id, second.desired_state) == (0, "n", "running")
    assert first.spec.log_driver == DriverSpec(name="local")
    assert first.version == second.version, "they are written at once"


async def test_tasks_of_a_job_are_to_complete(store: SwarmRecords):
    service = make_service(job_iteration=3)
    service.spec.mode = Mode(replicated_job=ReplicatedJob(total_completions=1))
    await carry_out(store, Create(0), service=service)
    [task] = store.tasks.values()
    assert (task.desired_state, task.job_iteration) == ("complete", 3)


@pytest.mark.parametrize(("remove", "desired"), [(False, "shutdown"), (True, "remove")])
async def test_a_task_on_a_node_is_for_its_agent_to_end(store: SwarmRecords, remove: bool, desired: str):
    id = await add(store)
    assert await carry_out(store, Stop(id, remove))
    assert (store.tasks[id].desired_state, store.tasks[id].status.state) == (desired, "running")
    assert not await carry_out(store, Stop(id, remove)), "twice is once"


async def test_a_task_that_no_node_has_ends_by_itself(store: SwarmRecords):
    id, other = await add(store, "pending"), await add(store, "pending", "")
    await carry_out(store, Stop(id), Stop(other, remove=True))
    assert (store.tasks[id].desired_state, store.tasks[id].status.state) == ("shutdown", "shutdown")
    assert other not in store.tasks


async def test_what_is_forgotten_goes_when_its_node_has_nothing_of_it(store: SwarmRecords):
    here, elsewhere = await add(store, "failed"), await add(store, "orphaned", "gone")
    await carry_out(store, Forget(here), Forget(elsewhere), Forget("unknown"))
    assert store.tasks[here].desired_state == "remove" and elsewhere not in store.tasks
    assert not await carry_out(store, Forget(here)), "its agent is on it"


async def test_nothing_is_concluded_of_nodes_that_are_not_known(store: SwarmRecords):
    id = await add(store, node_id="anywhere")
    changes = TaskChanges(store, None)
    changes.forget(store.tasks[id])
    await changes.write()
    assert store.tasks[id].desired_state == "remove"


async def test_an_orphan_is_nobodys(store: SwarmRecords):
    id = await add(store)
    await carry_out(store, Orphan(id))
    assert store.tasks[id].status.state == "orphaned" and not store.tasks[id].alive


async def test_a_task_is_given_a_node_or_told_why_not(store: SwarmRecords):
    placed, refused, preassigned = (
        await add(store, "pending", ""),
        await add(store, "pending", ""),
        await add(store, "pending"),
    )
    changes = TaskChanges(store, NODES)
    changes.assign(store.tasks[placed], "n")
    changes.refuse(store.tasks[refused], "no suitable node")
    changes.assign(store.tasks[preassigned], "n")
    await changes.write()
    assert (store.tasks[placed].node_id, store.tasks[placed].status.state) == ("n", "assigned")
    assert (store.tasks[refused].status.state, store.tasks[refused].status.err) == ("pending", "no suitable node")
    assert "preassigned" in store.tasks[preassigned].status.message
    assert {task.id for task in store.index.on_node("n")} == {placed, preassigned}
    assert store.index.rooms["n"].tasks == 2


async def test_what_the_store_refuses_is_as_before(store: SwarmRecords):
    id = await add(store, "pending", "")
    known = store.tasks[id]
    changes = TaskChanges(store, NODES)
    changes.assign(known, "n")
    changes.carry_out(Plan([Create(2)]), make_service(), None)
    # Another manager was faster, and no news of it has come.
    await store.commit(Put("task", id, msgspec.json.encode(known), known.version))
    with pytest.raises(Stale):
        await changes.write()
    assert store.tasks == {id: known} and store.index.of_service(known.service_id) == [known]


async def test_nothing_can_be_seen_of_a_plan_before_it_is_written(store: SwarmRecords):
    """A plan of a deposed manager would go out with what its agent writes of the same task."""
    id = await add(store)
    known = store.tasks[id]
    changes = TaskChanges(store, NODES)
    changes.carry_out(Plan([Stop(id), Create(2)]), make_service(), None)
    assert changes.current(known).desired_state == "shutdown" and store.tasks == {id: known}
    await store.amend(known, lambda task: but(task, status__err="said by its node"))
    assert store.tasks[id].desired_state == "running"
    await changes.write()
    assert (store.tasks[id].desired_state, store.tasks[id].status.err) == ("shutdown", "said by its node")


async def test_what_is_given_to_a_node_has_not_ended_meanwhile(store: SwarmRecords):
    id = await add(store, "pending", "")
    changes = TaskChanges(store, NODES)
    changes.assign(store.tasks[id], "n")
    await store.amend(store.tasks[id], lambda task: but(task, desired_state="shutdown"))
    await changes.write()
    assert (store.tasks[id].node_id, store.tasks[id].desired_state) == ("", "shutdown")


async def test_no_transaction_is_larger_than_a_store_takes(store: SwarmRecords, monkeypatch: pytest.MonkeyPatch):
    sizes = []
    commit = store.store.commit

    async def counted(*steps: Step, **options: Any) -> int:
        sizes.append(sum(len(step.body) for step in steps if isinstance(step, Put)))
        return await commit(*steps, **options)

    monkeypatch.setattr(store.store, "commit", counted)
    service = make_service()
    service.spec.task_template.container_spec = ContainerSpec(image="busybox", env=["X=" + "x" * 20_000])
    await carry_out(store, *(Create(slot) for slot in range(1, 121)), service=service)
    assert len(store.tasks) == 120 and max(sizes) <= MOST_BYTES < sum(sizes)


async def test_many_are_written_in_pieces_and_new_ones_only_for_the_service_as_it_is(store: SwarmRecords):
    changes = TaskChanges(store, NODES)
    changes.carry_out(Plan([Create(slot) for slot in range(1, 2 * MOST_STEPS + 1)]), make_service(), None)
    answers = iter([True, False])
    await changes.write(lambda: next(answers))
    assert len(store.tasks) == MOST_STEPS
