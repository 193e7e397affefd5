"""Services on nodes that come, go, are drained and are lost: planner and scheduler together, in simulated lives."""

import itertools
import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from husk.engine.model.clock import rfc3339
from husk.swarm.manager.planner import ORPHANED_AFTER, Create, Forget, Orphan, Stop, slot_of
from husk.swarm.manager.scheduler.scheduler import schedule
from husk.swarm.manager.updates import conclude
from husk.swarm.model.placement import NodeFacts, parse_constraint
from husk.swarm.model.services import (
    SECOND,
    Empty,
    Mode,
    Placement,
    Replicated,
    Service,
    Task,
    TaskRestartPolicy,
    TaskState,
    TaskStatus,
    UpdateConfig,
    UpdateStatus,
)
from husk.swarm.state.task_index import TaskIndex
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import START, make_service, make_task, plan, with_policy


def facts(id: str, **changes: object) -> NodeFacts:
    return NodeFacts(id=id, hostname=id, **changes)  # type: ignore[arg-type]


class Swarm:
    """Carries plans out on nodes without hosts; time is a number. What runs on a lost node nobody hears of."""

    def __init__(self, service: Service, *nodes: str) -> None:
        self.service = service
        self.nodes = {id: facts(id) for id in nodes}
        self.tasks: dict[str, Task] = {}
        self.index = TaskIndex(lambda service_id: ())
        self.now = START
        self.ids = itertools.count()

    def change(self, id: str, **changes: object) -> None:
        if changes.get("state") == "down":
            changes["lost_ns"] = self.now
        self.nodes[id] = msgspec.structs.replace(self.nodes[id], **changes)

    def act(self) -> int:
        """Plan and place; how much there was to do."""
        decided = plan(self.service, list(self.tasks.values()), self.now, self.nodes)
        for action in decided.actions:
            self.now += 1
            match action:
                case Create(slot, restarts, node_id):
                    task = make_task(slot, "pending", id=f"t{next(self.ids)}", created_ns=self.now, node_id=node_id)
                    task = but(task, spec_version=self.service.spec_version, restarts=restarts)
                    self.tasks[task.id] = task
                case Stop(task_id, remove):
                    self.tasks[task_id] = but(self.tasks[task_id], desired_state="remove" if remove else "shutdown")
                case Forget(task_id):
                    self.index.drop(self.tasks.pop(task_id))
                case Orphan(task_id):
                    self.move(self.tasks[task_id], "orphaned")
        for task in list(self.tasks.values()):
            if task.status.state == "pending" and not task.wanted:
                self.move(task, "shutdown")
            else:
                self.index.note(task)
        if decided.verdict is not None:
            self.service = conclude(self.service, decided.verdict, self.now, rfc3339(self.now))
        waiting = [task for task in self.tasks.values() if task.wanted and task.status.state == "pending"]
        choices = schedule(self.service, waiting, self.nodes, self.index.rooms, self.now)
        for task, node_id in choices.placed:
            node = self.nodes[node_id]
            placement = self.service.spec.task_template.placement
            wanted = placement.constraints if placement else []
            assert node.takes_tasks and all(parse_constraint(text).holds(node) for text in wanted)
            self.move(but(task, node_id=node_id), "assigned")
        return len(decided.actions) + len(choices.placed)

    def live(self) -> None:
        """A second passes on the nodes that are there."""
        self.now += SECOND
        for task in list(self.tasks.values()):
            node = self.nodes.get(task.node_id)
            if not task.alive or task.status.state == "pending" or node is None or node.lost:
                continue
            if not task.wanted:
                self.move(task, "shutdown")
            elif task.status.state == "assigned":
                self.move(task, "running")

    def move(self, task: Task, state: TaskState) -> None:
        started = self.now if state == "running" else task.status.started_ns
        status = TaskStatus(timestamp="", state=state, since_ns=self.now, started_ns=started)
        self.tasks[task.id] = but(task, status=status)
        self.index.note(self.tasks[task.id])

    def settle(self, seconds: int = 30) -> None:
        for _ in range(seconds):
            self.act()
            self.live()
        assert self.act() == 0, "what is fine is not touched"

    def running(self) -> list[Task]:
        """Those that are wanted, on nodes that are there."""
        there = [task for task in self.tasks.values() if task.wanted and task.status.state == "running"]
        return [task for task in there if task.node_id in self.nodes and not self.nodes[task.node_id].lost]

    def check(self, most: int) -> None:
        """In no slot more than `most` live, as far as anybody can tell."""
        everywhere = self.service.spec.mode.is_global
        live = Counter(
            slot_of(task, everywhere)
            for task in self.tasks.values()
            if task.alive and task.wanted and not (task.node_id in self.nodes and self.nodes[task.node_id].lost)
        )
        assert not live or max(live.values()) <= most


