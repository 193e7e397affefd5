"""The records of a swarm as they are to be when a backup is brought back, on one host that is its only manager. Pure.

That host takes the place of the manager that made the backup, with its node's id. Nothing is left of what ran there, so
its tasks are over. Other managers are lost, and have to join anew. Workers may come back: until they are heard, or it
is clear that they are not, their tasks are left alone.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import TypeVar

import msgspec

from husk.engine.migrations import STEPS
from husk.engine.model.clock import rfc3339
from husk.engine.networks.sharing import Place, key_of
from husk.errors import HuskError, InvalidParameter
from husk.network.ipam import mac_address
from husk.storage.state.schema import SCHEMA, UnreadableRecord, migrated
from husk.swarm.backup.file import BackupContent, SavedRecord
from husk.swarm.model.node import Node, NodeStatus, manager_at
from husk.swarm.model.services import Service, Task
from husk.swarm.model.swarm import Swarm, read_swarm
from husk.swarm.state.transactions import NEW, Put
from husk.text.documents import MalformedDocument, reader

T = TypeVar("T")
ADDRESS = "address"
LOST = "the manager was lost, and the swarm was restored from a backup: it has to leave the swarm, and join again"
WAITED_FOR = "the swarm was restored from a backup: this node was not heard yet"


def own_node(content: BackupContent) -> Node:
    """The manager that made the backup."""
    for kept in content.records:
        if (kept.kind, kept.key) == ("node", content.node):
            return _read(kept, _node)
    raise InvalidParameter("this backup of a swarm is damaged: the node that made it is not in it")


def restored(content: BackupContent, address: str, port: int, data_path: str, now: int) -> list[Put]:
    """Return the records to write for a content in the form of today, that of the swarm last. InvalidParameter for
    records that cannot be read."""
    _ = own_node(content)
    found: list[Put] = []
    swarm: Put | None = None
    places: set[str] = set()
    services: list[Service] = []
    for kept in content.records:
        match kept.kind:
            case "swarm":
                swarm = _put(kept, _swarm(_read(kept, read_swarm)))
                continue
            case "node":
                node = _read(kept, _node)
                own = node.id == content.node
                made = _here(node, address, port, data_path, now) if own else _elsewhere(node, now)
                found.append(_put(kept, made))
            case "task":
                task = _read(kept, _task)
                found.append(_put(kept, _over(task, now) if task.node_id == content.node and task.alive else task))
            case "service":
                services.append(_read(kept, _service))
                found.append(_put(kept, services[-1]))
            case "address":
                place = _read(kept, _place)
                if place.node != content.node or place.kind == "service":
                    places.add(place.key)
                    found.append(_put(kept, place))
            case _:
                found.append(Put(kept.kind, kept.key, bytes(kept.body), NEW))
    if swarm is None:
        raise InvalidParameter("this backup of a swarm is damaged: the record of the swarm is not in it")
    found += _virtual(services, places, content.node)
    return [*found, swarm]


def of_today(content: BackupContent) -> BackupContent:
    """The records of a former release in the form of this one."""
    if content.schema == SCHEMA:
        return content
    try:
        records = [
            SavedRecord(kept.kind, kept.key, msgspec.Raw(migrated(kept.kind, bytes(kept.body), content.schema, STEPS)))
            for kept in content.records
        ]
    except UnreadableRecord as error:
        raise InvalidParameter(f"the records of this backup cannot be read: {error}") from None
    return msgspec.structs.replace(content, records=records, schema=SCHEMA)


def _swarm(swarm: Swarm) -> Swarm:
    """Managers that are lost have certificates of the former etcd: the next one has another CA."""
    return msgspec.structs.replace(swarm, store_root=None)


def _here(node: Node, address: str, port: int, data_path: str, now: int) -> Node:
    return msgspec.structs.replace(
        node,
        status=NodeStatus(state="ready", addr=address, since_ns=now),
        manager=manager_at(address, port),
        data_path=data_path,
        # The new host has others, and writes them down itself.
        tunnel_key="",
        tunnel_port=0,
        store_port=0,
    )


def _elsewhere(node: Node, now: int) -> Node:
    was = node.status
    if node.is_manager:
        spec = msgspec.structs.replace(node.spec, role="worker")
        lost = NodeStatus(state="down", addr=was.addr, message=LOST, since_ns=now)
        return msgspec.structs.replace(node, spec=spec, manager=None, status=lost)
    if was.state == "down":
        return node
    waited_for = NodeStatus(state="disconnected", addr=was.addr, message=WAITED_FOR, since_ns=now)
    return msgspec.structs.replace(node, status=waited_for)


def _over(task: Task, now: int) -> Task:
    """It ran on the host that is lost; whatever its service says of restarts, another takes its place."""
    status = msgspec.structs.replace(
        task.status, state="orphaned", message="its host was lost", timestamp=rfc3339(now), since_ns=now
    )
    desired = "remove" if task.desired_state == "remove" else "shutdown"
    return msgspec.structs.replace(task, status=status, desired_state=desired)


def _virtual(services: list[Service], places: set[str], node: str) -> Iterator[Put]:
    """Addresses of services of which no record told, since their swarm was one host: nobody else may get them."""
    for service in services:
        for virtual in service.virtual_ips:
            address = virtual.addr.partition("/")[0]
            key = key_of(virtual.network_id, address)
            if key not in places:
                places.add(key)
                mac = mac_address(ip_address(address))
                place = Place(network=virtual.network_id, address=address, node=node, kind="service", mac=mac)
                yield Put(ADDRESS, key, msgspec.json.encode(place), NEW)


def _put(kept: SavedRecord, record: Swarm | Node | Task | Service | Place) -> Put:
    return Put(kept.kind, kept.key, msgspec.json.encode(record), NEW)


def _read(kept: SavedRecord, read: Callable[[bytes], T]) -> T:
    try:
        return read(bytes(kept.body))
    except (MalformedDocument, HuskError) as error:
        raise InvalidParameter(
            f"this backup of a swarm is damaged: {kept.kind} {kept.key} cannot be read: {error}"
        ) from None


_node = reader(Node)
_task = reader(Task)
_service = reader(Service)
_place = reader(Place)
