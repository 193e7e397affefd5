"""The planner alone: what it wants done for a service, in single pictures and in whole simulated lives."""

import random
from collections.abc import Iterable, Mapping

import msgspec
import pytest

from husk.engine.model.clock import rfc3339
from husk.swarm.manager import planner
from husk.swarm.manager.planner import WINDOW, Create, Forget, Plan, Stop, planning
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    SECOND,
    Empty,
    Mode,
    Replicated,
    ReplicatedJob,
    Service,
    ServiceSpec,
    Task,
    TaskRestartPolicy,
    TaskSpec,
    TaskState,
    TaskStatus,
    UpdateConfig,
    UpdateStatus,
)
from tests.support.but import but
from tests.support.generators import at_once

START = 1_700_000_000 * SECOND
ONE = {"n": NodeFacts(id="n", hostname="alpha")}
DRAINED = {"n": NodeFacts(id="n", hostname="alpha", availability="drain")}


def plan(
    service: Service,
    tasks: Iterable[Task],
    now: int,
    nodes: Mapping[str, NodeFacts] = ONE,
    retention: int = planner.RETENTION,
) -> Plan:
    """On one node, where nothing else is said."""
    return at_once(planning(service, tasks, now, nodes, retention=retention))


def make_service(replicas: int = 3, **changes: object) -> Service:
    spec = ServiceSpec(name="web", mode=Mode(replicated=Replicated(replicas=replicas)))
    service = Service(id="s", version=1, created_at="", updated_at="", spec=spec)
    return msgspec.structs.replace(service, **changes)


def make_task(slot: int, state: TaskState = "running", **changes: object) -> Task:
    status = TaskStatus(timestamp="", state=state, since_ns=START, started_ns=START)
    task = Task(
        id=f"t{slot}-{random.random()}",
        version=1,
        created_at="",
        created_ns=START,
        updated_at="",
        service_id="s",
        service_name="web",
        slot=slot,
        node_id="n",
        spec=TaskSpec(),
        spec_version=1,
        status=status,
    )
    return msgspec.structs.replace(task, **changes)


def with_policy(service: Service, policy: TaskRestartPolicy) -> Service:
    service.spec.task_template.restart_policy = policy
    return service


def test_an_empty_service_gets_a_task_in_each_slot():
    assert plan(make_service(3), [], START).actions == [Create(1), Create(2), Create(3)]


def test_a_service_as_declared_needs_nothing():
    assert plan(make_service(2), [make_task(1), make_task(2)], START).actions == []


def test_scaling_down_removes_the_highest_slots():
    tasks = [make_task(1), make_task(2), make_task(3)]
    assert plan(make_service(1), tasks, START).actions == [Stop(tasks[1].id, True), Stop(tasks[2].id, True)]


@pytest.mark.parametrize("state", ["failed", "starting", "pending"])
def test_scaling_down_keeps_what_runs(state: TaskState):
    tasks = [make_task(1, state), make_task(2), make_task(3)]
    decided = plan(make_service(2), tasks, START)
    gone = [Stop(tasks[0].id, True)] if tasks[0].alive else [Forget(tasks[0].id)]
    assert decided.actions == gone and decided.wake_at is None
    left = tasks[1:]
    assert plan(make_service(2), left, START).actions == [], "the numbers that are left are as good as others"
    assert plan(make_service(3), left, START).actions == [Create(1)]
    assert plan(make_service(1), left, START).actions == [Stop(tasks[2].id, True)]


def test_scaling_down_keeps_one_on_each_node():
    nodes = {name: NodeFacts(id=name, hostname=name) for name in "ab"}
    tasks = [make_task(1, node_id="a"), make_task(2, node_id="a"), make_task(3, node_id="b")]
    assert plan(make_service(2), tasks, START, nodes).actions == [Stop(tasks[1].id, True)]


def test_what_is_being_removed_makes_room_for_nobody():
    """A slot that ends is not chosen again before it has ended, however the others fare meanwhile."""
    tasks = [make_task(1), make_task(2, desired_state="remove"), make_task(3, "starting")]
    assert plan(make_service(2), tasks, START).actions == []
    assert [action for action in plan(make_service(3), tasks, START).actions if isinstance(action, Create)] == []


@pytest.mark.parametrize("state", ["failed", "complete", "rejected"])
def test_an_ended_task_is_replaced_after_the_delay(state: TaskState):
    service = with_policy(make_service(1), TaskRestartPolicy(delay=2 * SECOND))
    ended = make_task(1, state)
    early = plan(service, [ended], START + SECOND)
    assert early.actions == []
    assert early.wake_at == START + 2 * SECOND
    due = START + 2 * SECOND
    assert plan(service, [ended], due).actions == [Create(1, (due,))]