def replicated(replicas: int, **placement: object) -> Service:
    service = with_policy(make_service(replicas), TaskRestartPolicy(delay=SECOND))
    service.spec.task_template.placement = Placement(**placement)  # type: ignore[arg-type]
    return service


def everywhere() -> Service:
    service = replicated(1)
    service.spec.mode = Mode(global_=Empty())
    return service


def homes(swarm: Swarm) -> Counter[str]:
    return Counter(task.node_id for task in swarm.running())


def test_tasks_are_spread_over_the_nodes():
    swarm = Swarm(replicated(6), "a", "b", "c")
    swarm.settle()
    assert homes(swarm) == {"a": 2, "b": 2, "c": 2}


def test_a_drained_node_gives_up_its_tasks_and_a_paused_one_keeps_them():
    swarm = Swarm(replicated(6), "a", "b", "c")
    swarm.settle()
    swarm.change("a", availability="drain")
    swarm.change("b", availability="pause")
    kept = {task.id for task in swarm.running() if task.node_id != "a"}
    swarm.settle()
    assert homes(swarm) == {"b": 2, "c": 4}
    assert kept <= {task.id for task in swarm.running()}


def test_tasks_of_a_lost_node_run_elsewhere_at_once_and_end_there_when_it_returns():
    swarm = Swarm(replicated(4), "a", "b")
    swarm.settle()
    swarm.change("a", state="down")
    lost = [task.id for task in swarm.tasks.values() if task.node_id == "a"]
    swarm.act()
    assert {swarm.tasks[id].desired_state for id in lost} == {"shutdown"}
    assert {swarm.tasks[id].status.state for id in lost} == {"running"}
    swarm.live()
    assert homes(swarm) == {"b": 4}, "they do not wait for what nobody hears of"
    swarm.change("a", state="ready")
    swarm.settle()
    assert homes(swarm) == {"b": 4} and {swarm.tasks[id].status.state for id in lost} == {"shutdown"}


def test_tasks_of_a_lost_node_are_given_up_after_a_day():
    swarm = Swarm(replicated(2), "a", "b")
    swarm.settle()
    swarm.change("a", state="down")
    swarm.settle()
    [lost] = [task for task in swarm.tasks.values() if task.node_id == "a"]
    decided = plan(swarm.service, list(swarm.tasks.values()), swarm.now, swarm.nodes)
    assert decided.wake_at == swarm.nodes["a"].lost_ns + ORPHANED_AFTER
    swarm.now = decided.wake_at
    swarm.settle()
    assert swarm.tasks[lost.id].status.state == "orphaned" and homes(swarm) == {"b": 2}


def test_tasks_of_a_node_that_is_removed_are_given_up_at_once():
    swarm = Swarm(replicated(2), "a", "b")
    swarm.settle()
    del swarm.nodes["a"]
    [lost] = [task for task in swarm.tasks.values() if task.node_id == "a"]
    swarm.settle()
    assert swarm.tasks[lost.id].status.state == "orphaned" and homes(swarm) == {"b": 2}


def test_a_task_that_was_lost_is_replaced_whatever_the_policy_and_what_came_before():
    service = replicated(1)
    service.spec.task_template.restart_policy = TaskRestartPolicy(condition="none")
    swarm = Swarm(service, "a", "b")
    swarm.settle()
    [first] = swarm.running()
    swarm.change(first.node_id, state="down")
    swarm.settle()
    [second] = swarm.running()
    assert second.node_id != first.node_id


def test_a_global_service_is_on_each_node_that_suits():
    service = everywhere()
    service.spec.task_template.placement = Placement(constraints=["node.hostname!=b"])
    swarm = Swarm(service, "a", "b", "c", "d", "e")
    swarm.change("d", availability="drain")
    swarm.change("e", availability="pause")
    swarm.settle()
    assert homes(swarm) == {"a": 1, "c": 1}
    swarm.change("e", availability="active")
    swarm.change("c", availability="pause")
    swarm.nodes["f"] = facts("f")
    swarm.settle()
    assert homes(swarm) == {"a": 1, "c": 1, "e": 1, "f": 1}, "one that is paused keeps its task"
    swarm.change("a", state="down")
    swarm.change("c", availability="drain")
    del swarm.nodes["f"]
    swarm.settle()
    assert homes(swarm) == {"e": 1}
    assert {task.node_id for task in swarm.tasks.values()} == {"a", "e"} | (
        {task.node_id for task in swarm.tasks.values()} & {"c", "d"}
    ), "of nodes that are gone nothing is kept"
    swarm.change("a", state="ready")
    swarm.settle()
    assert homes(swarm) == {"a": 1, "e": 1}


