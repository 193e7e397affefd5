"""Rolling updates and rollbacks: how a service gets from one template to the next. Pure; part of the planner.

An update is under way while the service's status says so. Slots are replaced in order, `parallelism` at a time; one
counts as done when its new task has run for `delay`. New tasks that never run, or fail within `monitor`, count against
`max_failure_ratio`; beyond it the update pauses, goes on, or is rolled back, as `failure_action` says.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from husk.swarm.model.clocks import began
from husk.swarm.model.services import Service, Task, UpdateConfig, UpdateStatus
from husk.swarm.spec.defaults import DEFAULT_MONITOR, DEFAULT_UPDATE

UPDATING = ("updating", "rollback_started")
PAUSED = ("paused", "rollback_paused")

# A number, or for a global service the id of a node.
Slot = int | str
K = TypeVar("K", bound=Slot)


class UpdateVerdict(msgspec.Struct, frozen=True):
    """The outcome of an update: completed, paused, or to be rolled back."""

    state: str
    message: str


def in_order(slots: Iterable[K]) -> list[K]:
    return sorted(slots, key=lambda slot: (0, slot) if isinstance(slot, str) else (slot, ""))


def conclude(service: Service, verdict: UpdateVerdict, now: int, stamp: str) -> Service:
    """The service as what its update has come to; `stamp` is how people are told `now`."""
    if verdict.state == "rollback" and service.previous_spec is not None:
        return msgspec.structs.replace(
            service,
            spec=service.previous_spec,
            previous_spec=None,
            ports=service.previous_ports,
            # What still runs as before the update is as it should be again.
            spec_version=service.previous_spec_version,
            update_status=UpdateStatus(state="rollback_started", started_at=stamp, message=verdict.message),
            update_began_ns=now,
        )
    status = service.update_status or UpdateStatus(started_at=stamp)
    completed = verdict.state == "completed"
    rolled_back = completed and status.state == "rollback_started"
    concluded = UpdateStatus(
        state="rollback_completed" if rolled_back else verdict.state,
        started_at=status.started_at,
        completed_at=stamp if completed else status.completed_at,
        message=verdict.message,
    )
    return msgspec.structs.replace(service, update_status=concluded)


def settings(service: Service) -> UpdateConfig:
    status = service.update_status
    rolling_back = status is not None and status.state.startswith("rollback")
    config = service.spec.rollback_config if rolling_back else service.spec.update_config
    return config or DEFAULT_UPDATE


def judge(
    service: Service, slots: Mapping[K, list[Task]], now: int, *, wanted: int = 0
) -> tuple[UpdateVerdict | None, int | None]:
    """(what the update has come to, when to look again); more slots may be `wanted` than have had tasks yet."""
    status = service.update_status
    if status is None or status.state not in UPDATING:
        return None, None
    config = settings(service)
    monitor = config.monitor or DEFAULT_MONITOR
    begun = began(service)
    rolling_back = status.state == "rollback_started"
    failed = _failures(service, slots, begun, monitor)
    if (
        failed
        and config.failure_action != "continue"
        and len(failed) / max(1, wanted, len(slots)) > config.max_failure_ratio
    ):
        reason = f"early termination of task {failed[0].id}"
        if rolling_back:
            return UpdateVerdict("rollback_paused", f"rollback paused due to failure or {reason}"), None
        if config.failure_action == "rollback" and service.previous_spec is not None:
            return UpdateVerdict("rollback", f"update rolled back due to failure or {reason}"), None
        return UpdateVerdict("paused", f"update paused due to failure or {reason}"), None
    if len(slots) < wanted:
        return None, None
    settled_at = begun
    for tasks in slots.values():
        if (done_at := _done_at(service, tasks, begun)) is None:
            return None, None
        if done_at >= begun:
            settled_at = max(settled_at, done_at + monitor)
    if settled_at > now:
        return None, settled_at
    return UpdateVerdict("completed", "rollback completed" if rolling_back else "update completed"), None


def _done_at(service: Service, tasks: list[Task], begun: int) -> int | None:
    """Return the time when the slot's first task of the new template ran or failed; None while none has."""
    if any(task.alive and (not task.wanted or task.spec_version != service.spec_version) for task in tasks):
        return None
    return min(
        (
            task.status.started_ns if task.status.state == "running" else task.status.since_ns
            for task in tasks
            if task.spec_version == service.spec_version
            and task.wanted
            and (task.status.state == "running" or (not task.alive and task.created_ns >= begun))
        ),
        default=None,
    )


def _failures(service: Service, slots: Mapping[K, list[Task]], begun: int, monitor: int) -> list[Task]:
    return [
        task
        for tasks in slots.values()
        for task in tasks
        if task.spec_version == service.spec_version
        and task.created_ns >= begun
        and task.status.state in ("failed", "rejected")
        and task.wanted
        and (not task.status.started_ns or task.status.since_ns - task.status.started_ns <= monitor)
    ]


def replaceable(
    service: Service, slots: Mapping[K, list[Task]], now: int, *, coming: int = 0
) -> tuple[list[Task], bool, int | None]:
    """(outdated tasks to replace now, whether the new one comes first, when to look again)

    `coming` are slots that get their first task now.
    """
    status = service.update_status
    if status is not None and status.state in PAUSED:
        return [], False, None
    config = settings(service)
    begun = began(service)
    outdated, busy, alarm = [], coming, None
    for slot in in_order(slots):
        live = [task for task in slots[slot] if task.alive and task.wanted]
        current = [task for task in live if task.spec_version == service.spec_version]
        if live and not current:
            outdated.append(live[-1])
        elif (done_at := _done_at(service, slots[slot], begun)) is None:
            busy += 1
        elif config.delay and status is not None and done_at >= begun:
            free_at = done_at + config.delay
            if free_at > now:
                busy += 1
                alarm = free_at if alarm is None else min(alarm, free_at)
    room = len(outdated) if config.parallelism == 0 else max(0, config.parallelism - busy)
    return outdated[:room], config.order == "start-first", alarm if outdated else None
