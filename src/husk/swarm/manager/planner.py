"""The next steps to make a service as it is declared. Pure: service, tasks and time in; actions and an alarm out.

The planner looks at the whole picture of a service each time and never at what it said before. Slots are places: a
replicated service has 1..n (and others after fewer were wanted, for those that run stay), a job has 0..total-1, a
global one has one per node, named by the node's id. In each slot
at most one task is alive, except while an update with order start-first has both the old and the new one.

Nodes give and take tasks: one that is drained, or that the service's constraints do not fit any more, lets them end,
and others come when they have; of one that is lost nothing more is expected, so others come at once, and the old ones
end first thing when it returns. A node that is paused keeps what it has. Which node a task comes to is the scheduler's
choice.

What it costs to plan goes with the tasks that there are, not with those that are declared: slots get their first tasks
a few at a time, and the next ones when those run.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence

import msgspec

from husk.swarm.manager.updates import Slot, UpdateVerdict, in_order, judge, replaceable
from husk.swarm.model.placement import NodeFacts, parse_constraint
from husk.swarm.model.services import SECOND, Service, Task, TaskRestartPolicy
from husk.swarm.spec.defaults import DEFAULT_RESTART_DELAY

RETENTION = 5
# How many slots of a service may be on their way to a running task before more get their first one; ten nodes and more
# take more.
WINDOW = 100
# How many slots are looked at in one go.
PIECE = 500
# The rank of a slot of which nothing is to go on.
_ENDING = (3, 0)
# How long the tasks of a lost node count as running there, as far as anybody can tell.
ORPHANED_AFTER = 24 * 3600 * SECOND


class Create(msgspec.Struct, frozen=True):
    """A new task in a slot, with the service's present template; one of a global service with its node."""

    slot: int
    restarts: tuple[int, ...] = ()
    node_id: str = ""


class Stop(msgspec.Struct, frozen=True):
    """End a task: it was replaced (`shutdown`) or its slot is gone (`remove`)."""

    task_id: str
    remove: bool = False


class Forget(msgspec.Struct, frozen=True):
    """Drop a task that is only history, with its container."""

    task_id: str


class Orphan(msgspec.Struct, frozen=True):
    """Give a task up whose node is gone, or has been lost for a day: nobody will ever tell how it ended."""

    task_id: str


Action = Create | Stop | Forget | Orphan


