"""Finds a node for each task that waits for one. Pure: tasks, nodes and what is taken of them in, choices out."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from husk.swarm.manager.scheduler.spread import preferred_labels, tree
from husk.swarm.manager.scheduler.suitable import (
    Obstacle,
    explained,
    needs_of,
    no_suitable_node,
    obstacle,
    still_fits,
)
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Service, Task
from husk.swarm.model.usage import NodeUsage, TaskUsage, host_ports


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