def test_the_delay_is_five_seconds_unless_declared():
    assert plan(make_service(1), [make_task(1, "failed")], START).wake_at == START + 5 * SECOND


@pytest.mark.parametrize(
    ("condition", "state", "replaced"),
    [
        ("any", "complete", True),
        ("any", "failed", True),
        ("on-failure", "complete", False),
        ("on-failure", "failed", True),
        ("none", "complete", False),
        ("none", "failed", False),
    ],
)
def test_the_restart_condition_decides(condition: str, state: TaskState, replaced: bool):
    service = with_policy(make_service(1), TaskRestartPolicy(condition=condition, delay=0))
    assert bool(plan(service, [make_task(1, state)], START).actions) == replaced


def test_attempts_are_counted_within_their_window():
    policy = TaskRestartPolicy(delay=0, max_attempts=2, window=10 * SECOND)
    service = with_policy(make_service(1), policy)
    recent = make_task(1, "failed", restarts=(START - 2 * SECOND, START - SECOND))
    assert plan(service, [recent], START).actions == []
    old = make_task(1, "failed", restarts=(START - 60 * SECOND, START - SECOND))
    assert plan(service, [old], START).actions == [Create(1, (START - SECOND, START))]


def test_a_global_service_has_one_task_and_none_on_a_drained_node():
    service = make_service()
    service.spec.mode = Mode(global_=Empty())
    task = make_task(0)
    assert plan(service, [], START).actions == [Create(0, (), "n")]
    assert plan(service, [task], START).actions == []
    assert plan(service, [task], START, DRAINED).actions == [Stop(task.id, True)]


def test_a_drained_node_ends_its_tasks_and_new_ones_wait():
    task = make_task(1)
    assert plan(make_service(1), [task], START, DRAINED).actions == [Stop(task.id)]
    ended = make_task(1, "shutdown", desired_state="shutdown")
    assert plan(make_service(1), [ended], START, DRAINED).actions == [Create(1)]
    waiting = make_task(1, "pending")
    assert plan(make_service(1), [ended, waiting], START, DRAINED).actions == []


def test_a_job_runs_its_completions_a_few_at_a_time_and_is_then_done():
    service = make_service()
    service.spec.mode = Mode(replicated_job=ReplicatedJob(max_concurrent=2, total_completions=3))
    done = [make_task(slot, "complete", job_iteration=0, desired_state="complete") for slot in range(3)]
    assert plan(service, [], START).actions == [Create(0), Create(1)]
    assert plan(service, done[:1], START).actions == [Create(1), Create(2)]
    assert plan(service, done, START).actions == []


def test_a_million_slots_get_their_first_tasks_a_few_at_a_time():
    service = make_service(10**6)
    first = plan(service, [], START).actions
    assert first == [Create(slot) for slot in range(1, WINDOW + 1)]
    waiting = [make_task(slot, "pending") for slot in range(1, WINDOW + 1)]
    assert plan(service, waiting, START).actions == [], "where these find no place, others do neither"
    one_runs = [make_task(1), *waiting[1:]]
    assert plan(service, one_runs, START).actions == [Create(WINDOW + 1)]
    failed = [make_task(slot, "failed") for slot in range(1, WINDOW + 1)]
    assert plan(service, failed, START).actions == [], "what fails is tried again first"


def test_a_job_of_a_million_completions_is_begun_a_few_at_a_time():
    service = make_service()
    service.spec.mode = Mode(replicated_job=ReplicatedJob(max_concurrent=10**6, total_completions=10**6))
    assert plan(service, [], START).actions == [Create(slot) for slot in range(WINDOW)]
    done = [make_task(slot, "complete", job_iteration=0, desired_state="complete") for slot in range(WINDOW)]
    assert plan(service, done, START).actions == [Create(slot) for slot in range(WINDOW, 2 * WINDOW)]


def test_an_update_is_not_done_while_slots_never_had_a_task():
    service = make_service(10**6, spec_version=2, update_status=UpdateStatus(state="updating", started_at=rfc3339(0)))
    new = [make_task(slot, spec_version=2) for slot in range(1, 4)]
    assert plan(service, new, START + 3600 * SECOND).verdict is None


def test_a_plan_for_many_tasks_is_made_in_pieces():
    tasks = [make_task(slot) for slot in range(1, 5001)]
    assert sum(1 for _ in planning(make_service(5000), tasks, START, ONE)) >= 10


def test_history_is_kept_up_to_the_limit():
    old = [make_task(1, "failed", created_ns=START - n * SECOND, id=f"old{n}") for n in range(4, 0, -1)]
    live = make_task(1)
    assert plan(make_service(1), [*old, live], START, retention=2).actions == [Forget("old4"), Forget("old3")]


