"""Which kinds of records has a swarm, by what are they found in the store, and how are they read? Pure."""

from collections.abc import Callable

import msgspec

from husk.engine.services.model import ClusterObject, Service, Task
from husk.engine.services.node import Node
from husk.engine.services.swarm import KEY, Swarm, read_swarm

SwarmRecord = Service | Task | ClusterObject | Swarm | Node

_object = msgspec.json.Decoder(ClusterObject).decode
READERS: dict[str, Callable[[bytes], SwarmRecord]] = {
    "service": msgspec.json.Decoder(Service).decode,
    "task": msgspec.json.Decoder(Task).decode,
    "secret": _object,
    "config": _object,
    "swarm": read_swarm,
    "node": msgspec.json.Decoder(Node).decode,
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
