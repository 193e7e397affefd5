"""What a plan makes of the records of tasks, and the way of all of it into the store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.services.ids import new_id
from husk.engine.services.model import DriverSpec, Service, Task, TaskSpec, TaskState, TaskStatus
from husk.engine.services.placement import NodeFacts
from husk.engine.services.planner import Create, Forget, Orphan, Plan, Stop
from husk.engine.services.records import SwarmRecords
from husk.errors import HuskError

T = TypeVar("T")

# How many records are written at once: etcd takes no more than 128 in a transaction.
AT_ONCE = 100
WAITING = "pending task scheduling"


class Changes:
    """Records change at once, in memory; `write` brings that into the store, or takes it back."""

    def __init__(self, store: SwarmRecords, nodes: Mapping[str, NodeFacts] | None) -> None:
        """`nodes` are those that the swarm has, None where that cannot be told."""
        self._store = store
        self._nodes = nodes
        self.created: list[Task] = []
        # With what they were before.
        self._changed: dict[str, tuple[Task, Task]] = {}
        self._gone: dict[str, Task] = {}

    def carry_out(self, plan: Plan, service: Service, log_driver: DriverSpec | None) -> bool:
        """Do what is planned; whether there was anything to do. `log_driver` is for tasks that name none."""
        before = len(self.created), len(self._changed), len(self._gone)
        for action in plan.actions:
            if isinstance(action, Create):
                self.created.append(_new_task(service, action, log_driver))
            elif (task := self._store.tasks.get(action.task_id)) is not None:
                match action:
                    case Stop(remove=remove):
                        self._stop(task, "remove" if remove else "shutdown")
                    case Forget():
                        self.forget(task)
                    case Orphan():
                        self._become(task, "orphaned", "node is gone")
        return before != (len(self.created), len(self._changed), len(self._gone))

    def assign(self, task: Task, node_id: str) -> None:
        """A node is to run it."""
        known = task.node_id == node_id
        message = "scheduler confirmed task can run on preassigned node" if known else "scheduler assigned task to node"
        self._note(task)
        task.node_id = node_id
        self._become(task, "assigned", message)

    def refuse(self, task: Task, reason: str) -> None:
        """No node can run it now."""
        if task.status.err != reason:
            self._become(task, "pending", WAITING, reason)

    def forget(self, task: Task) -> None:
        """Drop a task: its node removes what is left of it there first."""
        if self._unreached(task):
            self._gone[task.id] = task
        elif task.desired_state != "remove":
            self._note(task)
            task.desired_state = "remove"

    async def write(self, current: Callable[[], bool] = lambda: True) -> None:
        """New tasks are for a service as it is `current` only."""
        checks = self._store.leadership.checks
        try:
            for some in _pieces([task for task, _ in self._changed.values() if task.id not in self._gone]):
                await self._store.settle(*some, checks=checks)
                for task in some:
                    del self._changed[task.id]
            for some in _pieces(list(self._gone.values())):
                await self._store.delete(*some, checks=checks)
            for some in _pieces(self.created):
                if current():
                    await self._store.save(*some, checks=checks)
        except HuskError:
            for task, before in self._changed.values():
                _restore(task, before)
            raise

    def _stop(self, task: Task, desired: TaskState) -> None:
        if desired == "remove" and self._unreached(task):
            self._gone[task.id] = task
        elif task.desired_state != desired:
            self._note(task)
            task.desired_state = desired
            if _unplaced(task):
                self._become(task, "shutdown", "shutdown")

    def _become(self, task: Task, state: TaskState, message: str, err: str = "") -> None:
        now = now_ns()
        self._note(task)
        old = task.status
        task.status = msgspec.structs.replace(
            old, timestamp=rfc3339(now), state=state, message=message, err=err, since_ns=now
        )

    def _note(self, task: Task) -> None:
        if task.version and task.id not in self._changed:
            self._changed[task.id] = (task, msgspec.structs.replace(task))

    def _unreached(self, task: Task) -> bool:
        """Is there no node that has anything of it?"""
        return _unplaced(task) or (self._nodes is not None and task.node_id not in self._nodes)


def _unplaced(task: Task) -> bool:
    return not task.node_id or (task.status.state == "pending")


def _new_task(service: Service, action: Create, log_driver: DriverSpec | None) -> Task:
    now = now_ns()
    stamp = rfc3339(now)
    is_job = service.spec.mode.is_job
    return Task(
        id=new_id(),
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
    )


def _with_driver(template: TaskSpec, driver: DriverSpec | None) -> TaskSpec:
    """What the swarm declares for tasks that say nothing themselves."""
    if template.log_driver is not None or driver is None:
        return template
    return msgspec.structs.replace(template, log_driver=driver)


def _restore(task: Task, before: Task) -> None:
    if task.version > before.version:
        # Somebody else has written it, and it is what that one made of it.
        return
    task.node_id, task.desired_state, task.status = before.node_id, before.desired_state, before.status


def _pieces(tasks: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(tasks), AT_ONCE):
        yield tasks[start : start + AT_ONCE]
