"""The logs of tasks, wherever their containers are."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from husk.engine.containers.service import Containers
from husk.engine.logs.read import Form
from husk.engine.logs.records import Columns, LogQuery
from husk.engine.model.clock import now_ns, rfc3339
from husk.errors import HuskError, InvalidParameter, NotFound
from husk.swarm.logs.broker import LogBroker
from husk.swarm.logs.progress import LogProgress
from husk.swarm.loops import FIRST_PAUSE, LONGEST_PAUSE
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.services import Task
from husk.swarm.port.log_messages import Asked, read_piece
from husk.swarm.state.records import SwarmRecords

T = TypeVar("T")
Log = tuple[list[Task], AsyncIterator[T]]


class TaskLogs:
    def __init__(
        self,
        containers: Containers,
        cluster: Cluster,
        store: SwarmRecords,
        broker: LogBroker,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """`broker` reads logs of other nodes."""
        self._first_pause = first_pause
        self._containers = containers
        self._cluster = cluster
        self._nodes, self._tasks = store.nodes, store.tasks
        self._broker = broker

    def has_started(self, task: Task) -> bool:
        """Tell if a task's container has been started. Whoever follows the log of one that has not hears of nothing."""
        if self._is_elsewhere(task):
            return task.status.state == "running"
        try:
            return self._containers.find(task.status.container_id or task.name).state.status != "created"
        except HuskError:
            return False

    def of(self, tasks: list[Task], query: LogQuery, form: Callable[[Task], Form[T]]) -> list[Log[T]]:
        """The logs of those tasks that have a container, in the form that each is to have; of another node in one."""
        found: list[Log[T]] = []
        others: dict[str, list[Task]] = {}
        for task in tasks:
            if self._is_elsewhere(task):
                others.setdefault(task.node_id, []).append(task)
                continue
            try:
                log = self._containers.logs(task.status.container_id or task.name, query, form(task))
            except NotFound:
                continue
            found.append(([task], log))
        if others and not (query.stdout or query.stderr):
            raise InvalidParameter("Bad parameters: you must choose at least one stream")
        found += [(some, self._there(node, some, query, form)) for node, some in others.items()]
        return found

    async def _there(
        self, node: str, tasks: list[Task], query: LogQuery, form: Callable[[Task], Form[T]]
    ) -> AsyncGenerator[T]:
        """Yield what one node has of these tasks' logs. Who follows goes on where the way there broke off, for as long
        as the node is in the swarm."""
        forms = [form(task) for task in tasks]
        reading = _Reading(tasks, forms, [LogProgress(query) for _ in tasks], follow=query.follow)
        pause, begun = self._first_pause, False
        while True:
            known = self._nodes.get(node)
            try:
                if known is None or known.status.state == "down":
                    raise NotFound("the node is down" if known is not None else "the node is not in the swarm any more")
                async with aclosing(reading.read(self._broker, node)) as pieces:
                    async for piece in pieces:
                        pause, begun = self._first_pause, True
                        yield piece
                return
            except HuskError as error:
                trouble, nonsense = error.message, isinstance(error, InvalidParameter)
            there = known is not None and any(task.id in self._tasks for task in tasks)
            goes_on = query.follow and there and not nonsense
            if not goes_on or not begun:
                host = known.description.hostname if known is not None else node
                async for line in note(tasks, host, trouble, query, forms[0]):
                    yield line
                begun = True
            if not goes_on:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _is_elsewhere(self, task: Task) -> bool:
        return bool(task.status.container_id) and task.node_id != self._cluster.node_id


class _Reading(Generic[T]):
    """The logs of some tasks of one node, each as far as it has come."""

    def __init__(self, tasks: list[Task], forms: list[Form[T]], progress: list[LogProgress], *, follow: bool) -> None:
        self._tasks = tasks
        self._forms = forms
        self._progress = progress
        self._follow = follow
        # Who follows may have to know how far it has come.
        self._times = follow or forms[0].needs_times

    async def read(self, broker: LogBroker, node: str) -> AsyncGenerator[T]:
        """Yield what has not come before, until the logs end; InvalidParameter for an answer that is none, and any
        other error where the way there breaks off."""
        async with aclosing(broker.pieces(self._asked(node))) as pieces:
            async for piece in pieces:
                yield await asyncio.to_thread(self._made, piece)

    def _made(self, piece: bytes) -> T:
        """In a thread, one after the other: a piece may be of 100,000 records."""
        place, lines = read_piece(piece, self._tasks, self._times)
        if self._follow:
            lines = self._progress[place].take(lines)
        if not self._forms[place].needs_times:
            lines = lines._replace(times=None)
        return self._forms[place].encode(lines)

    def _asked(self, node: str) -> Asked:
        for progress in self._progress:
            progress.break_off()
        queries = [progress.query for progress in self._progress]
        # A node that knows nothing of several gets the one that lacks nothing.
        widest = min(queries, key=lambda query: (query.tail is not None, query.since_ns or 0))
        return Asked(
            node=node,
            tasks=[task.id for task in self._tasks],
            query=widest,
            queries=queries if len(set(queries)) > 1 else [],
            times=self._times,
            begun=self._follow and any(query.tail == 0 for query in queries),
        )


def told(tasks: Sequence[Task], host: str, reason: str) -> str:
    """In one line. Pure."""
    what = "the log of this task" if len(tasks) == 1 else f"the logs of {len(tasks)} tasks"
    return f"husk: {what} cannot be read from {host or 'its node'} now, or not to the end: {reason}"


async def note(tasks: Sequence[Task], host: str, reason: str, query: LogQuery, form: Form[T]) -> AsyncIterator[T]:
    """As a line of the first task's own, on its standard error."""
    if query.stderr:
        times = [rfc3339(now_ns()).encode()] if form.needs_times else None
        yield form.encode(Columns([b"stderr F"], [told(tasks, host, reason).encode()], times))
