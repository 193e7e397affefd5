"""The records of services, tasks, secrets and configs in memory, and their way into the cluster store."""

from typing import Self, TypeVar

import msgspec

from husk.cluster.records import Delete, Put
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.services.cluster_store import ClusterStore
from husk.engine.services.embedded import EmbeddedStore
from husk.engine.services.model import ClusterObject, Service, Task
from husk.errors import HuskError, InvalidParameter, NotFound

T = TypeVar("T")
SwarmRecord = Service | Task | ClusterObject


class SwarmRecords:
    """What the reconciler and the edge work with. A write is durable when it returns, that of a task soon after."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self.services: dict[str, Service] = {}
        self.tasks: dict[str, Task] = {}
        self.secrets: dict[str, ClusterObject] = {}
        self.configs: dict[str, ClusterObject] = {}
        # The ids of services whose records cannot be read: their tasks stay as they are.
        self.unreadable_services: frozenset[str] = frozenset()

    @classmethod
    def load(cls, store: EmbeddedStore) -> Self:
        """What one host has, as the last daemon left it. Blocks."""
        made = cls(store)
        made.services = store.load("service", msgspec.json.Decoder(Service).decode)
        made.tasks = store.load("task", msgspec.json.Decoder(Task).decode)
        made.secrets = store.load("secret", msgspec.json.Decoder(ClusterObject).decode)
        made.configs = store.load("config", msgspec.json.Decoder(ClusterObject).decode)
        made.unreadable_services = store.unreadable("service")
        return made

    async def save(self, *records: SwarmRecord) -> None:
        """Write records with a new version; in memory they count when the store has taken them.

        What is new and cannot be written is not there.
        """
        await self._write(records, happened=False)

    async def settle(self, *records: SwarmRecord) -> None:
        """The same for what has happened already, which a full disk cannot refuse."""
        await self._write(records, happened=True)

    async def delete(self, *records: SwarmRecord) -> None:
        for record in records:
            self._drop(record)
        if records:
            steps = [Delete(_kind(record), record.id) for record in records]
            await self._store.commit(*steps, happened=True, lazy=_only_tasks(records))

    async def _write(self, records: tuple[SwarmRecord, ...], *, happened: bool) -> None:
        stamp = rfc3339(now_ns())
        before = [record.version for record in records]
        fresh = [record for record in records if not self._known(record)]
        for record in records:
            record.updated_at = stamp
        steps = [Put(_kind(record), record.id, msgspec.json.encode(record), record.version) for record in records]
        taken = 0

        def applied(revision: int) -> None:
            nonlocal taken
            taken = revision
            for record in records:
                record.version = revision
                self._keep(record)

        try:
            await self._store.commit(*steps, applied=applied, happened=happened, lazy=_only_tasks(records))
        except HuskError:
            for record, version in zip(records, before, strict=True):
                # Unless somebody has written it once more meanwhile.
                record.version = version if record.version == taken else record.version
            for record in fresh:
                self._drop(record)
            raise

    def _keep(self, record: SwarmRecord) -> None:
        match record:
            case Service():
                self.services[record.id] = record
            case Task():
                self.tasks[record.id] = record
            case ClusterObject():
                self._objects(record)[record.id] = record

    def _drop(self, record: SwarmRecord) -> None:
        match record:
            case Service():
                self.services.pop(record.id, None)
            case Task():
                self.tasks.pop(record.id, None)
            case ClusterObject():
                self._objects(record).pop(record.id, None)

    def _known(self, record: SwarmRecord) -> bool:
        match record:
            case Service():
                return record.id in self.services
            case Task():
                return record.id in self.tasks
            case ClusterObject():
                return record.id in self._objects(record)

    def _objects(self, record: ClusterObject) -> dict[str, ClusterObject]:
        return self.secrets if record.kind == "secret" else self.configs


def _only_tasks(records: tuple[SwarmRecord, ...]) -> bool:
    """Nobody declared those: were they lost in a power cut, the reconciler would make others."""
    return all(isinstance(record, Task) for record in records)


def _kind(record: SwarmRecord) -> str:
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
