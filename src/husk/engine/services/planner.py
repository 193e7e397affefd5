"""What must be done next so that a service is as declared. Pure: service, tasks and time in; actions and an alarm out.

The planner looks at the whole picture each time and never at what it said before. Slots are numbered places: a
replicated service has 1..n, a global one has slot 0 on each node, a job has 0..total-1. In each slot at most one task
is alive, except while an update with order start-first has both the old and the new one.

What it costs to plan goes with the tasks that there are, not with those that are declared: slots get their first tasks
a few at a time, and the next ones when those run.
"""

import itertools
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence

import msgspec

from husk.engine.services.model import SECOND, Service, Task, TaskRestartPolicy
from husk.engine.services.updates import Verdict, judge, replaceable

DEFAULT_RESTART_DELAY = 5 * SECOND
RETENTION = 5
# How many slots of a service may be on their way to a running task before more get their first one.
WINDOW = 100
# How many slots are looked at in one go.
PIECE = 500


class Create(msgspec.Struct, frozen=True):
    """A new task in a slot, with the service's present template."""

    slot: int
    restarts: tuple[int, ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """End a task: it was replaced (`shutdown`) or its slot is gone (`remove`)."""

    task_id: str
    remove: bool = False


class Forget(msgspec.Struct, frozen=True):
    """Drop a task that is only history, with its container."""

    task_id: str


Action = Create | Stop | Forget


class Plan(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdict: Verdict | None = None
    wake_at: int | None = None

    def wake(self, moment: int) -> None:
        self.wake_at = moment if self.wake_at is None else min(self.wake_at, moment)


def plan(
    service: Service, tasks: Iterable[Task], now: int, *, drained: bool = False, retention: int = RETENTION
) -> Plan:
    """`drained` says that the node gives up its tasks; new ones wait for another."""
    pieces = planning(service, tasks, now, drained=drained, retention=retention)
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Plan = done.value
            return result


def planning(
    service: Service, tasks: Iterable[Task], now: int, *, drained: bool = False, retention: int = RETENTION
) -> Generator[None, None, Plan]:
    """`plan` in pieces: it stops after each, so that a service of very many tasks delays nobody."""
    result = Plan()
    slots: defaultdict[int, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda t: t.created_ns):
        slots[task.slot].append(task)
    yield
    wanted = wanted_slots(service, slots, drained)
    among = wanted if isinstance(wanted, range) else frozenset(wanted)
    kept = {slot: slots[slot] for slot in sorted(slots) if slot in among}
    for slot, present in slots.items():
        if slot not in kept and not service.spec.mode.is_job:
            result.actions += [Stop(task.id, remove=True) for task in present if task.alive and task.wanted]
    if drained:
        result.actions += [
            Stop(task.id)
            for present in kept.values()
            for task in present
            if task.alive and task.wanted and task.status.state != "pending"
        ]
    unsettled = 0
    for number, (slot, present) in enumerate(kept.items()):
        unsettled += not _tend(slot, present, service, now, result)
        if number % PIECE == PIECE - 1:
            yield
    coming = _fill(kept, wanted, WINDOW - unsettled, result)
    yield
    if not drained and not service.spec.mode.is_job:
        _update(service, kept, len(wanted), coming, now, result)
    yield
    gone = set(slots) - set(kept) if service.spec.mode.replicated is not None else set()
    _forget_history(slots, gone, retention, result)
    return result


def _fill(kept: Mapping[int, list[Task]], wanted: Iterable[int], most: int, result: Plan) -> int:
    """Give slots that never had a task their first one, `most` of them. How many were given one."""
    empty = (slot for slot in wanted if slot not in kept)
    created = [Create(slot) for slot in itertools.islice(empty, max(0, most))]
    result.actions += created
    return len(created)


def wanted_slots(service: Service, slots: Mapping[int, list[Task]], drained: bool) -> Sequence[int]:
    """The slots that should have a task alive now."""
    mode = service.spec.mode
    if mode.replicated_job is not None:
        return _job_slots(service, slots)
    if mode.is_global:
        if drained:
            return []
        return [] if mode.global_job is not None and _completed(service, slots.get(0, [])) else [0]
    replicas = mode.replicated.replicas if mode.replicated is not None else 1
    return range(1, replicas + 1)


def _job_slots(service: Service, slots: Mapping[int, list[Task]]) -> Sequence[int]:
    """The first that are not completed: no more than run at once, nor than are begun with what is begun already."""
    job = service.spec.mode.replicated_job
    assert job is not None
    total = job.total_completions if job.total_completions is not None else job.max_concurrent or 1
    completed = {slot for slot, tasks in slots.items() if _completed(service, tasks)}
    most = min(job.max_concurrent or total, len(slots) - len(completed) + WINDOW)
    return list(itertools.islice((slot for slot in range(total) if slot not in completed), most))


def _completed(service: Service, tasks: list[Task]) -> bool:
    return any(t.status.state == "complete" and t.job_iteration == service.job_iteration for t in tasks)


def _tend(slot: int, tasks: list[Task], service: Service, now: int, result: Plan) -> bool:
    """Give a slot whose task has ended another, and end what is one too many. Whether it is as it should be."""
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
        return True
    if live or any(task.alive for task in tasks):
        return any(task.status.state == "running" for task in live)
    last = tasks[-1] if tasks else None
    if last is None or last.spec_version != service.spec_version or not last.wanted:
        result.actions.append(Create(slot))
        return False
    policy = service.spec.task_template.restart_policy or TaskRestartPolicy()
    due = restart_time(last, policy)
    if due is None:
        return True
    if due > now:
        result.wake(due)
        return False
    recent = tuple(t for t in last.restarts if not policy.window or now - t <= policy.window)
    result.actions.append(Create(slot, (*recent, now)))
    return False


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


def _update(
    service: Service, slots: Mapping[int, list[Task]], wanted: int, coming: int, now: int, result: Plan
) -> None:
    """Replace outdated tasks, as many at a time as the service allows, and judge how it goes."""
    result.verdict, alarm = judge(service, slots, now, wanted=wanted)
    if alarm is not None:
        result.wake(alarm)
    if result.verdict is not None and result.verdict.state != "completed":
        return
    chosen, start_first, alarm = replaceable(service, slots, now, coming=coming)
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
