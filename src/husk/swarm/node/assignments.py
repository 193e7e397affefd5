"""The tasks that a node is given, and its reports on them: all that an agent knows of the rest of the swarm.

A manager's own agent has both from the records themselves (`LocalAssignments`). That of a worker has them over the
cluster port: see `dispatcher` for the manager's end and `remote_assignments` for the worker's.

Credentials that came with a service, sealed in its record: the pull for its next task may need them.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from husk.errors import HuskError
from husk.registry.auth import Credentials
from husk.storage.secrets.sealing import Sealer
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import Service, Task, TaskStatus, is_assigned, is_given
from husk.swarm.node.delivery import files_of
from husk.swarm.state.records import SwarmRecords
from husk.text.documents import decode

LOCKED = "the swarm is locked: its secrets and configs cannot be read (docker swarm unlock)"


class PullCredentials:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    async def keep(self, service: Service, credentials: Credentials | None) -> Service:
        """The service with these, for the caller to save; without new ones those that it has stay."""
        if not credentials:
            return service
        value = msgspec.json.encode(credentials)
        sealed = await asyncio.to_thread(self._sealer.seal, value, _context(service))
        return msgspec.structs.replace(service, credentials=sealed)

    async def of(self, service: Service) -> Credentials | None:
        """None where there are none, or none that can be read now: the registry then says what it misses."""
        if not service.credentials:
            return None
        try:
            value = await asyncio.to_thread(self._sealer.unseal, service.credentials, _context(service))
        except HuskError:
            return None
        return decode(value, Credentials)


class Assignments(Protocol):
    @property
    def node(self) -> NodeFacts:
        """The node itself."""
        ...

    def tasks(self) -> Iterable[Task]:
        """All that the node was given and that are not gone, the ended ones too."""
        ...

    def task(self, task_id: str) -> Task | None: ...

    def service(self, task: Task) -> Service | None:
        """Return the service that the task belongs to; None for one that is gone."""
        ...

    def obstacle(self, task: Task) -> str:
        """Return the reason why a task cannot have its secrets and configs now; empty if it can."""
        ...

    async def credentials(self, task: Task) -> Credentials | None:
        """For pulling its image."""
        ...

    async def report(self, task: Task, status: TaskStatus) -> None:
        """This has become of a task. It is in the task's record when this returns."""
        ...

    async def gone(self, task: Task) -> None:
        """Nothing is left of a task on this node."""
        ...


class LocalAssignments:
    """Those of a node that has the swarm's records itself."""

    def __init__(
        self,
        store: SwarmRecords,
        cluster: Cluster,
        credentials: PullCredentials,
        changed: Callable[[Task], None],
    ) -> None:
        """`changed` hears of a task that has another state, or is gone."""
        self._store = store
        self._cluster = cluster
        self._credentials = credentials
        self._changed = changed

    @property
    def node(self) -> NodeFacts:
        return self._cluster.node_facts()

    def tasks(self) -> Iterable[Task]:
        return [task for task in self._store.index.on_node(self._cluster.node_id) if is_assigned(task)]

    def task(self, task_id: str) -> Task | None:
        task = self._store.tasks.get(task_id)
        return task if is_given(task, self._cluster.node_id) else None

    def service(self, task: Task) -> Service | None:
        return self._store.services.get(task.service_id)

    def obstacle(self, task: Task) -> str:
        return LOCKED if self._cluster.locked and files_of(task.spec.container_spec) else ""

    async def credentials(self, task: Task) -> Credentials | None:
        service = self._store.services.get(task.service_id)
        return None if service is None else await self._credentials.of(service)

    async def report(self, task: Task, status: TaskStatus) -> None:
        await self._store.amend(task, lambda record: msgspec.structs.replace(record, status=status))
        self._changed(self._store.tasks.get(task.id, task))

    async def gone(self, task: Task) -> None:
        await self._store.delete(task)
        self._changed(task)


def _context(service: Service) -> str:
    return f"credentials of service {service.id}"
