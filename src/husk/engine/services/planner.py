"""What must be done next so that a service is as declared? Pure: service, tasks and time in; actions and an alarm out.

The planner looks at the whole picture each time and never at what it said before. Slots are numbered places: a
replicated service has 1..n, a global one has slot 0 on each node, a job has 0..total-1. In each slot at most one task
is alive, except while an update with order start-first has both the old and the new one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from husk.engine.services.model import SECOND, Service, Task, TaskRestartPolicy
from husk.engine.services.updates import Verdict, judge, replaceable

DEFAULT_RESTART_DELAY = 5 * SECOND
RETENTION = 5


@dataclass(frozen=True, slots=True)
class Create:
    """A new task in a slot, with the service's present template."""

    slot: int
    restarts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """End a task: it was replaced (`shutdown`) or its slot is gone (`remove`)."""

    task_id: str
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop a task that is only history, with its container."""

    task_id: str


Action = Create | Stop | Forget


@dataclass(slots=True)
class Plan:
    actions: list[Action] = field(default_factory=list)
    verdict: Verdict | None = None
    wake_at: int | None = None

    def wake(self, moment: int) -> None:
        self.wake_at = moment if self.wake_at is None else min(self.wake_at, moment)


def plan(
    service: Service, tasks: Iterable[Task], now: int, *, drained: bool = False, retention: int = RETENTION
) -> Plan:
    """`drained` says that the node gives up its tasks; new ones wait for another."""
    result = Plan()
    slots: defaultdict[int, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda t: t.created_ns):
        slots[task.slot].append(task)
    wanted = wanted_slots(service, slots, drained)
    for slot, present in slots.items():
        if slot not in wanted and not service.spec.mode.is_job:
            result.actions += [Stop(task.id, remove=True) for task in present if task.alive and task.wanted]
    if drained:
        result.actions += [
            Stop(task.id)
            for slot in wanted
            for task in slots.get(slot, [])
            if task.alive and task.wanted and task.status.state != "pending"
        ]
    for slot in wanted:
        _tend(slot, slots.get(slot, []), service, now, result)
    if not drained and not service.spec.mode.is_job:
        _update(service, {slot: slots.get(slot, []) for slot in wanted}, now, result)
    gone = set(slots) - set(wanted) if service.spec.mode.replicated is not None else set()
    _forget_history(slots, gone, retention, result)
    return result


def wanted_slots(service: Service, slots: Mapping[int, list[Task]], drained: bool) -> list[int]:
    """The slots that should have a task alive now."""
    mode = service.spec.mode
    if mode.replicated_job is not None:
        return _job_slots(service, slots)
    if mode.is_global:
        if drained:
            return []
        return [] if mode.global_job is not None and _completed(service, slots.get(0, [])) else [0]
    replicas = mode.replicated.replicas if mode.replicated is not None else 1
    return list(range(1, replicas + 1))


def _job_slots(service: Service, slots: Mapping[int, list[Task]]) -> list[int]:
    job = service.spec.mode.replicated_job
    assert job is not None
    total = job.total_completions if job.total_completions is not None else job.max_concurrent or 1
    concurrent = job.max_concurrent or total
    open_slots = [slot for slot in range(total) if not _completed(service, slots.get(slot, []))]
    return open_slots[:concurrent]


def _completed(service: Service, tasks: list[Task]) -> bool:
    return any(t.status.state == "complete" and t.job_iteration == service.job_iteration for t in tasks)


def _tend(slot: int, tasks: list[Task], service: Service, now: int, result: Plan) -> None:
    """Give an empty slot a task, and end what is one too many."""
    if service.spec.mode.is_job:
        old = [t for t in tasks if t.alive and t.wanted and t.job_iteration != service.job_iteration]
        result.actions += [Stop(task.id) for task in old]
        tasks = [t for t in tasks if t.job_iteration == service.job_iteration or t in old]
    live = [task for task in tasks if task.alive and task.wanted]
    if len(live) > 1:
        newest = live[-1]
        surplus = [
            task for task in live[:-1] if newest.status.state == "running" or task.spec_version == newest.spec_version
        ]
        result.actions += [Stop(task.id) for task in surplus]
        return
    if live or any(task.alive for task in tasks):
        return
    last = tasks[-1] if tasks else None
    if last is None or last.spec_version != service.spec_version or not last.wanted:
        result.actions.append(Create(slot))
        return
    policy = service.spec.task_template.restart_policy or TaskRestartPolicy()
    due = restart_time(last, policy)
    if due is None:
        return
    if due > now:
        result.wake(due)
        return
    recent = tuple(t for t in last.restarts if not policy.window or now - t <= policy.window)
    result.actions.append(Create(slot, (*recent, now)))


def restart_time(last: Task, policy: TaskRestartPolicy) -> int | None:
    """When a task that ended by itself is replaced; None for never."""
    failed = last.status.state != "complete"
    if policy.condition == "none" or (policy.condition == "on-failure" and not failed):
        return None
    ended = last.status.since_ns
    recent = [t for t in last.restarts if not policy.window or ended - t <= policy.window]
    if policy.max_attempts and len(recent) >= policy.max_attempts:
        return None
    return ended + (DEFAULT_RESTART_DELAY if policy.delay is None else policy.delay)


def _update(service: Service, slots: Mapping[int, list[Task]], now: int, result: Plan) -> None:
    """Replace outdated tasks, as many at a time as the service allows, and judge how it goes."""
    result.verdict, alarm = judge(service, slots, now)
    if alarm is not None:
        result.wake(alarm)
    if result.verdict is not None and result.verdict.state != "completed":
        return
    chosen, start_first, alarm = replaceable(service, slots, now)
    if alarm is not None:
        result.wake(alarm)
    for task in chosen:
        result.actions.append(Create(task.slot) if start_first else Stop(task.id))


def _forget_history(slots: Mapping[int, list[Task]], dropped: set[int], retention: int, result: Plan) -> None:
    """Of each slot the latest that ended are kept; of a slot that is gone, none."""
    for slot, tasks in slots.items():
        dead = [task for task in tasks if not task.alive]
        kept = [task for task in dead if task.desired_state != "remove" and slot not in dropped]
        surplus = kept[: max(0, len(kept) - retention)] if retention >= 0 else []
        result.actions += [Forget(task.id) for task in dead if task not in kept or task in surplus]
