"""The filters for nodes that can take a task of a service, and in dockerd's words why the others cannot. Pure.

Each filter says no for its own reason, in this order; a node counts for the first that refuses it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import msgspec

from husk.swarm.model.placement import (
    NodeFacts,
    NodeUsage,
    PlacementConstraint,
    Port,
    discrete,
    host_ports,
    parse_constraint,
    reserved,
)
from husk.swarm.model.services import Platform, Service, Task

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
    return full(needs, room)


def full(needs: TaskNeeds, room: NodeUsage) -> Obstacle | None:
    """Of the obstacles that more tasks bring about, those that are not counted amounts."""
    if needs.ports and any(port in room.ports for port in needs.ports):
        return "ports"
    if needs.max_replicas and room.services.get(needs.service_id, 0) >= needs.max_replicas:
        return "replicas"
    return None


def still_fits(needs: TaskNeeds, node: NodeFacts, room: NodeUsage) -> Obstacle | None:
    """The same as `obstacle` for a node that had none before it got more tasks."""
    return "resources" if not _enough(needs, node, room) else full(needs, room)


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