def test_history_of_slots_that_are_gone_is_dropped():
    old = make_task(2, "failed")
    assert plan(make_service(1), [make_task(1), old], START).actions == [Forget(old.id)]


def test_all_history_is_kept_without_a_limit():
    old = [make_task(1, "failed", created_ns=START - n * SECOND) for n in range(9, 0, -1)]
    assert plan(make_service(1), [*old, make_task(1)], START, retention=-1).actions == []


def updating(order: str = "stop-first", **changes: object) -> Service:
    config = UpdateConfig(**{"order": order, "parallelism": 1, **changes})  # type: ignore[arg-type]
    service = make_service(2, spec_version=2, update_status=UpdateStatus(state="updating", started_at=rfc3339(START)))
    service.spec.update_config = config
    return service


def test_an_update_ends_the_old_task_first_one_slot_at_a_time():
    tasks = [make_task(1), make_task(2)]
    assert plan(updating(), tasks, START).actions == [Stop(tasks[0].id)]
    stopping = msgspec.structs.replace(tasks[0], desired_state="shutdown")
    assert plan(updating(), [stopping, tasks[1]], START).actions == []
    ended = make_task(1, "shutdown", desired_state="shutdown")
    assert plan(updating(), [ended, tasks[1]], START).actions == [Create(1)]


def test_an_update_may_start_the_new_task_first():
    tasks = [make_task(1), make_task(2)]
    service = updating("start-first")
    assert plan(service, tasks, START).actions == [Create(1)]
    new = make_task(1, "starting", spec_version=2, created_ns=START + 1)
    assert plan(service, [*tasks, new], START + 1).actions == []
    running = make_task(1, "running", spec_version=2, created_ns=START + 1)
    assert plan(service, [*tasks, running], START + 1).actions == [Stop(tasks[0].id)]


def test_of_updates_that_overtake_each_other_a_slot_has_two_tasks_at_most():
    service = but(updating("start-first"), spec_version=3, spec_versions=3)
    done = make_task(2, spec_version=3)
    runs, overtaken = make_task(1), make_task(1, "preparing", spec_version=2, created_ns=START + 1)
    assert plan(service, [done, runs, overtaken], START + 2).actions == [Stop(overtaken.id), Create(1)]
    newest = make_task(1, "preparing", spec_version=3, created_ns=START + 2)
    assert plan(service, [done, runs, newest], START + 3).actions == []
    assert plan(service, [done, runs, overtaken, newest], START + 3).actions == [Stop(overtaken.id)]
    # Where none of them runs nobody misses the older ones.
    never = make_task(1, "preparing", created_ns=START)
    assert plan(service, [done, never, overtaken], START + 2).actions == [Stop(never.id), Create(1)]


def test_an_update_waits_its_delay_between_slots():
    service = updating(delay=10 * SECOND)
    new = make_task(1, "running", spec_version=2, created_ns=START)
    waiting = plan(service, [new, make_task(2)], START + SECOND)
    assert waiting.actions == []
    assert waiting.wake_at == START + 10 * SECOND


@pytest.mark.parametrize(("action", "state"), [("pause", "paused"), ("rollback", "rollback")])
def test_a_failing_update_is_paused_or_rolled_back(action: str, state: str):
    service = updating(failure_action=action)
    service = but(service, previous_spec=service.spec)
    failed = make_task(1, "failed", spec_version=2, created_ns=START)
    verdict = plan(service, [failed, make_task(2)], START + SECOND).verdict
    assert verdict is not None and verdict.state == state
    assert failed.id in verdict.message


def test_an_update_is_complete_when_all_new_tasks_have_proved_themselves():
    service = updating()
    tasks = [make_task(slot, spec_version=2, created_ns=START) for slot in (1, 2)]
    assert plan(service, tasks, START + SECOND).verdict is None
    verdict = plan(service, tasks, START + 6 * SECOND).verdict
    assert verdict is not None and verdict.state == "completed"


def test_what_came_last_is_told_by_its_number_and_not_by_a_clock():
    """The clock was set an hour back between the first and the second."""
    policy = TaskRestartPolicy(delay=0, max_attempts=1)
    first = make_task(1, "failed", number=1)
    second = make_task(1, "failed", number=2, created_ns=START - 3600 * SECOND, restarts=(START,))
    decided = plan(with_policy(make_service(1), policy), [first, second], START + SECOND)
    assert not [action for action in decided.actions if isinstance(action, Create)], "it was tried again once"
    live = make_task(1, number=3, created_ns=START - 7200 * SECOND, spec_version=1)
    decided = plan(with_policy(make_service(1), policy), [make_task(1, number=2), live], START + SECOND)
    assert [action.task_id for action in decided.actions if isinstance(action, Stop)] != [live.id], "the older one ends"
