"""The share of a node in the swarm: its own tasks, with secrets, configs and credentials of those that it is to run.

This is the rule that a manager keeps towards each node, whatever the node asks for. Pure.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct, field

from husk.errors import Forbidden, InvalidParameter
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.services import Mode, Service, ServiceSpec, Task, TaskSpec, TaskStatus, is_assigned
from husk.swarm.node.delivery import files_of

# The states that a node brings its tasks to, in their order; the last ones are ends.
_ORDER = {
    state: number
    for number, states in enumerate(
        [
            ("assigned",),
            ("accepted",),
            ("preparing",),
            ("ready",),
            ("starting",),
            ("running",),
            ("complete", "shutdown", "failed", "rejected"),
        ]
    )
    for state in states
}
_LONGEST = 4096
# Of processes and exit codes; clients read no numbers of any size.
_NUMBERS = range(-(1 << 31), 1 << 31)
_CONTAINER_ID = re.compile("[0-9a-f]{64}", re.ASCII)
NOT_YOURS = "this node has no such task"


class Share(Struct):
    """`values` are (kind, id) of secrets and configs."""

    tasks: dict[str, Task] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    values: set[tuple[str, str]] = field(default_factory=set)


def share_of(node_id: str, tasks: Iterable[Task], services: Mapping[str, Service]) -> Share:
    """All that a node is told."""
    share = Share()
    for task in tasks:
        if task.node_id != node_id or not node_id or not is_assigned(task):
            continue
        share.tasks[task.id] = task
        if (service := services.get(task.service_id)) is not None:
            share.services[service.id] = needed_of(service)
        share.values |= values_of(task)
    return share


def is_to_run(task: Task) -> bool:
    return task.alive and task.wanted


def values_of(task: Task) -> set[tuple[str, str]]:
    """The secrets and configs that a task needs now; one that has ended, or is to, needs none."""
    return {(file.kind, file.record_id) for file in files_of(task.spec.container_spec)} if is_to_run(task) else set()


def needed_of(service: Service) -> Service:
    """Reduce a service to what a task's container has of it; the rest is in the task, or none of a node's business."""
    spec = service.spec
    return Service(
        id=service.id,
        version=service.version,
        created_at="",
        updated_at="",
        spec=ServiceSpec(
            name=spec.name,
            labels=spec.labels,
            networks=spec.networks,
            endpoint_spec=spec.endpoint_spec,
            task_template=TaskSpec(networks=spec.task_template.networks),
            mode=Mode(),
        ),
        ports=service.ports,
        virtual_ips=service.virtual_ips,
    )


def checked(node_id: str, task: Task | None, status: TaskStatus, clock: Clock = CLOCK) -> TaskStatus:
    """The status that a manager writes when a node reports one; raises where it is not the node's to say.

    Times are the manager's: a node's clock may be minutes wrong, and restarts are counted by them.
    """
    task = _own(node_id, task)
    old = task.status
    if status.state not in _ORDER or old.state not in _ORDER:
        raise Forbidden(f"a node cannot bring a task from {old.state} to {status.state}")
    if _ORDER[status.state] < _ORDER[old.state] or (not task.alive and status.state != old.state):
        raise Forbidden(f"a task does not go back from {old.state} to {status.state}")
    if status.container_id and not _CONTAINER_ID.fullmatch(status.container_id):
        # Names and leading parts of ids would mean containers of whoever looks for them.
        raise InvalidParameter("the id of a container has 64 hexadecimal digits")
    if status.pid not in _NUMBERS or status.exit_code not in _NUMBERS:
        raise InvalidParameter("no process has such a number, or exit code")
    same, now = status.state == old.state, clock.now()
    return msgspec.structs.replace(
        status,
        timestamp=old.timestamp if same else clock.stamp(),
        message=status.message[:_LONGEST],
        err=status.err[:_LONGEST],
        since_ns=old.since_ns if same else now,
        started_ns=old.started_ns or (now if status.state == "running" else 0),
    )


def check_gone(node_id: str, task: Task | None) -> Task:
    """The task, if a node may say that nothing is left of it: one that is to be removed."""
    task = _own(node_id, task)
    if task.desired_state != "remove":
        raise Forbidden("the task is not to be removed")
    return task


def _own(node_id: str, task: Task | None) -> Task:
    """Return a node's own task; Forbidden for another node's task, just as for one that does not exist."""
    if task is None or not node_id or task.node_id != node_id or not is_assigned(task):
        raise Forbidden(NOT_YOURS)
    return task
