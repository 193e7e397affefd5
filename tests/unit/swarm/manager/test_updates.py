"""Rolling updates: who is replaced next, and what the whole has come to."""

from typing import Any

from husk.engine.model.clock import rfc3339
from husk.swarm.manager.updates import judge, replaceable
from husk.swarm.model.services import SECOND, Service, Task, UpdateConfig, UpdateStatus
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import START, make_service, make_task

NEW: dict[str, Any] = {"spec_version": 2, "created_ns": START + 1}


def updating(state: str = "updating", **config: object) -> Service:
    status = UpdateStatus(state=state, started_at=rfc3339(START))
    service = make_service(3, spec_version=2, spec_versions=2, previous_spec_version=1, update_status=status)
    service.spec.update_config = UpdateConfig(**{"parallelism": 1, **config})  # type: ignore[arg-type]
    service = but(service, previous_spec=service.spec)
    return service


def slots(*tasks: Task) -> dict[int, list[Task]]:
    return {task.slot: [t for t in tasks if t.slot == task.slot] for task in tasks}


def test_as_many_at_once_as_allowed():
    old = slots(make_task(1), make_task(2), make_task(3))
    for parallelism, count in ((1, 1), (2, 2), (0, 3)):
        assert len(replaceable(updating(parallelism=parallelism), old, START)[0]) == count


def test_a_slot_whose_new_task_does_not_run_yet_is_busy():
    half = slots(make_task(1, "starting", **NEW), make_task(2), make_task(3))
    assert replaceable(updating(), half, START)[0] == []
    assert len(replaceable(updating(parallelism=2), half, START)[0]) == 1


def test_the_delay_passes_between_two():
    half = slots(make_task(1, **NEW), make_task(2))
    chosen, _, alarm = replaceable(updating(delay=4 * SECOND), half, START + SECOND)
    assert (chosen, alarm) == ([], START + 4 * SECOND)
    assert replaceable(updating(delay=4 * SECOND), half, START + 4 * SECOND)[0]


def test_a_failure_pauses_goes_on_or_is_rolled_back():
    failed = slots(make_task(1, "failed", **NEW), make_task(2), make_task(3))
    for action, expected in (("pause", "paused"), ("rollback", "rollback")):
        verdict, _ = judge(updating(failure_action=action), failed, START + SECOND)
        assert verdict is not None and verdict.state == expected
    assert judge(updating(failure_action="continue"), failed, START + SECOND)[0] is None
    assert len(replaceable(updating(failure_action="continue"), failed, START + SECOND)[0]) == 1, "the next slot"
    assert judge(updating(max_failure_ratio=0.5), failed, START + SECOND)[0] is None


def test_a_rollback_that_fails_is_paused():
    service = updating("rollback_started")
    failed = slots(make_task(1, "failed", **NEW), make_task(2))
    verdict, _ = judge(service, failed, START + SECOND)
    assert verdict is not None and verdict.state == "rollback_paused"


def test_failures_after_the_monitored_time_do_not_count():
    late = make_task(1, "failed", **NEW)
    late = but(late, status__since_ns=START + 60 * SECOND)
    verdict, _ = judge(updating(), slots(late, make_task(2, **NEW)), START + 60 * SECOND)
    assert verdict is None or verdict.state == "completed"


def test_it_is_complete_when_all_were_watched_long_enough():
    done = slots(make_task(1, **NEW), make_task(2, **NEW))
    verdict, alarm = judge(updating(monitor=3 * SECOND), done, START + SECOND)
    assert (verdict, alarm) == (None, START + 3 * SECOND)
    verdict, _ = judge(updating(monitor=3 * SECOND), done, START + 3 * SECOND)
    assert verdict is not None and verdict.state == "completed"


def test_a_rollback_leaves_alone_what_was_never_updated():
    service = updating("rollback_started")
    service = but(service, spec_version=1)
    before = START - SECOND
    untouched = slots(*(but(make_task(slot), status__started_ns=before) for slot in (1, 2)))
    assert replaceable(service, untouched, START)[0] == []
    verdict, _ = judge(service, untouched, START)
    assert verdict is not None and verdict.state == "completed"
