"""The manager's end of a worker's assignments: tells each node its own tasks, and takes states of its own tasks only.

Who calls is known by its certificate (`husk.swarm.port`); what it may know and say is the rule in `share`. Whatever
the node says, nothing else of the swarm is told to it or changed by it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from husk.errors import Forbidden, HuskError, InvalidParameter
from husk.swarm.manager.dispatcher import share
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Task, TaskStatus, is_assigned
from husk.swarm.network.views import NOTHING, NetworkShare, news
from husk.swarm.node.assignments import LOCKED
from husk.swarm.node.credentials import PullCredentials
from husk.swarm.node.delivery import Values
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignedValue,
    AssignmentUpdate,
    KnownRecord,
    NetworkNews,
    Report,
    ReportReply,
)
from husk.swarm.state.batches import batches
from husk.swarm.state.records import OUT_OF_SEQUENCE, SwarmRecords

log = logging.getLogger(__name__)

T = TypeVar("T")
# Tasks in one message, which stays far below the port's largest; and records of networks, which are small.
AT_ONCE, RECORDS_AT_ONCE = 50, 1000
# Reports in one message; nodes send far fewer (`remote_assignments`).
MOST_REPORTS = 1000


class Dispatcher:
    def __init__(
        self,
        *,
        store: SwarmRecords,
        values: Values,
        credentials: PullCredentials,
        locked: Callable[[], bool],
        changed: Callable[[Task], None],
        networks: Callable[[str], NetworkShare] = lambda node: NOTHING,
        generation: Callable[[], object] = object,
        clock: Clock = CLOCK,
        records_at_once: int = RECORDS_AT_ONCE,
    ) -> None:
        """`changed` hears of a task that has another state, or is gone; `networks` tells what a node may know there."""
        self._networks = networks
        self._clock = clock
        # Another value whenever something of networks may be another: to find out what takes long where there is much.
        self._generation = generation
        self._looked_at: object = None
        self._store = store
        self._records_at_once = records_at_once
        self._values = values
        self._credentials = credentials
        self._locked = locked
        self._changed = changed
        self._sessions: dict[str, set[_Session]] = {}
        store.index.changed.subscribe(self._noticed)

    async def assignments(self, node_id: str) -> AsyncGenerator[AssignmentUpdate]:
        """Yield what a node is to run: first all of it, then each change, until the caller closes this."""
        # The node removes what it is not told of, though another manager may have given it that a moment ago.
        await self._store.catch_up()
        with self._session(node_id) as session:
            session.managers = self._managers()
            yield AssignmentUpdate(all=True, node=self._facts(node_id), managers=session.managers)
            for news in self._network_news(session):
                yield AssignmentUpdate(networks=news)
            async for told in self._told(session, [task.id for task in self._store.index.on_node(node_id)]):
                yield told
            yield AssignmentUpdate(complete=True)
            while True:
                touched = await session.news()
                if (managers := self._managers()) != session.managers:
                    session.managers = managers
                    yield AssignmentUpdate(managers=managers)
                for news in self._network_news(session):
                    yield AssignmentUpdate(networks=news)
                async for told in self._told(session, touched):
                    yield told

    async def report(self, node_id: str, reports: Sequence[Report]) -> ReportReply:
        """Write down a node's reports on its tasks, and answer with those that are refused."""
        if len(reports) > MOST_REPORTS:
            raise InvalidParameter(f"more than {MOST_REPORTS} reports at once")
        refused, reason = [], ""
        for report in reports:
            try:
                await self._take(node_id, report)
            except (Forbidden, InvalidParameter) as error:
                # One that cannot be written, too: it would come again with each of the node's reports, and stop them.
                if error.message == OUT_OF_SEQUENCE:
                    raise
                refused.append(report.task_id)
                reason = error.message
        if refused:
            tasks = f"{len(refused)} tasks" if len(refused) > 1 else f"task {refused[0][:64]}"
            log.warning("what node %s says of %s is refused: %s", node_id, tasks, reason)
        return ReportReply(refused=refused)

    def wake(self) -> None:
        """Values that could not be had may be there now: tell all tasks again."""
        for sessions in self._sessions.values():
            for session in sessions:
                # In another form than any that they can have; those that are gone meanwhile are still told to be.
                session.told = dict.fromkeys(session.told)
                session.mark(*(task.id for task in self._store.index.on_node(session.node_id)))

    def look(self) -> None:
        """Something of the swarm's networks may be new for a node."""
        if not self._sessions or (seen := self._generation(), self._managers()) == self._looked_at:
            return
        self._looked_at = seen, self._managers()
        for sessions in self._sessions.values():
            for session in sessions:
                session.mark()

    def _network_news(self, session: "_Session") -> Iterator[NetworkNews]:
        own = sorted(task.id for task in self._store.index.on_node(session.node_id) if is_assigned(task))
        seen = self._generation(), own
        if session.networks is not None and session.seen == seen:
            return
        session.seen = seen
        share = self._networks(session.node_id)
        before, session.networks = session.networks, share
        fresh, gone = news(before, share)
        if before is not None and not fresh and not gone:
            return
        pieces = list(_pieces(list(fresh), self._records_at_once)) or [[]]
        for number, some in enumerate(pieces):
            yield NetworkNews(
                all=before is None,
                more=number + 1 < len(pieces),
                records=[KnownRecord(*name, msgspec.Raw(msgspec.json.encode(fresh[name]))) for name in some],
                gone=gone if number == 0 else [],
                data_path_port=share.data_path_port,
            )

    async def _take(self, node_id: str, report: Report) -> None:
        task = self._store.tasks.get(report.task_id)
        if report.status is None:
            if task is not None:  # a report may come twice
                await self._store.delete(share.check_gone(node_id, task))
                self._changed(task)
            return
        status = share.checked(node_id, task, report.status, self._clock)
        assert task is not None

        def change(record: Task) -> Task:
            return msgspec.structs.replace(record, status=self._newer(node_id, record, status))

        await self._store.amend(task, change)
        self._changed(self._store.tasks.get(task.id, task))

    def _newer(self, node_id: str, record: Task, status: TaskStatus) -> TaskStatus:
        """Looked at once more, for another manager may have written it meanwhile."""
        return share.checked(node_id, record, status, self._clock)

    # --- sessions

    @contextmanager
    def _session(self, node_id: str) -> Iterator["_Session"]:
        session = _Session(node_id)
        self._sessions.setdefault(node_id, set()).add(session)
        try:
            yield session
        finally:
            self._sessions[node_id].discard(session)
            if not self._sessions[node_id]:
                del self._sessions[node_id]

    def _noticed(self, task_id: str) -> None:
        if not self._sessions:
            return
        task = self._store.tasks.get(task_id)
        for node_id, sessions in self._sessions.items():
            for session in sessions:
                if task_id in session.told or (task is not None and task.node_id == node_id):
                    session.mark(task_id)

    async def _told(self, session: "_Session", task_ids: Sequence[str]) -> AsyncIterator[AssignmentUpdate]:
        """Yield the messages that tell a node what is new of these tasks."""
        tasks = [task for id in task_ids if (task := self._store.tasks.get(id)) is not None]
        mine = share.share_of(session.node_id, tasks, self._store.services)
        fresh = [task for task in mine.tasks.values() if session.told.get(task.id) != _form(task)]
        gone = [id for id in task_ids if id in session.told and id not in mine.tasks]
        obstacles = {task.id: LOCKED for task in fresh if self._locked() and share.values_of(task)}
        wanted = {value for task in fresh if task.id not in obstacles for value in share.values_of(task)}
        for kind, id in sorted(wanted - session.values):
            if (value := await self._value(kind, id)) is not None:
                session.values.add((kind, id))
                yield AssignmentUpdate(values=[value])
        for some in batches(fresh, _size, steps=AT_ONCE):
            given = [await self._given(task, mine, obstacles.get(task.id, "")) for task in some]
            for task in some:
                session.told[task.id] = _form(task)
            yield AssignmentUpdate(tasks=given)
        for id in gone:
            session.told.pop(id, None)
        dropped = sorted(session.values - self._still_needed(session)) if gone or fresh else []
        session.values -= set(dropped)
        if gone or dropped:
            yield AssignmentUpdate(gone=gone, dropped=dropped)

    def _still_needed(self, session: "_Session") -> set[tuple[str, str]]:
        return share.share_of(session.node_id, self._store.index.on_node(session.node_id), {}).values

    async def _given(self, task: Task, mine: share.Share, obstacle: str) -> AssignedTask:
        credentials = None
        if share.is_to_run(task) and (service := self._store.services.get(task.service_id)) is not None:
            credentials = await self._credentials.of(service)
        return AssignedTask(
            task=task, service=mine.services.get(task.service_id), credentials=credentials, obstacle=obstacle
        )

    async def _value(self, kind: str, id: str) -> AssignedValue | None:
        """None for one that is not there: the node's task will say so."""
        try:
            value = await asyncio.to_thread(self._values.value, kind, id)
        except HuskError as error:
            log.warning("%s %s cannot be given to a node: %s", kind, id, error.message)
            return None
        return AssignedValue(kind=kind, id=id, data=value.data, templated=value.templated)

    def _managers(self) -> list[tuple[str, str]]:
        nodes = self._store.nodes.values()
        return sorted((node.id, node.manager.addr) for node in nodes if node.manager is not None)

    def _facts(self, node_id: str) -> NodeFacts | None:
        node = self._store.nodes.get(node_id)
        return node.facts if node is not None else None


class _Session:
    """One node that listens: the tasks that it was told of, each in the form it was told, and the values."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        # None until it is told the first time.
        self.networks: NetworkShare | None = None
        self.managers: list[tuple[str, str]] = []
        # What it was made of.
        self.seen: object = None
        self.told: dict[str, object] = {}
        self.values: set[tuple[str, str]] = set()
        self._touched: set[str] = set()
        self._woken = asyncio.Event()

    def mark(self, *task_ids: str) -> None:
        self._touched.update(task_ids)
        self._woken.set()

    async def news(self) -> list[str]:
        """The tasks that something may have become of."""
        await self._woken.wait()
        self._woken.clear()
        touched, self._touched = self._touched, set()
        return sorted(touched)


def _form(task: Task) -> object:
    """Return what managers decide of a task that a node has; the rest of it is what the node itself reported."""
    return task.desired_state, task.status.state == "orphaned"


def _size(task: Task) -> int:
    return len(msgspec.json.encode(task))


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
