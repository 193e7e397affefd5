"""What other managers write happened by this host's clock, whatever theirs say."""

import msgspec

from husk.engine.model.clock import parse_rfc3339, rfc3339
from husk.engine.services.clocks import service_by_ours, task_by_ours
from husk.engine.services.model import SECOND, Task, TaskState, UpdateStatus
from tests.unit.engine.services.test_planner import make_service, make_task

NOW = 1_000_000 * SECOND
MINUTES = 7 * 60 * SECOND


def told(state: TaskState, at: int, started: int = 0, created: int = NOW) -> Task:
    task = make_task(1, state)
    task.created_ns = created
    task.status = msgspec.structs.replace(task.status, since_ns=at, started_ns=started)
    return task


def times(task: Task) -> tuple[int, int, int]:
    return task.created_ns, task.status.since_ns, task.status.started_ns


def test_what_is_found_was_not_after_now():
    task = told("running", NOW + MINUTES, NOW + MINUTES, NOW + MINUTES)
    task_by_ours(task, None, NOW)
    assert times(task) == (NOW, NOW, NOW)
    task = told("running", NOW - 2, NOW - 2, NOW - 3)
    task_by_ours(task, None, NOW)
    assert times(task) == (NOW - 3, NOW - 2, NOW - 2)


def test_what_is_told_has_happened_when_it_is_heard():
    for skew in (MINUTES, -MINUTES):
        known = told("starting", NOW, created=NOW - 1)
        task = told("running", NOW + skew, NOW + skew, NOW + skew)
        task_by_ours(task, known, NOW + 5)
        assert times(task) == (NOW - 1, NOW + 5, NOW + 5)
        ended = told("failed", NOW + skew, NOW + skew)
        task_by_ours(ended, task, NOW + 9)
        assert times(ended) == (NOW - 1, NOW + 9, NOW + 5), "how long it ran is told by one clock"


def test_what_has_not_changed_happened_when_it_did():
    known = told("failed", NOW, NOW - 1)
    task = told("failed", NOW + MINUTES, NOW + MINUTES)
    task.desired_state = "shutdown"
    task_by_ours(task, known, NOW + 5)
    assert times(task) == times(known) and task.desired_state == "shutdown"


def test_an_update_has_not_begun_after_now():
    for began, expected in ((NOW + MINUTES, NOW), (NOW - 5, NOW - 5)):
        service = make_service(1)
        service.update_status = UpdateStatus(state="updating", started_at=rfc3339(began))
        service_by_ours(service, NOW)
        assert parse_rfc3339(service.update_status.started_at) == expected
    service = make_service(1)
    service_by_ours(service, NOW)
    assert service.update_status is None
