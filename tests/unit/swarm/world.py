"""A swarm of nodes without hosts: records, planning and agents are real, containers and networks are doubles."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
from msgspec.structs import replace

from husk.engine.containers.create import CreatedContainer
from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL, Container
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.errors import NotFound
from husk.storage.state.store import StateStore
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    ContainerSpec,
    Mode,
    Replicated,
    Service,
    ServiceSpec,
    Task,
    TaskRestartPolicy,
    TaskSpec,
)
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.node.agent import Agent
from husk.swarm.node.assignments import LocalAssignments
from husk.swarm.node.runner import TaskRunner
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.support.but import but
from tests.unit.engine.records import container as made_of

GIB = 1 << 30


class FakeContainers:
    """Containers without processes. Their ends are for the test to decide."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.records: dict[str, Container] = {}
        self.removed: list[str] = []

    async def create(self, name: str, config: ContainerConfig, host_config: HostConfig, *_: object) -> CreatedContainer:
        record = made_of(name, config=config, host_config=host_config)
        self.records[record.id] = record
        return CreatedContainer(record, [])

    async def start(self, reference: str) -> None:
        there = self.find(reference)
        self.records[there.id] = but(there, state=replace(there.state, status="running"))
        self._tell("start", reference)

    async def stop(self, reference: str, *_: object) -> None:
        self.end(reference, 137)

    async def remove(self, reference: str, *_: object) -> None:
        record = self.find(reference)
        del self.records[record.id]
        self.removed.append(record.id)

    def find(self, reference: str) -> Container:
        for record in self.records.values():
            if reference in (record.id, record.name):
                return record
        raise NotFound(f"No such container: {reference}")

    def listing(self, *_: object) -> list[Container]:
        return [record for record in self.records.values() if TASK_LABEL in record.config.labels]

    def end(self, reference: str, code: int) -> None:
        there = self.find(reference)
        if there.state.running:
            self.records[there.id] = but(there, state=replace(there.state, status="exited", exit_code=code))
            self._tell("die", reference)

    def _tell(self, action: str, reference: str) -> None:
        record = self.find(reference)
        self._events.publish("container", action, record.id, {TASK_LABEL: record.config.labels[TASK_LABEL]})


class Host:
    """One node with its agent."""

    def __init__(self, world: "World", node_id: str) -> None:
        cluster = SimpleNamespace(node_id=node_id, node_facts=lambda: world.nodes[node_id], locked=False)
        self.containers = FakeContainers(world.events)
        assignments = LocalAssignments(
            world.store, cast(Cluster, cluster), AsyncMock(), lambda task: world.reconciler.noticed(task)
        )
        self.runner = TaskRunner(
            assignments=assignments,
            containers=cast(Containers, self.containers),
            images=Mock(),
            deliveries=AsyncMock(deliver=AsyncMock(return_value=[])),
        )
        self.agent = Agent(
            assignments=assignments,
            containers=cast(Containers, self.containers),
            runner=self.runner,
            reachable=world.reachable,
            events=world.events,
        )
        world.store.index.changed.subscribe(lambda task_id: self.agent.noticed(world.store.tasks.get(task_id)))

    async def close(self) -> None:
        await self.agent.close()
        await self.runner.close()


class World:
    """A swarm whose nodes all live in this process, each with an agent over the same records."""

    def __init__(self, state: StateStore, *nodes: NodeFacts) -> None:
        self.events = Events()
        self.store = SwarmRecords(SqliteStore(state))
        self.nodes = {node.id: node for node in nodes}
        self.cluster = SimpleNamespace(active=True, locked=False, record=SimpleNamespace(spec=SwarmSpec()))
        self.reachable = AsyncMock(return_value=True)
        self.looks = 0
        self.hosts = {node.id: Host(self, node.id) for node in nodes}
        self.reconciler = Reconciler(
            store=self.store,
            cluster=cast(Cluster, self.cluster),
            nodes=lambda: self.nodes,
            events=self.events,
            looked=self._looked,
        )

    @property
    def containers(self) -> FakeContainers:
        """Those of the first node."""
        return next(iter(self.hosts.values())).containers

    def start(self) -> None:
        self.reconciler.start()
        for host in self.hosts.values():
            host.agent.start()

    def _looked(self) -> None:
        self.looks += 1
        for host in self.hosts.values():
            host.agent.wake()

    async def close(self) -> None:
        await self.reconciler.close()
        for host in self.hosts.values():
            await host.close()

    async def quiet(self) -> None:
        """Let the reconciler come to an end with what it was woken for."""
        for _ in range(2):
            before = self.looks
            self.reconciler.wake("nobody")
            await self.until(lambda: self.looks > before, "it looks")  # noqa: B023

    def wake(self) -> None:
        """Let all look at everything."""
        self.reconciler.wake()
        for host in self.hosts.values():
            host.agent.wake_all()

    def change(self, node_id: str, **facts: Any) -> None:
        """A node is another one from now on."""
        self.nodes[node_id] = msgspec.structs.replace(self.nodes[node_id], **facts)
        self.reconciler.wake()

    def declare(self, replicas: int = 1, name: str = "web", **template: Any) -> Service:
        spec = ServiceSpec(
            name=name,
            mode=Mode(replicated=Replicated(replicas=replicas)),
            task_template=TaskSpec(
                container_spec=template.pop("container_spec", ContainerSpec(image="busybox")),
                restart_policy=TaskRestartPolicy(delay=0),
                **template,
            ),
        )
        service = Service(id=name, version=1, created_at="", updated_at="", spec=spec)
        self.store.services[name] = service
        self.reconciler.wake(name)
        return service

    def running(self, name: str = "web") -> list[Task]:
        return [task for task in self.tasks(name) if task.wanted and task.status.state == "running"]

    def tasks(self, name: str = "web") -> list[Task]:
        return [task for task in self.store.tasks.values() if task.service_id == name]

    async def until(self, condition: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition():
                    await asyncio.sleep(0.001)
        except TimeoutError:
            seen = [(task.slot, task.status.state, task.desired_state, task.status.err) for task in self.tasks()]
            raise AssertionError(f"waited in vain: {what}; tasks: {seen}") from None
