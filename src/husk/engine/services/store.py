"""The cluster store, where declared state lives: records by kind and id, with one version counter over all.

`ClusterStore` is what the reconciler and the edge work with; `EmbeddedStore` keeps it in the engine's own SQLite file.
A store on several hosts would be another implementation of the same few methods.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.services.model import ClusterObject, Service, Task
from husk.errors import DiskFault, InvalidParameter, NotFound
from husk.storage.state.store import Change, StateStore

T = TypeVar("T")
Record = Service | Task | ClusterObject


class ClusterStore(Protocol):
    """Records of the cluster; a write is durable when it returns, that of a task soon after."""

    services: dict[str, Service]
    tasks: dict[str, Task]
    secrets: dict[str, ClusterObject]
    configs: dict[str, ClusterObject]

    @property
    def unreadable_services(self) -> frozenset[str]:
        """The ids of services whose records cannot be read: their tasks stay as they are."""
        ...

    def next_version(self) -> int: ...

    async def save(self, *records: Record) -> None: ...

    async def settle(self, *records: Record) -> None: ...

    async def delete(self, *records: Record) -> None: ...


class EmbeddedStore:
    def __init__(self, state: StateStore) -> None:
        self._state = state
        self.services: dict[str, Service] = state.records("service", Service)
        self.tasks: dict[str, Task] = state.records("task", Task)
        self.secrets: dict[str, ClusterObject] = state.records("secret", ClusterObject)
        self.configs: dict[str, ClusterObject] = state.records("config", ClusterObject)
        records: list[Record] = [*self.services.values(), *self.tasks.values()]
        records += [*self.secrets.values(), *self.configs.values()]
        self._version = max([10, *(record.version for record in records)])

    @property
    def unreadable_services(self) -> frozenset[str]:
        return self._state.aside("service")

    def next_version(self) -> int:
        self._version += 1
        return self._version

    async def save(self, *records: Record) -> None:
        """Write records with a new version each; in memory they count from now, on disk when this returns.

        What is new and cannot be written is not there.
        """
        fresh = [record for record in records if not self._known(record)]
        changes = self._take_in(records)
        try:
            await self._state.commit(*changes, lazy=_only_tasks(records))
        except DiskFault:
            for record in fresh:
                self._drop(record)
            raise

    async def settle(self, *records: Record) -> None:
        """The same for what has happened already, which a full disk cannot refuse."""
        await self._state.settle(*self._take_in(records), lazy=_only_tasks(records))

    def _take_in(self, records: Sequence[Record]) -> list[Change]:
        stamp = rfc3339(now_ns())
        for record in records:
            record.version, record.updated_at = self.next_version(), stamp
            match record:
                case Service():
                    self.services[record.id] = record
                case Task():
                    self.tasks[record.id] = record
                case ClusterObject():
                    self._objects(record)[record.id] = record
        return [Change(_kind(record), record.id, msgspec.json.encode(record)) for record in records]

    async def delete(self, *records: Record) -> None:
        for record in records:
            self._drop(record)
        await self._state.settle(*(Change(_kind(r), r.id, None) for r in records), lazy=_only_tasks(records))

    def _drop(self, record: Record) -> None:
        match record:
            case Service():
                self.services.pop(record.id, None)
            case Task():
                self.tasks.pop(record.id, None)
            case ClusterObject():
                self._objects(record).pop(record.id, None)

    def _known(self, record: Record) -> bool:
        match record:
            case Service():
                return record.id in self.services
            case Task():
                return record.id in self.tasks
            case ClusterObject():
                return record.id in self._objects(record)

    def _objects(self, record: ClusterObject) -> dict[str, ClusterObject]:
        return self.secrets if record.kind == "secret" else self.configs


def _only_tasks(records: tuple[Record, ...]) -> bool:
    """Nobody declared those: were they lost in a power cut, the reconciler would make others."""
    return all(isinstance(record, Task) for record in records)


def _kind(record: Record) -> str:
    if isinstance(record, ClusterObject):
        return record.kind
    return "service" if isinstance(record, Service) else "task"


def resolve(records: dict[str, T], names: dict[str, str], reference: str, kind: str) -> T:
    """By id, by name, by unique leading part of an id: the order of all of Docker's lookups. `names`: name → id."""
    if reference in records:
        return records[reference]
    if reference in names:
        return records[names[reference]]
    matches = [key for key in records if reference and key.startswith(reference)]
    if len(matches) > 1:
        raise InvalidParameter(f"{kind} {reference} is ambiguous ({len(matches)} matches found)")
    if not matches:
        raise NotFound(f"{kind} {reference} not found")
    return records[matches[0]]