class Plan(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdict: UpdateVerdict | None = None
    wake_at: int | None = None

    def wake(self, moment: int) -> None:
        self.wake_at = moment if self.wake_at is None else min(self.wake_at, moment)


def planning(
    service: Service, tasks: Iterable[Task], now: int, nodes: Mapping[str, NodeFacts], *, retention: int = RETENTION
) -> Generator[None, None, Plan]:
    """Plan what to do now, in pieces: the generator stops after each, so that a service of very many tasks delays
    nobody. `nodes` are all that the swarm has, by their ids."""
    result = Plan()
    everywhere = service.spec.mode.is_global
    homes = Homes(service, nodes)
    slots: defaultdict[Slot, list[Task]] = defaultdict(list)
    # The latest that was lost with its node, by slot.
    lost: dict[Slot, Task] = {}
    for task in sorted(tasks, key=lambda task: task.order):
        slot = slot_of(task, everywhere)
        if task.alive and homes.lost(task):
            lost[slot] = task
            _give_up(task, homes.lost_at(task), now, result)
        else:
            slots[slot].append(task)
    yield
    wanted = wanted_slots(service, slots, homes)
    among = wanted if isinstance(wanted, range) else frozenset(wanted)
    kept = {slot: slots[slot] for slot in in_order(slots) if slot in among}
    moved = _move_away(slots, kept, homes, remove=service.spec.mode.replicated_job is None)
    result.actions += moved
    unsettled = 0
    for number, (slot, present) in enumerate(kept.items()):
        unsettled += not _tend(slot, present, lost.get(slot), service, now, result)
        if number % PIECE == PIECE - 1:
            yield
    coming = _fill(kept, wanted, WINDOW * max(1, len(nodes) // 10) - unsettled, result)
    yield
    if not service.spec.mode.is_job:
        going_on = {slot: tasks for slot, tasks in kept.items() if not homes.paused(slot)}
        sought = len(wanted) - len(kept) + len(going_on)
        _update(service, going_on, {stop.task_id for stop in moved}, sought, coming, now, result)
    yield
    _forget_history(slots, _dropped(service, slots, kept, nodes), retention, result)
    return result


def _move_away(
    slots: Mapping[Slot, list[Task]], kept: Mapping[Slot, list[Task]], homes: "Homes", *, remove: bool
) -> list[Stop]:
    """End what is in slots that are gone, to `remove` it, and what has to leave its node."""
    found = []
    for slot, present in slots.items():
        gone = remove and slot not in kept
        for task in present:
            if task.alive and task.wanted and (gone or homes.left(task)):
                found.append(Stop(task.id, remove=gone))
    return found


def _dropped(
    service: Service, slots: Mapping[Slot, list[Task]], kept: Mapping[Slot, list[Task]], nodes: Mapping[str, NodeFacts]
) -> set[Slot]:
    """The slots whose history is of no more use."""
    if service.spec.mode.is_global:
        return {slot for slot in slots if slot not in nodes}
    return set(slots) - set(kept) if service.spec.mode.replicated is not None else set()


class Homes:
    """The nodes as one service sees them; what it thinks of one is found out once."""

    def __init__(self, service: Service, nodes: Mapping[str, NodeFacts]) -> None:
        placement = service.spec.task_template.placement
        self._nodes = nodes
        self._constraints = [parse_constraint(text) for text in placement.constraints] if placement else []
        self._fit: dict[str, bool] = {}

    def lost(self, task: Task) -> bool:
        """Tell if the node of a task is lost or gone. A task that waits for a node has none to lose."""
        if task.status.state == "pending" or not task.node_id:
            return False
        node = self._nodes.get(task.node_id)
        return node is None or node.lost

    def lost_at(self, task: Task) -> int | None:
        """Return the time when the node of a task was lost; None if the node is gone for good."""
        node = self._nodes.get(task.node_id)
        return None if node is None else node.lost_ns

    def left(self, task: Task) -> bool:
        """Tell if a task has to leave its node, which is there."""
        if task.status.state == "pending" or not task.node_id:
            return False
        return not self.fit(self._nodes[task.node_id])

    def fit(self, node: NodeFacts) -> bool:
        """Tell if tasks of the service may be on a node."""
        found = self._fit.get(node.id)
        if found is None:
            found = node.availability != "drain" and all(one.holds(node) for one in self._constraints)
            self._fit[node.id] = found
        return found

    def paused(self, slot: Slot) -> bool:
        """Tell if nothing is to begin in a slot of a global service. What is there stays as it is, in an update too."""
        return isinstance(slot, str) and self._nodes[slot].availability == "pause"

    def everywhere(self, slots: Mapping[Slot, list[Task]]) -> list[str]:
        """The nodes that a global service is on: one that is paused keeps a task, and gets none."""
        return [
            node.id
            for node in self._nodes.values()
            if not node.lost
            and self.fit(node)
            and (not self.paused(node.id) or any(task.alive for task in slots.get(node.id, ())))
        ]


def slot_of(task: Task, everywhere: bool) -> Slot:
    return task.node_id if everywhere else task.slot


def _give_up(task: Task, since: int | None, now: int, result: Plan) -> None:
    """A task is lost with its node."""
    if since is None or now - since >= ORPHANED_AFTER:
        result.actions.append(Orphan(task.id))
        return
    if task.wanted:
        result.actions.append(Stop(task.id))
    result.wake(since + ORPHANED_AFTER)


def _fill(kept: Mapping[Slot, list[Task]], wanted: Iterable[Slot], most: int, result: Plan) -> int:
    """Give slots that never had a task their first one, `most` of them. How many were given one."""
    empty = (slot for slot in wanted if slot not in kept)
    created = [_create(slot) for slot in itertools.islice(empty, max(0, most))]
    result.actions += created
    return len(created)


def _create(slot: Slot, restarts: tuple[int, ...] = ()) -> Create:
    return Create(0, restarts, slot) if isinstance(slot, str) else Create(slot, restarts)


def wanted_slots(service: Service, slots: Mapping[Slot, list[Task]], homes: Homes) -> Sequence[Slot]:
    """The slots that should have a task alive now."""
    mode = service.spec.mode
    if mode.replicated_job is not None:
        return _job_slots(service, slots)
    if mode.is_global:
        nodes = homes.everywhere(slots)
        return nodes if mode.global_job is None else [n for n in nodes if not _completed(service, slots.get(n, []))]
    return _replicated_slots(slots, mode.replicated.replicas if mode.replicated is not None else 1)


def _replicated_slots(slots: Mapping[Slot, list[Task]], replicas: int) -> Sequence[int]:
    """The first numbers; but where fewer are wanted than there are, those stay whose tasks run, and are well spread."""
    numbers = sorted(slot for slot in slots if isinstance(slot, int))
    if not numbers or numbers[-1] <= replicas:
        return range(1, replicas + 1)
    ranks = _ranks(numbers, slots)
    used = [number for number in numbers if ranks[number] < _ENDING]
    used = sorted(used, key=ranks.__getitem__)[:replicas]
    among = frozenset(used)
    free = (number for number in itertools.count(1) if number not in among)
    return sorted([*used, *itertools.islice(free, replicas - len(used))])


def _ranks(numbers: Iterable[int], slots: Mapping[Slot, list[Task]]) -> dict[int, tuple[int, int]]:
    """The lowest go last when there are too many: whose tasks run, then those on their way, then those that wait to be
    started again. Of those that run, who is alone on its node goes before the second there."""
    ranks: dict[int, tuple[int, int]] = {}
    homes: dict[str, int] = {}
    for number in numbers:
        wanted = [task for task in slots[number] if task.wanted]
        running = next((task for task in wanted if task.status.state == "running"), None)
        if running is not None:
            homes[running.node_id] = homes.get(running.node_id, 0) + 1
            ranks[number] = 0, homes[running.node_id]
        elif wanted:
            ranks[number] = (1 if any(task.alive for task in wanted) else 2), 0
        else:
            ranks[number] = _ENDING
    return ranks


def _job_slots(service: Service, slots: Mapping[Slot, list[Task]]) -> Sequence[int]:
    """The first that are not completed: no more than run at once, nor than are begun with what is begun already."""
    job = service.spec.mode.replicated_job
    assert job is not None
    total = job.total_completions if job.total_completions is not None else job.max_concurrent or 1
    completed = {slot for slot, tasks in slots.items() if _completed(service, tasks)}
    most = min(job.max_concurrent or total, len(slots) - len(completed) + WINDOW)
    return list(itertools.islice((slot for slot in range(total) if slot not in completed), most))


def _completed(service: Service, tasks: list[Task]) -> bool:
    return any(t.status.state == "complete" and t.job_iteration == service.job_iteration for t in tasks)


def _tend(slot: Slot, tasks: list[Task], lost: Task | None, service: Service, now: int, result: Plan) -> bool:
    """Give a slot whose task has ended another, and end what is one too many. Whether it is as it should be."""
    if service.spec.mode.is_job:
        old = [t for t in tasks if t.alive and t.wanted and t.job_iteration != service.job_iteration]
        result.actions += [Stop(task.id) for task in old]
        tasks = [t for t in tasks if t.job_iteration == service.job_iteration or t in old]
    live = [task for task in tasks if task.alive and task.wanted]
    if len(live) > 1:
        result.actions += [Stop(task.id) for task in _surplus(live, service)]
        return True
    if live or any(task.alive for task in tasks):
        return any(task.status.state == "running" for task in live)
    last = tasks[-1] if tasks else None
    if (
        last is None
        or last.spec_version != service.spec_version
        or not last.wanted
        or (lost is not None and lost.order >= last.order)
    ):
        result.actions.append(_create(slot, lost.restarts if lost is not None else ()))
        return False
    policy = service.spec.task_template.restart_policy or TaskRestartPolicy()
    due = restart_time(last, policy)
    if due is None:
        return True
    if due > now:
        result.wake(due)
        return False
    recent = tuple(t for t in last.restarts if not policy.window or now - t <= policy.window)
    result.actions.append(_create(slot, (*recent, now)))
    return False


def _surplus(live: Sequence[Task], service: Service) -> list[Task]:
    """Those that are alive beside the one that runs and the one that is to follow it."""
    newest = live[-1]
    runs = next((task for task in reversed(live) if task.status.state == "running"), None)
    if runs is None or runs is newest or runs.spec_version == newest.spec_version:
        return [*live[:-1]]
    # A newer template has come before the tasks of the last one ran.
    kept = (runs, newest) if newest.spec_version == service.spec_version else (runs,)
    return [task for task in live if task not in kept]


def restart_time(last: Task, policy: TaskRestartPolicy) -> int | None:
    """Return the time to replace a task that ended by itself; None for never."""
    failed = last.status.state != "complete"
    if policy.condition == "none" or (policy.condition == "on-failure" and not failed):
        return None
    ended = last.status.since_ns
    recent = [t for t in last.restarts if not policy.window or ended - t <= policy.window]
    if policy.max_attempts and len(recent) >= policy.max_attempts:
        return None
    return ended + (DEFAULT_RESTART_DELAY if policy.delay is None else policy.delay)


def _update(
    service: Service,
    slots: Mapping[Slot, list[Task]],
    moved: Collection[str],
    wanted: int,
    coming: int,
    now: int,
    result: Plan,
) -> None:
    """Replace outdated tasks, as many at a time as the service allows, and judge how it goes.

    `moved` are tasks that end anyway, because their node gives them up.
    """
    result.verdict, alarm = judge(service, slots, now, wanted=wanted)
    if alarm is not None:
        result.wake(alarm)
    if result.verdict is not None and result.verdict.state != "completed":
        return
    chosen, start_first, alarm = replaceable(service, slots, now, coming=coming)
    if alarm is not None:
        result.wake(alarm)
    everywhere = service.spec.mode.is_global
    for task in chosen:
        if task.id not in moved:
            result.actions.append(_create(slot_of(task, everywhere)) if start_first else Stop(task.id))


def _forget_history(slots: Mapping[Slot, list[Task]], dropped: set[Slot], retention: int, result: Plan) -> None:
    """Of each slot the latest that ended are kept; of a slot that is gone, none."""
    for slot, tasks in slots.items():
        dead = [task for task in tasks if not task.alive]
        kept = [task for task in dead if task.desired_state != "remove" and slot not in dropped]
        surplus = kept[: max(0, len(kept) - retention)] if retention >= 0 else []
        result.actions += [Forget(task.id) for task in dead if task not in kept or task in surplus]
