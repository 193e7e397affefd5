"""A worker's end of its assignments: what a manager tells it, kept in memory, and reports that wait until one hears.

Nothing of it is on a disk, for values of secrets are among it. While no manager can be reached the tasks run on, ended
ones are not replaced, and what becomes of them is reported afterwards. After a start of the daemon nothing is known
until a manager has told all.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import InvalidParameter, Unavailable
from husk.registry.auth import Credentials
from husk.swarm.loops import PAUSES, again_and_again
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Service, Task, TaskStatus
from husk.swarm.node.delivery import Value
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignedValue,
    AssignmentUpdate,
    NetworkNews,
    Report,
    ReportReply,
)

log = logging.getLogger(__name__)

# Reports in one message.
AT_ONCE = 100
# Of what it says in words of a task, in characters: managers keep no more, and a message has its limits, too.
LONGEST = 4096


class AssignmentChannel(Protocol):
    """The way to a manager. Both raise HuskError where none can be reached, or it does not hear."""

    def assignments(self) -> AsyncGenerator[AssignmentUpdate]:
        """Yield what the node is told, for as long as that manager is there."""
        ...

    async def report(self, reports: Sequence[Report]) -> ReportReply: ...


class RemoteAssignments:
    """The assignments and values that the agent and the runner of a worker work with (`Assignments`, `Values`)."""

    def __init__(
        self,
        channel: AssignmentChannel,
        wake: Callable[..., None],
        told_all: Callable[[], None],
        networks: Callable[[NetworkNews | None], None] = lambda news: None,
        managers: Callable[[list[tuple[str, str]]], None] = lambda told: None,
        pauses: tuple[float, float] = PAUSES,
    ) -> None:
        """`wake` hears the ids of tasks that are new or changed, `told_all` that a manager has told everything,
        `networks` what it tells of those, and None where one begins to tell everything; `managers` who they are, as
        (node, HOST:PORT)."""
        self._pauses = pauses
        self._networks = networks
        self._managers = managers
        self._channel = channel
        self._wake = wake
        self._told_all = told_all
        self._node: NodeFacts | None = None
        self._given: dict[str, AssignedTask] = {}
        self._values: dict[tuple[str, str], Value] = {}
        # What is told anew, until it is complete: tasks, and values of secrets and configs.
        self._coming: set[str] | None = None
        self._coming_values: set[tuple[str, str]] = set()
        # Tasks of this node that a newer release tells of in words of its own: what is here of them stays.
        self.unread: set[str] = set()
        self._unreported: dict[str, Report] = {}
        self._to_report = asyncio.Event()
        self._tasks = Tasks()

    def start(self) -> None:
        self._tasks.spawn(again_and_again(self._listen, "assignments", self._pauses), "services: assignments")
        self._tasks.spawn(again_and_again(self._tell, "reports", self._pauses), "services: reports")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    # --- what the agent asks

    @property
    def node(self) -> NodeFacts:
        if self._node is None:
            raise Unavailable("no manager of the swarm has told this node yet what it is")
        return self._node

    def tasks(self) -> Iterable[Task]:
        return [given.task for given in self._given.values()]

    def task(self, task_id: str) -> Task | None:
        given = self._given.get(task_id)
        return given.task if given is not None else None

    def service(self, task: Task) -> Service | None:
        given = self._given.get(task.id)
        return given.service if given is not None else None

    def obstacle(self, task: Task) -> str:
        given = self._given.get(task.id)
        return given.obstacle if given is not None else ""

    async def credentials(self, task: Task) -> Credentials | None:
        given = self._given.get(task.id)
        return given.credentials if given is not None else None

    def value(self, kind: str, record_id: str) -> Value:
        if (value := self._values.get((kind, record_id))) is None:
            raise InvalidParameter(f"{kind} {record_id} not found")
        return value

    async def report(self, task: Task, status: TaskStatus) -> None:
        status = msgspec.structs.replace(status, message=status.message[:LONGEST], err=status.err[:LONGEST])
        if (given := self._given.get(task.id)) is not None:
            given.task = msgspec.structs.replace(given.task, status=status)
        self._say(Report(task_id=task.id, status=status))

    async def gone(self, task: Task) -> None:
        self._given.pop(task.id, None)
        self._say(Report(task_id=task.id))

    # --- what a manager says

    def hear(self, told: AssignmentUpdate) -> None:
        """Take in what a manager tells."""
        if told.all:
            self._coming, self._coming_values = set(), set()
            self.unread = set()
            self._networks(None)
        self._node = told.node or self._node
        if told.managers:
            self._managers(told.managers)
        if told.networks is not None:
            self._networks(told.networks)
        for value in told.values:
            self._values[(value.kind, value.id)] = _value(value)
            self._coming_values.add((value.kind, value.id))
        for given in told.tasks:
            self._take(given)
        self.unread.update(told.unread)
        for task_id in told.gone:
            self._drop(task_id)
        for kind, id in told.dropped:
            self._values.pop((kind, id), None)
        if told.complete and self._coming is not None:
            for task_id in [id for id in self._given if id not in self._coming and id not in self.unread]:
                self._drop(task_id)
            for key in [key for key in self._values if key not in self._coming_values]:
                del self._values[key]
            self._coming, self._coming_values = None, set()
            self._told_all()

    def _take(self, given: AssignedTask) -> None:
        task = given.task
        self.unread.discard(task.id)
        if self._coming is not None:
            self._coming.add(task.id)
        waiting = self._unreported.get(task.id)
        if waiting is not None and waiting.status is None:
            return  # it is gone here, which the manager has not heard yet
        if (known := self._given.get(task.id)) is not None:
            # Whoever works for the task has it in hand; how far it came is known best here, until it is given up.
            status = task.status if task.status.state == "orphaned" else known.task.status
            if self._coming is not None and waiting is None and status.state != task.status.state:
                # A manager whose records come out of a backup has not heard it.
                self._say(Report(task_id=task.id, status=status))
            given.task = msgspec.structs.replace(task, status=status)
        elif waiting is not None and waiting.status is not None:
            given.task = msgspec.structs.replace(task, status=waiting.status)
        self._given[task.id] = given
        self._wake(task.id)

    def _drop(self, task_id: str) -> None:
        """The swarm knows nothing of a task any more: the agent is to remove what is left of it."""
        self.unread.discard(task_id)
        if (given := self._given.get(task_id)) is not None:
            given.task = msgspec.structs.replace(given.task, desired_state="remove")
            self._wake(task_id)

    async def _listen(self) -> None:
        async with aclosing(self._channel.assignments()) as news:
            async for told in news:
                self.hear(told)

    # --- what managers hear

    def _say(self, report: Report) -> None:
        self._unreported[report.task_id] = report
        self._to_report.set()

    async def _tell(self) -> None:
        while True:
            await self._to_report.wait()
            self._to_report.clear()
            while self._unreported:
                some = list(self._unreported.values())[:AT_ONCE]
                try:
                    heard = await self._channel.report(some)
                except BaseException:
                    self._to_report.set()
                    raise
                for task_id in heard.refused:
                    log.warning("no manager takes what this node reports of task %s", task_id)
                for report in some:
                    if self._unreported.get(report.task_id) is report:
                        del self._unreported[report.task_id]


def _value(given: AssignedValue) -> Value:
    return Value(given.data, given.templated)