def test_a_global_job_runs_once_on_each_node():
    service = everywhere()
    service.spec.mode = Mode(global_job=Empty())
    plan_of = lambda tasks, *ids: plan(service, tasks, START, {id: facts(id) for id in ids}).actions  # noqa: E731
    assert plan_of([], "a", "b") == [Create(0, (), "a"), Create(0, (), "b")]
    done = make_task(0, "complete", node_id="a", job_iteration=0, desired_state="complete")
    assert plan_of([done], "a", "b") == [Create(0, (), "b")]
    runs = make_task(0, "running", node_id="b", job_iteration=0, desired_state="complete")
    assert plan_of([done, runs], "a", "b") == []
    drained = {"a": facts("a"), "b": facts("b", availability="drain")}
    assert plan(service, [done, runs], START, drained).actions == [Stop(runs.id, remove=True)]


def test_constraints_that_hold_no_more_move_tasks():
    service = replicated(4)
    swarm = Swarm(service, "a", "b")
    swarm.settle()
    service.spec.task_template.placement = Placement(constraints=["node.hostname==b"])
    swarm.settle()
    assert homes(swarm) == {"b": 4}


@pytest.mark.parametrize("order", ["stop-first", "start-first"])
def test_an_update_leaves_a_paused_node_as_it_is_and_goes_on_there_afterwards(order: str):
    service = everywhere()
    service.spec.update_config = UpdateConfig(order=order, parallelism=1)
    swarm = Swarm(service, "a", "b")
    swarm.settle()
    kept = next(task.id for task in swarm.running() if task.node_id == "b")
    swarm.change("b", availability="pause")
    swarm.service = but(
        service,
        previous_spec=service.spec,
        previous_spec_version=1,
        spec_version=2,
        spec_versions=2,
        update_status=UpdateStatus(state="updating", started_at=rfc3339(swarm.now)),
    )
    swarm.settle()
    assert {task.node_id: task.spec_version for task in swarm.running()} == {"a": 2, "b": 1}
    assert kept in {task.id for task in swarm.running()}
    assert swarm.service.update_status is not None and swarm.service.update_status.state == "completed"
    swarm.change("b", availability="active")
    swarm.settle()
    assert {task.node_id: task.spec_version for task in swarm.running()} == {"a": 2, "b": 2}


@pytest.mark.parametrize("kind", ["replicated", "global"])
@pytest.mark.parametrize("order", ["stop-first", "start-first"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), replicas=st.integers(0, 7))
def test_whatever_becomes_of_nodes_a_service_comes_back_to_its_declared_state(
    kind: str, order: str, seed: int, replicas: int
):
    chance = random.Random(seed)
    service = everywhere() if kind == "global" else replicated(replicas)
    service.spec.update_config = UpdateConfig(order=order, parallelism=2, failure_action="continue")
    swarm = Swarm(service, "a", "b", "c", "d")
    for second in range(50):
        if chance.random() < 0.3:
            id = chance.choice(sorted(swarm.nodes))
            changes = [{"state": "down"}, {"state": "ready"}, {"availability": "drain"}, {"availability": "pause"}]
            swarm.change(id, **chance.choice([*changes, {"availability": "active"}]))
        if chance.random() < 0.05 and len(swarm.nodes) > 2:
            del swarm.nodes[chance.choice(sorted(swarm.nodes))]
        if chance.random() < 0.05:
            swarm.nodes[f"new{second}"] = facts(f"new{second}")
        if second == 25:
            service = but(
                swarm.service,
                previous_spec=service.spec,
                previous_spec_version=service.spec_version,
                spec_version=2,
                spec_versions=2,
                update_status=UpdateStatus(state="updating", started_at=rfc3339(swarm.now)),
            )
            swarm.service = service
        if second == 30 and service.spec.mode.replicated is not None:
            replicas = chance.randrange(8)
            service.spec.mode.replicated = Replicated(replicas=replicas)
        swarm.act()
        swarm.check(2 if order == "start-first" else 1)
        swarm.live()
    for id in swarm.nodes:
        swarm.change(id, state="ready", availability="active")
    swarm.settle(60)
    swarm.check(1)
    there = [slot_of(task, kind == "global") for task in swarm.running()]
    assert len(there) == len(set(there)) == (len(swarm.nodes) if kind == "global" else replicas)
    assert all(task.spec_version == 2 for task in swarm.running())
    assert not [task for task in swarm.tasks.values() if task.alive and not task.wanted]
