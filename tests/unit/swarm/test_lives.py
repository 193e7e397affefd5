"""The planner through whole simulated lives: whatever happens, services come to what is declared, in every mode."""

import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.engine.model.clock import rfc3339
from husk.swarm.manager.planner import Create, Forget, Stop
from husk.swarm.manager.updates import conclude
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    SECOND,
    Empty,
    Mode,
    Replicated,
    ReplicatedJob,
    Service,
    Task,
    TaskRestartPolicy,
    TaskState,
    TaskStatus,
    UpdateConfig,
    UpdateStatus,
)
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import DRAINED, ONE, START, make_service, make_task, plan, with_policy

FAIL: list[TaskState] = ["failed", "complete"]


class World:
    """Carries plans out, with tasks that start, fail and end at random; time is a number."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.tasks: list[Task] = []
        self.now = START
        self.random = random.Random(seed)
        self.ids = itertools.count()
        self.drained = False
        self.retention = 5
        # Whether a task that runs ends in this second, and how.
        self.fate: Callable[[Task], TaskState | None] = lambda task: None

    def act(self) -> bool:
        decided = plan(self.service, self.tasks, self.now, self.nodes(), retention=self.retention)
        for action in decided.actions:
            match action:
                case Create(slot, restarts):
                    task = make_task(slot, "pending", created_ns=self.now, restarts=restarts, id=f"t{next(self.ids)}")
                    task = but(task, spec_version=self.service.spec_version, status__started_ns=0)
                    if self.service.spec.mode.is_job:
                        task = but(task, job_iteration=self.service.job_iteration, desired_state="complete")
                    self.tasks.append(task)
                case Stop(task_id, remove):
                    self.put(but(self.find(task_id), desired_state="remove" if remove else "shutdown"))
                case Forget(task_id):
                    self.tasks.remove(self.find(task_id))
            self.now += 1
        if decided.verdict is not None:
            self.service = conclude(self.service, decided.verdict, self.now, rfc3339(self.now))
        return bool(decided.actions)

    def nodes(self) -> dict[str, NodeFacts]:
        return DRAINED if self.drained else ONE

    def find(self, task_id: str) -> Task:
        return next(task for task in self.tasks if task.id == task_id)

    def live(self) -> None:
        """A second passes."""
        self.now += SECOND
        for task in self.tasks:
            if not task.alive:
                continue
            if not task.wanted:
                self.move(task, "shutdown")
            elif task.status.state == "pending":
                if not self.drained:
                    self.move(task, "running")
            elif (end := self.fate(task)) is not None:
                self.move(task, end)

    def move(self, task: Task, state: TaskState) -> None:
        started = self.now if state == "running" else task.status.started_ns
        self.put(but(task, status=TaskStatus(timestamp="", state=state, since_ns=self.now, started_ns=started)))

    def put(self, task: Task) -> None:
        self.tasks = [task if one.id == task.id else one for one in self.tasks]

    def often(self, *ends: TaskState) -> Callable[[Task], TaskState | None]:
        """Now and then a task ends in one of these ways."""
        return lambda task: self.random.choice(ends) if self.random.random() < 0.2 else None

    def change(self) -> None:
        """The template is another one from now on."""
        service = self.service
        self.service = but(
            service,
            previous_spec=service.spec,
            previous_spec_version=service.spec_version,
            spec_versions=service.spec_versions + 1,
            spec_version=service.spec_versions + 1,
            update_status=UpdateStatus(state="updating", started_at=rfc3339(self.now)),
        )

    def settle(self, seconds: int = 40) -> None:
        for _ in range(seconds):
            self.act()
            self.live()
        assert not self.act(), "it has settled"

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
            world.change()
        world.fate = world.often(*FAIL) if second < 30 else lambda task: None
        world.act()
        for slot in {task.slot for task in world.tasks}:
            alive = [t for t in world.tasks if t.slot == slot and t.alive and t.wanted]
            assert len(alive) <= (2 if order == "start-first" else 1)
        world.live()
    world.settle()
    assert len(world.running()) == len({task.slot for task in world.running()}) == scaled_to
    assert all(task.spec_version == world.service.spec_version for task in world.running())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), total=st.integers(1, 8), concurrent=st.integers(1, 4), again=st.booleans())
def test_a_job_completes_as_often_as_declared(seed: int, total: int, concurrent: int, again: bool):
    service = with_policy(make_service(), TaskRestartPolicy(delay=0))
    service.spec.mode = Mode(replicated_job=ReplicatedJob(max_concurrent=concurrent, total_completions=total))
    world = World(service, seed)
    world.fate = world.often("failed", "complete")
    for second in range(200):
        if again and second == 10:
            service = but(service, job_iteration=service.job_iteration + 1, spec_version=service.spec_version + 1)
            world.service = service
        world.act()
        mine = [t for t in world.tasks if t.alive and t.wanted and t.job_iteration == service.job_iteration]
        assert len(mine) <= concurrent
        world.live()
    world.fate = lambda task: "complete"  # however much bad luck there was, nothing fails for ever
    world.settle()
    done = [t for t in world.tasks if t.status.state == "complete" and t.job_iteration == service.job_iteration]
    assert Counter(task.slot for task in done) == Counter(range(total)), "each exactly once"
    assert not world.running()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), drains=st.lists(st.integers(0, 40), max_size=6), everywhere=st.booleans())
def test_a_node_that_is_drained_and_comes_back(seed: int, drains: list[int], everywhere: bool):
    service = with_policy(make_service(3), TaskRestartPolicy(delay=SECOND))
    if everywhere:
        service.spec.mode = Mode(global_=Empty())
    world = World(service, seed)
    world.fate = world.often(*FAIL)
    for second in range(50):
        world.drained ^= second in drains
        world.act()
        assert not world.drained or not [t for t in world.tasks if t.status.state == "running" and t.wanted]
        world.live()
    world.drained, world.fate = False, lambda task: None
    world.settle()
    assert sorted(task.slot for task in world.running()) == ([0] if everywhere else [1, 2, 3])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    replicas=st.integers(1, 5),
    order=st.sampled_from(["stop-first", "start-first"]),
    parallelism=st.integers(0, 3),
    never=st.booleans(),
)
def test_an_update_that_fails_is_undone(seed: int, replicas: int, order: str, parallelism: int, never: bool):
    """`never` says that new tasks do not even come to run."""
    service = with_policy(make_service(replicas), TaskRestartPolicy(delay=SECOND))
    service.spec.update_config = UpdateConfig(order=order, parallelism=parallelism, failure_action="rollback")
    world = World(service, seed)
    world.settle()
    before = {task.id for task in world.running()}
    world.change()

    def fate(task: Task) -> TaskState | None:
        return "failed" if task.spec_version == 2 else None

    world.fate = fate
    for _ in range(60):
        world.act()
        if never:
            for task in [t for t in world.tasks if t.status.state == "pending" and t.spec_version == 2]:
                world.move(task, "rejected")
        world.live()
    world.settle()
    assert world.service.update_status is not None and world.service.update_status.state == "rollback_completed"
    assert world.service.spec_version == 1 and {task.spec_version for task in world.running()} == {1}
    assert sorted(task.slot for task in world.running()) == list(range(1, replicas + 1))
    if never:
        touched = 0 if order == "start-first" else parallelism or replicas
        kept = before & {task.id for task in world.running()}
        assert len(kept) >= replicas - touched, "what was never touched is not restarted"


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_a_share_of_failures_may_be_tolerated(ratio: float):
    service = with_policy(make_service(4), TaskRestartPolicy(condition="none"))
    service.spec.update_config = UpdateConfig(parallelism=1, max_failure_ratio=ratio)
    world = World(service, 1)
    world.settle()
    world.change()
    world.fate = lambda task: "failed" if task.spec_version == 2 and task.slot <= 2 else None
    for _ in range(60):
        world.act()
        world.live()
    assert world.service.update_status is not None
    assert world.service.update_status.state == ("paused" if ratio < 0.5 else "completed")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), attempts=st.integers(1, 4), window=st.sampled_from([0, 3, 1000]))
def test_attempts_are_limited_within_their_window(seed: int, attempts: int, window: int):
    policy = TaskRestartPolicy(delay=SECOND, max_attempts=attempts, window=window * SECOND)
    world = World(with_policy(make_service(1), policy), seed)
    world.fate = lambda task: "failed"
    world.retention = -1
    for _ in range(60):
        world.act()
        world.live()
    tried = len(world.tasks)
    if window == 3:
        # One try takes three seconds: never two of them are within the window, unless one is enough.
        assert tried == 2 if attempts == 1 else tried > attempts + 1
    else:
        assert tried == attempts + 1


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), retention=st.integers(0, 4))
def test_history_stays_within_its_limit(seed: int, retention: int):
    world = World(with_policy(make_service(2), TaskRestartPolicy(delay=0)), seed)
    world.fate = world.often(*FAIL)
    world.retention = retention
    for _ in range(80):
        world.act()
        world.live()
        world.act()
        ended = Counter(task.slot for task in world.tasks if not task.alive)
        assert not ended or max(ended.values()) <= retention
