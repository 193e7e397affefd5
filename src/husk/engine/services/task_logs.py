"""The logs of tasks, wherever their containers are."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from husk.engine.containers.service import Containers
from husk.engine.logs.read import Form
from husk.engine.logs.records import LogQuery
from husk.engine.services.cluster import Cluster
from husk.engine.services.elsewhere import note
from husk.engine.services.model import Task
from husk.engine.services.node import Node
from husk.errors import HuskError, InvalidParameter, NotFound

if TYPE_CHECKING:
    from husk.engine.services.log_broker import LogBroker

T = TypeVar("T")
Log = tuple[list[Task], AsyncIterator[T]]


class TaskLogs:
    def __init__(
        self,
        containers: Containers,
        cluster: Cluster,
        nodes: Mapping[str, Node],
        broker: Callable[[], "LogBroker"],
    ) -> None:
        """`broker` is asked for when the first log of another node is to be read."""
        self._containers = containers
        self._cluster = cluster
        self._nodes = nodes
        self._broker = broker

    def has_started(self, task: Task) -> bool:
        """Has its container been started? Whoever follows the log of one that has not hears of nothing."""
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
        from husk.engine.services.log_messages import Asked, read_piece

        forms = [form(task) for task in tasks]
        times = forms[0].needs_times
        asked = Asked(node=node, tasks=[task.id for task in tasks], query=query, times=times)
        known = self._nodes.get(node)
        try:
            if known is None or known.status.state == "down":
                raise NotFound("the node is down" if known is not None else "the node is not in the swarm any more")
            async with aclosing(self._broker().pieces(asked)) as pieces:
                async for piece in pieces:
                    place, lines = read_piece(piece, tasks, times)
                    yield await asyncio.to_thread(forms[place].encode, lines)
        except HuskError as error:
            host = known.description.hostname if known is not None else node
            async for line in note(tasks, host, error.message, query, forms[0]):
                yield line

    def _is_elsewhere(self, task: Task) -> bool:
        return bool(task.status.container_id) and task.node_id != self._cluster.node_id
