"""Finds a node for each task that waits for one. Pure: tasks, nodes and what is taken of them in, choices out.

Chooses nodes for the tasks of a service, one after the other, so that they are spread.

Preferences (`spread=node.labels.zone`) come first, level by level: the branch with the fewest tasks of the service gets
the next one. In the last branch it is the node with the fewest tasks of the service, then with the fewest in all; nodes
where the service failed often lately come last. Each choice costs the logarithm of the nodes, not their number.

The filters for nodes that can take a task of a service, and in dockerd's words why the others cannot.

Each filter says no for its own reason, in this order; a node counts for the first that refuses it.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct, field

from husk.swarm.model.placement import (
    NodeFacts,
    NodeUsage,
    PlacementConstraint,
    Port,
    TaskUsage,
    discrete,
    host_ports,
    parse_constraint,
    reserved,
)
from husk.swarm.model.services import Placement, Platform, Service, Task

MOST_LABELS = 100
# What is smallest comes next.
Rank = tuple[int, ...]
# Give a node one more task if it can take it: whether it could.
Take = Callable[[NodeFacts], bool]
Obstacle = Literal["ready", "resources", "plugins", "constraints", "platforms", "ports", "replicas"]

_REASONS: dict[Obstacle, tuple[str, str]] = {
    "ready": ("1 node not available for new tasks", "{} nodes not available for new tasks"),
    "resources": ("insufficient resources on 1 node", "insufficient resources on {} nodes"),
    "plugins": ("missing plugin on 1 node", "missing plugin on {} nodes"),
    "constraints": (
        "scheduling constraints not satisfied on 1 node",
        "scheduling constraints not satisfied on {} nodes",
    ),
    "platforms": ("unsupported platform on 1 node", "unsupported platform on {} nodes"),
    "ports": ("host-mode port already in use on 1 node", "host-mode port already in use on {} nodes"),
    "replicas": ("max replicas per node limit exceed", "max replicas per node limit exceed"),
}

# Names that others give to a kernel's word for its machine.
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
OWN_NETWORKS = ("bridge", "default", "host", "none")
_ALWAYS_THERE = {("Volume", "local"), ("Log", "none"), ("Log", "")}


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


class TaskNeeds(msgspec.Struct, frozen=True):
    """The needs of a service's tasks on their node: read once for all nodes."""

    service_id: str
    nano_cpus: int = 0
    memory: int = 0
    generic: tuple[tuple[str, int], ...] = ()
    # A named resource cannot be asked for: no node is said to have one free.
    impossible: bool = False
    plugins: tuple[tuple[str, str], ...] = ()
    constraints: tuple[PlacementConstraint, ...] = ()
    platforms: tuple[Platform, ...] = ()
    ports: tuple[Port, ...] = ()
    max_replicas: int = 0


def needs_of(service: Service, task: Task) -> TaskNeeds:
    """Resources are those of the task; where it may run is what its service says now."""
    amount = reserved(task)
    placement = service.spec.task_template.placement
    return TaskNeeds(
        service_id=service.id,
        nano_cpus=amount.nano_cpus if amount else 0,
        memory=amount.memory_bytes if amount else 0,
        generic=discrete(amount) if amount else (),
        impossible=any(r.named_resource_spec is not None for r in amount.generic_resources) if amount else False,
        plugins=_plugins(service, task),
        constraints=tuple(parse_constraint(text) for text in placement.constraints) if placement else (),
        platforms=tuple(placement.platforms) if placement else (),
        ports=host_ports(service),
        max_replicas=placement.max_replicas if placement else 0,
    )


def obstacle(needs: TaskNeeds, node: NodeFacts, room: NodeUsage) -> Obstacle | None:
    """Return what keeps a node from taking a task, None if nothing does."""
    if not node.takes_tasks:
        return "ready"
    if not _enough(needs, node, room):
        return "resources"
    if needs.plugins and node.plugins is not None and any(plugin not in node.plugins for plugin in needs.plugins):
        return "plugins"
    for constraint in needs.constraints:
        if not constraint.holds(node):
            return "constraints"
    if needs.platforms and not any(_is_platform(wanted, node) for wanted in needs.platforms):
        return "platforms"
    return is_full(needs, room)


def is_full(needs: TaskNeeds, room: NodeUsage) -> Obstacle | None:
    """Of the obstacles that more tasks bring about, those that are not counted amounts."""
    if needs.ports and any(port in room.ports for port in needs.ports):
        return "ports"
    if needs.max_replicas and room.services.get(needs.service_id, 0) >= needs.max_replicas:
        return "replicas"
    return None


def still_fits(needs: TaskNeeds, node: NodeFacts, room: NodeUsage) -> Obstacle | None:
    """The same as `obstacle` for a node that had none before it got more tasks."""
    return "resources" if not _enough(needs, node, room) else is_full(needs, room)


def explained(obstacles: Mapping[Obstacle, int]) -> str:
    """Say how many nodes refuse for which reason, the most frequent first."""
    counted = Counter({kind: obstacles[kind] for kind in _REASONS if obstacles.get(kind)})
    told = []
    for kind, number in counted.most_common():
        one, many = _REASONS[kind]
        told.append(one if number == 1 else many.format(number))
    return "; ".join(told)


def no_suitable_node(obstacles: Mapping[Obstacle, int]) -> str:
    reasons = explained(obstacles)
    return f"no suitable node ({reasons})" if reasons else "no suitable node"


def _enough(needs: TaskNeeds, node: NodeFacts, room: NodeUsage) -> bool:
    if needs.nano_cpus and needs.nano_cpus > node.nano_cpus - room.nano_cpus:
        return False
    if needs.memory and needs.memory > node.memory - room.memory:
        return False
    if needs.impossible:
        return False
    return all(number <= node.generic.get(kind, 0) - room.generic.get(kind, 0) for kind, number in needs.generic)


def _plugins(service: Service, task: Task) -> tuple[tuple[str, str], ...]:
    """Drivers that the node must have."""
    found = set()
    if needs_overlay(service):
        found.add(("Network", "overlay"))
    container = task.spec.container_spec
    for mount in container.mounts if container else ():
        driver = mount.volume_options.driver_config if mount.volume_options else None
        if mount.type == "volume" and driver is not None and driver.name:
            found.add(("Volume", driver.name))
    if task.spec.log_driver is not None:
        found.add(("Log", task.spec.log_driver.name))
    return tuple(sorted(found - _ALWAYS_THERE))


def needs_overlay(service: Service) -> bool:
    """Tell if a service is on a network of the swarm. Networks of each host's own are known by name."""
    template = service.spec.task_template
    attached = template.networks or service.spec.networks
    ingress = any(port.publish_mode == "ingress" for port in service.ports)
    return ingress or any(attachment.target not in OWN_NETWORKS for attachment in attached)


def _is_platform(wanted: Platform, node: NodeFacts) -> bool:
    """Tell if a node is of a wanted platform. Any node has what the platform leaves open."""
    return wanted.os.lower() in ("", node.os) and _architecture(wanted.architecture) in ("", node.architecture)


def _architecture(name: str) -> str:
    return _ARCHITECTURES.get(name.lower(), name.lower())
