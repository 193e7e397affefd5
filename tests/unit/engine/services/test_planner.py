"""The planner alone: what it wants done for a service, in single pictures and in whole simulated lives."""

import itertools
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.engine.clock import rfc3339
from husk.engine.services.model import (
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
from husk.engine.services.planner import Create, Forget, Stop, plan

START = 1_700_000_000 * SECOND


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
    assert plan(service, [], START).actions == [Create(0)]
    assert plan(service, [task], START).actions == []
    assert plan(service, [task], START, drained=True).actions == [Stop(task.id, True)]


def test_a_drained_node_ends_its_tasks_and_new_ones_wait():
    task = make_task(1)
    assert plan(make_service(1), [task], START, drained=True).actions == [Stop(task.id)]
    ended = make_task(1, "shutdown", desired_state="shutdown")
    assert plan(make_service(1), [ended], START, drained=True).actions == [Create(1)]
    waiting = make_task(1, "pending")
    assert plan(make_service(1), [ended, waiting], START, drained=True).actions == []


def test_a_job_runs_its_completions_a_few_at_a_time_and_is_then_done():
    service = make_service()
    service.spec.mode = Mode(replicated_job=ReplicatedJob(max_concurrent=2, total_completions=3))
    done = [make_task(slot, "complete", job_iteration=0, desired_state="complete") for slot in range(3)]
    assert plan(service, [], START).actions == [Create(0), Create(1)]
    assert plan(service, done[:1], START).actions == [Create(1), Create(2)]
    assert plan(service, done, START).actions == []


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
    config = UpdateConfig(order=order, **changes)  # type: ignore[arg-type]
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


def test_an_update_waits_its_delay_between_slots():
    service = updating(delay=10 * SECOND)
    new = make_task(1, "running", spec_version=2, created_ns=START)
    waiting = plan(service, [new, make_task(2)], START + SECOND)
    assert waiting.actions == []
    assert waiting.wake_at == START + 10 * SECOND


@pytest.mark.parametrize(("action", "state"), [("pause", "paused"), ("rollback", "rollback")])
def test_a_failing_update_is_paused_or_rolled_back(action: str, state: str):
    service = updating(failure_action=action)
    service.previous_spec = service.spec
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


class World:
    """Carries plans out, with tasks that start, fail and end at random; time is a number."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.tasks: list[Task] = []
        self.now = START
        self.random = random.Random(seed)
        self.ids = itertools.count()

    def act(self) -> bool:
        decided = plan(self.service, self.tasks, self.now)
        for action in decided.actions:
            match action:
                case Create(slot, restarts):
                    task = make_task(slot, "pending", created_ns=self.now, restarts=restarts, id=f"t{next(self.ids)}")
                    task.spec_version = self.service.spec_version
                    self.tasks.append(task)
                case Stop(task_id, remove):
                    self.find(task_id).desired_state = "remove" if remove else "shutdown"
                case Forget(task_id):
                    self.tasks.remove(self.find(task_id))
            self.now += 1
        if decided.verdict is not None:
            assert self.service.update_status is not None
            self.service.update_status.state = decided.verdict.state
        return bool(decided.actions)

    def find(self, task_id: str) -> Task:
        return next(task for task in self.tasks if task.id == task_id)

    def live(self, failing: bool) -> None:
        """A second passes."""
        self.now += SECOND
        for task in self.tasks:
            if not task.alive:
                continue
            if not task.wanted:
                self.move(task, "shutdown")
            elif task.status.state == "pending":
                self.move(task, "running")
            elif failing and self.random.random() < 0.2:
                self.move(task, self.random.choice(["failed", "complete"]))

    def move(self, task: Task, state: TaskState) -> None:
        started = self.now if state == "running" else task.status.started_ns
        task.status = TaskStatus(timestamp="", state=state, since_ns=self.now, started_ns=started)

    def running(self) -> list[Task]:
        return [task for task in self.tasks if task.status.state == "running" and task.wanted]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    replicas=st.integers(0, 6),
    scaled_to=st.integers(0, 6),
    order=st.sampled_from(["stop-first", "start-first"]),
    parallelism=st.integers(0, 3),
)
def test_whatever_happens_a_service_comes_back_to_its_declared_state(
    seed: int, replicas: int, scaled_to: int, order: str, parallelism: int
):
    service = with_policy(make_service(replicas), TaskRestartPolicy(delay=SECOND))
    service.spec.update_config = UpdateConfig(order=order, parallelism=parallelism, failure_action="continue")
    world = World(service, seed)
    for second in range(60):
        if second == 10:
            service.spec.mode.replicated = Replicated(replicas=scaled_to)
        if second == 20:
            service.spec_version += 1
            service.update_status = UpdateStatus(state="updating", started_at=rfc3339(world.now))
        world.act()
        for slot in {task.slot for task in world.tasks}:
            alive = [t for t in world.tasks if t.slot == slot and t.alive and t.wanted]
            assert len(alive) <= (2 if order == "start-first" else 1)
        world.live(failing=second < 30)
    for _ in range(20):
        world.act()
        world.live(failing=False)
    assert not world.act(), "it has settled"
    assert sorted(task.slot for task in world.running()) == list(range(1, scaled_to + 1))
    assert all(task.spec_version == service.spec_version for task in world.running())
