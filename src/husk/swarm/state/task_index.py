"""Tasks by service and by node, and what they take of each node: kept with each change, so that nobody looks at all.

Another record of a task takes the place of the former one. What that took is remembered here, and given back first.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from husk.swarm.model.placement import NodeUsage, Port, TaskUsage, takes_room
from husk.swarm.model.services import Task
from husk.swarm.signals import Signal

_FAILED = ("failed", "rejected")


class _Noted(Struct):
    node_id: str
    use: TaskUsage | None
    failed: bool


class TaskIndex:
    def __init__(self, ports_of: Callable[[str], Iterable[Port]]) -> None:
        """`ports_of` a service: those of its node that each of its tasks has."""
        self._ports_of = ports_of
        self._noted: dict[str, _Noted] = {}
        self._by_service: dict[str, dict[str, Task]] = {}
        self._by_node: dict[str, dict[str, Task]] = {}
        self._rooms: defaultdict[str, NodeUsage] = defaultdict(NodeUsage)
        # The id of each task that is new, changed or gone.
        self.changed = Signal[[str]]()

    @property
    def rooms(self) -> Mapping[str, NodeUsage]:
        """By the nodes' ids; one that has no task yet has an empty one."""
        return self._rooms

    @property
    def services(self) -> Iterable[str]:
        """Those that have tasks, be they gone themselves."""
        return self._by_service.keys()

    @property
    def nodes(self) -> Iterable[str]:
        """Those that tasks were placed on, be they gone themselves."""
        return self._by_node.keys()

    def of_service(self, service_id: str) -> list[Task]:
        return list(self._by_service.get(service_id, {}).values())

    def on_node(self, node_id: str) -> list[Task]:
        return list(self._by_node.get(node_id, {}).values())

    def note(self, task: Task) -> None:
        """A task is there, or has changed."""
        before = self._noted.get(task.id)
        if before is not None:
            self._give_back(task.id, before)
        use = TaskUsage(task, self._ports_of(task.service_id)) if takes_room(task) else None
        failed = task.status.state in _FAILED
        self._noted[task.id] = _Noted(task.node_id, use, failed)
        self._by_service.setdefault(task.service_id, {})[task.id] = task
        if task.node_id:
            self._by_node.setdefault(task.node_id, {})[task.id] = task
            if use is not None:
                self._rooms[task.node_id].add(use)
            if failed and (before is None or not before.failed):
                self._rooms[task.node_id].failed(task.service_id, task.spec_version, task.status.since_ns)
        self.changed.emit(task.id)

    def drop(self, task: Task) -> None:
        """A task is gone."""
        if (before := self._noted.pop(task.id, None)) is None:
            return
        self._give_back(task.id, before)
        _without(self._by_service, task.service_id, task.id)
        self.changed.emit(task.id)

    def forget_node(self, node_id: str) -> None:
        """A node is gone: how services failed there means nothing any more, once it has no tasks."""
        if node_id not in self._by_node:
            self._rooms.pop(node_id, None)

    def _give_back(self, task_id: str, before: _Noted) -> None:
        if before.use is not None:
            self._rooms[before.node_id].add(before.use, -1)
        _without(self._by_node, before.node_id, task_id)


def _without(groups: dict[str, dict[str, Task]], group: str, task_id: str) -> None:
    members = groups.get(group)
    if members is not None:
        members.pop(task_id, None)
        if not members:
            del groups[group]
