"""Finds a node for each task that waits for one. Pure: tasks, nodes and what is taken of them in, choices out.

Chooses nodes for the tasks of a service, one after the other, so that they are spread.

Preferences (`spread=node.labels.zone`) come first, level by level: the branch with the fewest tasks of the service gets
the next one. In the last branch it is the node with the fewest tasks of the service, then with the fewest in all; nodes
where the service failed often lately come last. Each choice costs the logarithm of the nodes, not their number.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from husk.swarm.manager.scheduler.suitable import (
    Obstacle,
    explained,
    needs_of,
    no_suitable_node,
    obstacle,
    still_fits,
)
from husk.swarm.model.placement import NodeFacts, NodeUsage, TaskUsage, host_ports
from husk.swarm.model.services import Placement, Service, Task

MOST_LABELS = 100
# What is smallest comes next.
Rank = tuple[int, ...]
# Give a node one more task if it can take it: whether it could.
Take = Callable[[NodeFacts], bool]


class Choices(Struct):
    """`placed`: tasks with the ids of their nodes. `refused`: tasks with the reason why none can take them."""

    placed: list[tuple[Task, str]] = field(default_factory=list)
    refused: list[tuple[Task, str]] = field(default_factory=list)


def schedule(
    service: Service, waiting: Sequence[Task], nodes: Mapping[str, NodeFacts], rooms: Mapping[str, NodeUsage], now: int
) -> Choices:
    """Choose nodes for tasks of one service that wait. `rooms` are as they were when this returns.

    `rooms` has one for each node, be it empty. A task of a global service has its node already.
    """
    result = Choices()
    taken: list[tuple[NodeUsage, TaskUsage]] = []
    if service.spec.mode.is_global:
        for task in waiting:
            _place_there(service, task, nodes, rooms, result, taken)
    else:
        # Tasks of different templates may ask for different things.
        groups: dict[int, list[Task]] = {}
        for task in waiting:
            groups.setdefault(task.spec_version, []).append(task)
        for tasks in groups.values():
            _place_group(service, tasks, nodes, rooms, now, result, taken)
    for room, use in taken:
        room.add(use, -1)
    return result


def _place_there(
    service: Service,
    task: Task,
    nodes: Mapping[str, NodeFacts],
    rooms: Mapping[str, NodeUsage],
    result: Choices,
    taken: list[tuple[NodeUsage, TaskUsage]],
) -> None:
    """Its node is known: it waits until that one can take it."""
    if (node := nodes.get(task.node_id)) is None:
        return
    if (reason := obstacle(needs_of(service, task), node, rooms[node.id])) is None:
        use = TaskUsage(task, host_ports(service))
        rooms[node.id].add(use)
        taken.append((rooms[node.id], use))
        result.placed.append((task, node.id))
    else:
        result.refused.append((task, explained({reason: 1})))


def _place_group(
    service: Service,
    tasks: Sequence[Task],
    nodes: Mapping[str, NodeFacts],
    rooms: Mapping[str, NodeUsage],
    now: int,
    result: Choices,
    taken: list[tuple[NodeUsage, TaskUsage]],
) -> None:
    """Tasks that ask for the same."""
    needs = needs_of(service, tasks[0])
    obstacles: Counter[Obstacle] = Counter()
    able = []
    for node in nodes.values():
        if (reason := obstacle(needs, node, rooms[node.id])) is None:
            able.append(node)
        else:
            obstacles[reason] += 1
    labels = preferred_labels(service.spec.task_template.placement)
    choices = tree(able, rooms, service.id, tasks[0].spec_version, labels, now)
    use = TaskUsage(tasks[0], host_ports(service))

    def take(node: NodeFacts) -> bool:
        room = rooms[node.id]
        if (reason := still_fits(needs, node, room)) is not None:
            obstacles[reason] += 1
            return False
        room.add(use)
        taken.append((room, use))
        return True

    for number, task in enumerate(tasks):
        if (chosen := choices.choose(take)) is None:
            told = no_suitable_node(obstacles)
            result.refused += [(left, told) for left in tasks[number:]]
            return
        result.placed.append((task, chosen.id))


class Leaf:
    """One node as a choice."""

    __slots__ = ("_failures", "_id", "_room", "node")

    def __init__(self, node: NodeFacts, room: NodeUsage, service_id: str, failures: int) -> None:
        self.node = node
        self._room = room
        self._id = service_id
        self._failures = failures

    @property
    def count(self) -> int:
        return self._room.services.get(self._id, 0)

    @property
    def rank(self) -> Rank:
        return (self._failures, self._room.services.get(self._id, 0), self._room.tasks)

    def choose(self, take: Take) -> NodeFacts | None:
        return self.node if take(self.node) else None


class SpreadBranch:
    """Nodes that are alike in a label, or branches of such."""

    __slots__ = ("_heap", "count")

    def __init__(self, children: Sequence["Leaf | SpreadBranch"]) -> None:
        self.count: int = sum(child.count for child in children)
        # The number keeps the order of those that rank alike, and children from being compared.
        self._heap = [(child.rank, number, child) for number, child in enumerate(children)]
        heapq.heapify(self._heap)

    @property
    def rank(self) -> Rank:
        return (self.count,)

    def choose(self, take: Take) -> NodeFacts | None:
        """The node that took the next task; None when no node takes another."""
        while self._heap:
            _, number, child = self._heap[0]
            if (node := child.choose(take)) is not None:
                self.count += 1
                heapq.heapreplace(self._heap, (child.rank, number, child))
                return node
            heapq.heappop(self._heap)
        return None


def tree(
    nodes: Iterable[NodeFacts],
    rooms: Mapping[str, NodeUsage],
    service_id: str,
    spec_version: int,
    labels: Sequence[str],
    now: int,
) -> SpreadBranch:
    """All choices; `labels` are the preferences, the most important first."""
    leaves = [
        Leaf(node, rooms[node.id], service_id, rooms[node.id].fails(service_id, spec_version, now)) for node in nodes
    ]
    return _branch(leaves, labels)


def _branch(leaves: list[Leaf], labels: Sequence[str]) -> SpreadBranch:
    """Labels in which all are alike make no branch."""
    groups: dict[str, list[Leaf]] = {}
    while labels and len(groups) < 2:
        groups = {}
        for leaf in leaves:
            groups.setdefault(_value(leaf.node, labels[0]), []).append(leaf)
        labels = labels[1:]
    if len(groups) < 2:
        return SpreadBranch(leaves)
    return SpreadBranch([_branch(groups[value], labels) for value in sorted(groups)])


def preferred_labels(placement: Placement | None) -> list[str]:
    """Return the labels to spread tasks over, each once; what is no label of a node or an engine means nothing.

    The first hundred labels count. A specification has room for thousands, and each would be a level of the tree.
    """
    found: dict[str, None] = {}
    for preference in placement.preferences if placement else ():
        spread = preference.get("Spread")
        descriptor = spread.get("SpreadDescriptor") if isinstance(spread, dict) else None
        if isinstance(descriptor, str) and descriptor.lower().startswith(("node.labels.", "engine.labels.")):
            found[descriptor] = None
    return list(found)[:MOST_LABELS]


def _value(node: NodeFacts, descriptor: str) -> str:
    """Nodes without the label are a branch of their own."""
    kind, _, name = descriptor.split(".", 2)
    labels = node.labels if kind.lower() == "node" else node.engine_labels
    return labels.get(name, "")
