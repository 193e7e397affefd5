"""The manager's end of a worker's assignments: tells each node its own tasks, and takes states of its own tasks only.

Who calls is known by its certificate (`husk.swarm.port`); what it may know and say is the rule in `Share`. Whatever
the node says, nothing else of the swarm is told to it or changed by it.

The manager's end of assignments as the cluster port carries them, in bytes.

The share of a node in the swarm: its own tasks, with secrets, configs and credentials of those that it is to run.

This is the rule that a manager keeps towards each node, whatever the node asks for.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from husk.errors import Forbidden, HuskError, InvalidParameter, Unavailable
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Mode, Service, ServiceSpec, Task, TaskSpec, TaskStatus, is_assigned
from husk.swarm.network.views import NOTHING, NetworkShare, news
from husk.swarm.node.assignments import LOCKED, PullCredentials
from husk.swarm.node.delivery import Values, files_of
from husk.swarm.port.assignment_messages import (
    AssignedTask,
    AssignedValue,
    AssignmentUpdate,
    HeartbeatReply,
    KnownRecord,
    NetworkNews,
    Report,
    ReportReply,
    decoded,
    encoded,
)
from husk.swarm.port.mixed_releases import MixedReader
from husk.swarm.state.records import OUT_OF_SEQUENCE, SwarmRecords
from husk.swarm.state.transactions import batches

log = logging.getLogger(__name__)

T = TypeVar("T")
# Tasks in one message, which stays far below the port's largest; and records of networks, which are small.
AT_ONCE, RECORDS_AT_ONCE = 50, 1000
# Reports in one message; nodes send far fewer (`remote_assignments`).
MOST_REPORTS = 1000
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
                await self._store.delete(check_gone(node_id, task))
                self._changed(task)
            return
        status = checked(node_id, task, report.status, self._clock)
        assert task is not None

        def change(record: Task) -> Task:
            return msgspec.structs.replace(record, status=self._newer(node_id, record, status))

        await self._store.amend(task, change)
        self._changed(self._store.tasks.get(task.id, task))

    def _newer(self, node_id: str, record: Task, status: TaskStatus) -> TaskStatus:
        """Looked at once more, for another manager may have written it meanwhile."""
        return checked(node_id, record, status, self._clock)

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
        mine = share_of(session.node_id, tasks, self._store.services)
        fresh = [task for task in mine.tasks.values() if session.told.get(task.id) != _form(task)]
        gone = [id for id in task_ids if id in session.told and id not in mine.tasks]
        obstacles = {task.id: LOCKED for task in fresh if self._locked() and values_of(task)}
        wanted = {value for task in fresh if task.id not in obstacles for value in values_of(task)}
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
        return share_of(session.node_id, self._store.index.on_node(session.node_id), {}).values

    async def _given(self, task: Task, mine: Share, obstacle: str) -> AssignedTask:
        credentials = None
        if is_to_run(task) and (service := self._store.services.get(task.service_id)) is not None:
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


class NodeRegister(Protocol):
    """The register of nodes: which are there, and how they describe themselves (`workers.Workers`)."""

    def beat(self, node: str) -> int:
        """A node lives; in which time it should be heard again."""
        ...

    def arrive(self, node: str) -> None:
        """It asks for its tasks here from now on."""
        ...

    async def describe(self, node: str, description: NodeDescription) -> None: ...

    async def leave(self, node: str) -> None: ...


class DispatcherServer:
    """The servicer of the calls of nodes (`husk.swarm.port.dispatch.DispatchServicer`)."""

    def __init__(self, dispatcher: Dispatcher, roll: NodeRegister, away: Callable[[], str] = lambda: "") -> None:
        """`away` says why this manager cannot write anything down now: then nodes are sent to others, which may."""
        self._dispatcher = dispatcher
        self._roll = roll
        self._away = away
        self._reader = MixedReader()

    async def assignments(self, node: str) -> AsyncGenerator[bytes]:
        self._check_here()
        self._roll.arrive(node)
        async with aclosing(self._dispatcher.assignments(node)) as news:
            async for told in news:
                yield encoded(told)

    async def report(self, node: str, body: bytes) -> bytes:
        said = self._reader.reports(body)
        heard = await self._dispatcher.report(node, said.reports)
        return encoded(ReportReply(refused=heard.refused + said.unread))

    async def heartbeat(self, node: str) -> bytes:
        self._check_here()
        return encoded(HeartbeatReply(period_ns=self._roll.beat(node)))

    async def describe(self, node: str, body: bytes) -> bytes:
        await self._roll.describe(node, decoded(body, NodeDescription))
        return b""

    async def leave(self, node: str) -> None:
        await self._roll.leave(node)

    def _check_here(self) -> None:
        if reason := self._away():
            raise Unavailable(f"this manager is cut off from the swarm: {reason}")


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
