"""Records that other managers write have happened by this host's clock, whatever theirs say."""

import time

import msgspec
import pytest

from husk.engine.model.clock import rfc3339
from husk.swarm.model.clocks import Clock, node_by_ours, service_by_ours, task_by_ours
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import SECOND, Task, TaskState, UpdateStatus
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_service, make_task

NOW = 1_000_000 * SECOND
MINUTES = 7 * 60 * SECOND


def told(state: TaskState, at: int, started: int = 0, created: int = NOW) -> Task:
    task = make_task(1, state)
    task = but(task, created_ns=created)
    task = but(task, status=msgspec.structs.replace(task.status, since_ns=at, started_ns=started))
    return task


def times(task: Task) -> tuple[int, int, int]:
    return task.created_ns, task.status.since_ns, task.status.started_ns


def test_what_is_found_was_not_after_now():
    task = told("running", NOW + MINUTES, NOW + MINUTES, NOW + MINUTES)
    task = task_by_ours(task, None, NOW)
    assert times(task) == (NOW, NOW, NOW)
    task = told("running", NOW - 2, NOW - 2, NOW - 3)
    task = task_by_ours(task, None, NOW)
    assert times(task) == (NOW - 3, NOW - 2, NOW - 2)


def test_what_is_told_has_happened_when_it_is_heard():
    for skew in (MINUTES, -MINUTES):
        known = told("starting", NOW, created=NOW - 1)
        task = told("running", NOW + skew, NOW + skew, NOW + skew)
        task = task_by_ours(task, known, NOW + 5)
        assert times(task) == (NOW - 1, NOW + 5, NOW + 5)
        ended = told("failed", NOW + skew, NOW + skew)
        ended = task_by_ours(ended, task, NOW + 9)
        assert times(ended) == (NOW - 1, NOW + 9, NOW + 5), "how long it ran is told by one clock"


def test_what_has_not_changed_happened_when_it_did():
    known = told("failed", NOW, NOW - 1)
    task = told("failed", NOW + MINUTES, NOW + MINUTES)
    task = but(task, desired_state="shutdown")
    task = task_by_ours(task, known, NOW + 5)
    assert times(task) == times(known) and task.desired_state == "shutdown"


def test_an_update_has_not_begun_after_now():
    for began_at, expected in ((NOW + MINUTES, NOW), (NOW - 5, NOW - 5)):
        service = but(make_service(1), update_status=UpdateStatus(state="updating", started_at=rfc3339(began_at)))
        assert service_by_ours(service, None, NOW).update_began_ns == expected
    service = make_service(1)
    assert service_by_ours(service, None, NOW) is service


def test_an_update_that_another_manager_begins_has_begun_when_it_is_heard():
    known = but(make_service(1), update_status=UpdateStatus(state="completed", started_at="2026-01-01T00:00:00Z"))
    told = but(known, update_status__started_at="2026-02-01T00:00:00Z", update_began_ns=NOW + MINUTES)
    heard = service_by_ours(told, known, NOW)
    assert heard.update_began_ns == NOW
    assert service_by_ours(but(told, version=9), heard, NOW + 5).update_began_ns == NOW, "it is the same one"


def test_a_node_is_lost_since_that_was_heard():
    known = Node(id="n", version=1, created_at="", updated_at="", status=NodeStatus(state="ready", since_ns=NOW))
    lost = but(known, status__state="down", status__since_ns=NOW - 24 * 3600 * SECOND)
    assert node_by_ours(lost, known, NOW + 5).status.since_ns == NOW + 5
    assert node_by_ours(but(lost, status__since_ns=NOW + MINUTES), None, NOW).status.since_ns == NOW


def test_the_clock_goes_on_whatever_is_done_to_that_of_the_host(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    before = clock.now()
    monkeypatch.setattr(time, "time_ns", lambda: before - 3600 * SECOND)
    assert 0 <= clock.now() - before < 60 * SECOND, "an hour back is none"
    assert clock.stamp() == rfc3339(before - 3600 * SECOND), "but people are told what their clocks say"
