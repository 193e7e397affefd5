"""The kinds of records that a swarm has, with the keys that find them in the store, and their readers. Pure."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from husk.swarm.model.node import Node
from husk.swarm.model.services import ClusterObject, Service, Task
from husk.swarm.model.swarm import KEY, KIND, MEMBERSHIP, Membership, Swarm, read_swarm
from husk.text.documents import reader

SwarmRecord = Service | Task | ClusterObject | Swarm | Node

_object = reader(ClusterObject)
READERS: dict[str, Callable[[bytes], SwarmRecord]] = {
    "service": reader(Service),
    "task": reader(Task),
    "secret": _object,
    "config": _object,
    "swarm": read_swarm,
    "node": reader(Node),
}


# All that a swarm keeps in the store of this host.
TYPES: Mapping[str, type[Struct]] = {
    "service": Service,
    "task": Task,
    "secret": ClusterObject,
    "config": ClusterObject,
    KIND: Swarm,
    MEMBERSHIP: Membership,
    "node": Node,
}


def only_tasks(records: tuple[SwarmRecord, ...]) -> bool:
    """Nobody declared those: were they lost in a power cut, the reconciler would make others."""
    return all(isinstance(record, Task) for record in records)


def kind_of(record: SwarmRecord) -> str:
    match record:
        case ClusterObject():
            return record.kind
        case Service():
            return "service"
        case Task():
            return "task"
        case Swarm():
            return "swarm"
        case Node():
            return "node"


def key_of(record: SwarmRecord) -> str:
    return KEY if isinstance(record, Swarm) else record.id
