"""Operations on secrets and configs: values that tasks get as files, sealed wherever they are kept."""

import asyncio
import base64
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.errors import Conflict, InvalidParameter, NotImplementedYet
from husk.storage.secrets.sealing import Sealer
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.clocks import CLOCK
from husk.swarm.model.ids import check_object_name, new_id
from husk.swarm.model.services import ClusterObject, ContainerSpec, ObjectSpec, Service
from husk.swarm.state.records import OUT_OF_SEQUENCE, SwarmRecords, in_sequence, resolve

Kind = Literal["secret", "config"]
# The first size that is too much.
_LIMITS = {"secret": 500 * 1024, "config": 1000 * 1024}


class Objects:
    """All secrets, or all configs."""

    def __init__(self, kind: Kind, *, store: SwarmRecords, cluster: Cluster, sealer: Sealer, events: Events) -> None:
        self.kind = kind
        self._store = store
        self._cluster = cluster
        self._sealer = sealer
        self._events = events
        self._changing = asyncio.Lock()

    def find(self, reference: str) -> ClusterObject:
        return resolve(self._records(), self._names(), reference, self.kind)

    def listing(self, filters: Filters) -> list[ClusterObject]:
        return [record for record in self._records().values() if _matches(record, filters)]

    async def value(self, record: ClusterObject) -> bytes:
        return await asyncio.to_thread(self._sealer.unseal, record.sealed, record.context)

    async def create(self, spec: ObjectSpec) -> ClusterObject:
        _ = self._cluster.swarm
        check_object_name(spec.name)
        if spec.driver is not None and spec.driver.name:
            raise NotImplementedYet("secrets of external drivers are not implemented by Husk yet")
        if spec.templating is not None and spec.templating.name not in ("", "golang"):
            raise InvalidParameter(f"unrecognized templating driver {spec.templating.name!r}: only golang is known")
        value = _decoded(spec.data, self.kind)
        now = CLOCK.stamp()
        record = ClusterObject(
            id=new_id(),
            kind=self.kind,
            version=0,
            created_at=now,
            updated_at=now,
            name=spec.name,
            labels=spec.labels,
            sealed=b"",
            templating=spec.templating,
        )

        async def attempt() -> None:
            if spec.name in self._names():
                raise Conflict(f"rpc error: code = AlreadyExists desc = {self.kind} {spec.name} already exists")
            await self._store.save(record, alone=self.kind)

        async with self._changing:
            if spec.name not in self._names():
                sealed = await asyncio.to_thread(self._sealer.seal, value, record.context)
                record = msgspec.structs.replace(record, sealed=sealed)
            await self._store.retried(attempt)
        self._events.publish(self.kind, "create", record.id, {"name": record.name})
        return self._table().get(record.id, record)

    async def update(self, reference: str, version: int, spec: ObjectSpec) -> None:
        """Change the labels: nothing else of it ever changes."""
        record = self.find(reference)
        if version != record.version:
            raise InvalidParameter(OUT_OF_SEQUENCE)
        if spec.name != record.name or (spec.data and _decoded(spec.data, self.kind) != await self.value(record)):
            raise InvalidParameter("rpc error: code = InvalidArgument desc = only updates to Labels are allowed")
        with in_sequence():
            await self._store.save(msgspec.structs.replace(record, labels=spec.labels))
        self._events.publish(self.kind, "update", record.id, {"name": record.name})

    async def remove(self, reference: str) -> None:
        """Remove a record. Writers of services take the same guard: one in use stays, whoever asks at once."""
        record = await self._store.retried(lambda: self._remove(reference))
        self._events.publish(self.kind, "remove", record.id, {"name": record.name})

    async def _remove(self, reference: str) -> ClusterObject:
        record = self.find(reference)
        users = sorted(service.spec.name for service in self._store.services.values() if self._uses(service, record))
        if users:
            services = "service" if len(users) == 1 else "services"
            raise InvalidParameter(
                f"rpc error: code = InvalidArgument desc = {self.kind} '{record.name}' is in use by the following "
                f"{services}: {', '.join(users)}"
            )
        await self._store.delete(record, alone="service")
        return record

    async def clear(self) -> None:
        """The swarm is gone."""
        await self._store.delete(*self._table().values())

    def check_references(self, spec: ContainerSpec | None) -> None:
        """Raise if a service asks for what does not exist."""
        missing = [name for id, name in references(spec, self.kind) if id not in self._records()]
        if missing:
            what = self.kind if len(missing) == 1 else self.kind + "s"
            raise InvalidParameter(f"rpc error: code = InvalidArgument desc = {what} not found: {', '.join(missing)}")

    def _uses(self, service: Service, record: ClusterObject) -> bool:
        return any(id == record.id for id, _ in references(service.spec.task_template.container_spec, self.kind))

    def _records(self) -> dict[str, ClusterObject]:
        _ = self._cluster.swarm
        return self._table()

    def _table(self) -> dict[str, ClusterObject]:
        return self._store.secrets if self.kind == "secret" else self._store.configs

    def _names(self) -> dict[str, str]:
        return {record.name: record.id for record in self._records().values()}


def references(spec: ContainerSpec | None, kind: Kind) -> Iterable[tuple[str, str]]:
    """(id, name) of each secret or config that a template asks for."""
    if spec is None:
        return []
    if kind == "secret":
        return [(reference.secret_id, reference.secret_name) for reference in spec.secrets]
    return [(reference.config_id, reference.config_name) for reference in spec.configs]


def _decoded(text: str, kind: Kind) -> bytes:
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise InvalidParameter(f"the data of a {kind} must be in base64: {error}") from None
    if not 0 < len(value) < _LIMITS[kind]:
        raise InvalidParameter(
            f"rpc error: code = InvalidArgument desc = {kind} data must be larger than 0 and less than {_LIMITS[kind]} "
            "bytes"
        )
    return value


def _matches(record: ClusterObject, filters: Filters) -> bool:
    tests: dict[str, Callable[[str], bool]] = {
        "id": record.id.startswith,
        "name": record.name.startswith,
        "names": lambda value: value == record.name,
    }
    return filters.matches_labels(record.labels) and all(
        any(test(value) for value in filters.get(key)) for key, test in tests.items() if filters.get(key)
    )
