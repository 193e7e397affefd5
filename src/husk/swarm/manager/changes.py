"""The changes to records of tasks that a plan asks for, and the way of all of them into the store."""

from collections.abc import Callable, Mapping

import msgspec

from husk.swarm.manager.planner import Create, Forget, Orphan, Plan, Stop
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.ids import new_id
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ContainerSpec, DriverSpec, Service, Task, TaskSpec, TaskState, TaskStatus
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import batches

WAITING = "pending task scheduling"
LONGEST_REASON = 4096


class TaskChanges:
    """Tasks as they are to be. Nobody else sees any of it before `write` has brought it into the store."""

    def __init__(
        self,
        store: SwarmRecords,
        nodes: Mapping[str, NodeFacts] | None,
        *,
        clock: Clock = CLOCK,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        """`nodes` are those that the swarm has, None where that cannot be told."""
        self._store = store
        self._nodes = nodes
        self._clock = clock
        self._new_id = new_id
        self._created: dict[str, Task] = {}
        self._changed: dict[str, Task] = {}
        # As they were when they were changed first.
        self._seen: dict[str, Task] = {}
        self._gone: dict[str, Task] = {}
        # The highest number that a task of a service has.
        self._numbers: dict[str, int] = {}

    @property
    def created(self) -> list[Task]:
        return list(self._created.values())

    def carry_out(self, plan: Plan, service: Service, log_driver: DriverSpec | None) -> bool:
        """Carry out a plan; tell if there was anything to do. `log_driver` is for tasks that name none."""
        before = len(self._created), len(self._changed), len(self._gone)
        for action in plan.actions:
            if isinstance(action, Create):
                task = self._new_task(service, action, log_driver)
                self._created[task.id] = task
            elif (known := self._store.tasks.get(action.task_id)) is not None:
                task = self.current(known)
                match action:
                    case Stop(remove=remove):
                        self._stop(task, "remove" if remove else "shutdown")
                    case Forget():
                        self.forget(task)
                    case Orphan():
                        self._become(task, "orphaned", "node is gone")
        return before != (len(self._created), len(self._changed), len(self._gone))

    def reject(self, service: Service, action: Create, reason: str) -> None:
        """A task that says why it, and others, cannot even be begun: without what may be too large of its template."""
        container = service.spec.task_template.container_spec
        small = TaskSpec(container_spec=ContainerSpec(image=container.image if container is not None else ""))
        task = msgspec.structs.replace(self._new_task(service, action, None), spec=small)
        self._created[task.id] = task
        self._become(task, "rejected", "preparing", reason[:LONGEST_REASON])

    def current(self, task: Task) -> Task:
        """A task as it is to be."""
        return self._created.get(task.id) or self._changed.get(task.id) or task

    def waiting(self, service_id: str) -> list[Task]:
        """Those of a service that a node is to be found for."""
        there = [self.current(task) for task in self._store.index.of_service(service_id) if task.id not in self._gone]
        return [task for task in (*there, *self._created.values()) if task.wanted and task.status.state == "pending"]

    def assign(self, task: Task, node_id: str) -> None:
        """A node is to run it."""
        known = task.node_id == node_id
        message = "scheduler confirmed task can run on preassigned node" if known else "scheduler assigned task to node"
        self._become(msgspec.structs.replace(task, node_id=node_id), "assigned", message)

    def refuse(self, task: Task, reason: str) -> None:
        """No node can run it now."""
        if task.status.err != reason:
            self._become(task, "pending", WAITING, reason)

    def forget(self, task: Task) -> None:
        """Drop a task: its node removes what is left of it there first."""
        if self._unreached(task):
            self._gone[task.id] = task
        elif task.desired_state != "remove":
            self._put(msgspec.structs.replace(task, desired_state="remove"))

    async def write(self, current: Callable[[], bool] = lambda: True) -> None:
        """New tasks are for a service as it is `current` only."""
        checks = self._store.leadership.checks
        for some in batches((task for task in self._changed.values() if task.id not in self._gone), _size):
            if fresh := [task for draft in some if (task := self._on_newest(draft)) is not None]:
                await self._store.settle(*fresh, checks=checks)
        for some in batches(self._gone.values(), lambda task: len(task.id)):
            await self._store.delete(*some, checks=checks)
        for some in batches(self._created.values(), _size):
            if current():
                await self._store.save(*some, checks=checks)

    def _on_newest(self, draft: Task) -> Task | None:
        """Its node may have said something of a task since this was planned: what was decided is for that, too."""
        known, base = self._store.tasks.get(draft.id), self._seen[draft.id]
        if known is None or known is base:
            return draft if known is not None else None
        if draft.desired_state == base.desired_state:
            return None
        return msgspec.structs.replace(known, desired_state=draft.desired_state)

    def _stop(self, task: Task, desired: TaskState) -> None:
        if desired == "remove" and self._unreached(task):
            self._gone[task.id] = task
        elif task.desired_state != desired:
            ended = msgspec.structs.replace(task, desired_state=desired)
            self._put(ended)
            if _unplaced(task):
                self._become(ended, "shutdown", "shutdown")

    def _become(self, task: Task, state: TaskState, message: str, err: str = "") -> None:
        stamp, now = self._clock.stamp(), self._clock.now()
        status = msgspec.structs.replace(
            task.status, timestamp=stamp, state=state, message=message, err=err, since_ns=now
        )
        self._put(msgspec.structs.replace(task, status=status))

    def _put(self, task: Task) -> None:
        if task.id in self._created:
            self._created[task.id] = task
        elif (known := self._store.tasks.get(task.id)) is not None:
            self._seen.setdefault(task.id, known)
            self._changed[task.id] = task

    def _unreached(self, task: Task) -> bool:
        """Tell if there is no node that has anything of the task."""
        return _unplaced(task) or (self._nodes is not None and task.node_id not in self._nodes)

    def _new_task(self, service: Service, action: Create, log_driver: DriverSpec | None) -> Task:
        now, stamp = self._clock.now(), self._clock.stamp()
        is_job = service.spec.mode.is_job
        return Task(
            id=self._new_id(),
            version=0,
            created_at=stamp,
            created_ns=now,
            updated_at=stamp,
            service_id=service.id,
            service_name=service.spec.name,
            slot=action.slot,
            node_id=action.node_id,
            spec=_with_driver(service.spec.task_template, log_driver),
            spec_version=service.spec_version,
            status=TaskStatus(timestamp=stamp, state="pending", message=WAITING, since_ns=now),
            desired_state="complete" if is_job else "running",
            job_iteration=service.job_iteration if is_job else None,
            restarts=action.restarts,
            number=self._next_number(service.id),
        )

    def _next_number(self, service_id: str) -> int:
        if service_id not in self._numbers:
            tasks = self._store.index.of_service(service_id)
            self._numbers[service_id] = max((task.number for task in tasks), default=0)
        self._numbers[service_id] += 1
        return self._numbers[service_id]


def _unplaced(task: Task) -> bool:
    return not task.node_id or (task.status.state == "pending")


def _with_driver(template: TaskSpec, driver: DriverSpec | None) -> TaskSpec:
    """Give a template that names no log driver the one that the swarm declares."""
    if template.log_driver is not None or driver is None:
        return template
    return msgspec.structs.replace(template, log_driver=driver)


def _size(task: Task) -> int:
    return len(msgspec.json.encode(task))
