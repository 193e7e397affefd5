"""The reconciler with containers, networks and a store that are doubles: services come to what is declared."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from husk.engine.containers.create import Created
from husk.engine.containers.service import Containers
from husk.engine.model.container import TASK_LABEL, Container, Health
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.events import Events
from husk.engine.services.cluster import Cluster
from husk.engine.services.endpoints import Endpoints
from husk.engine.services.model import (
    Amount,
    ContainerSpec,
    FileTarget,
    Mode,
    Replicated,
    SecretReference,
    Service,
    ServiceSpec,
    Task,
    TaskResources,
    TaskRestartPolicy,
    TaskSpec,
)
from husk.engine.services.placement import NodeFacts
from husk.engine.services.reconciler import Reconciler
from husk.engine.services.runner import Runner
from husk.engine.services.settings import SwarmSpec
from husk.errors import NotFound
from tests.unit.engine.records import container as made_of

GIB = 1 << 30


class Store:
    """Records in memory."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.tasks: dict[str, Task] = {}
        self.secrets: dict[str, Any] = {}
        self.configs: dict[str, Any] = {}
        self.unreadable_services: frozenset[str] = frozenset()

    def next_version(self) -> int:
        return 1

    async def save(self, *records: Service | Task) -> None:
        for record in records:
            self._kind(record)[record.id] = record

    settle = save

    async def delete(self, *records: Service | Task) -> None:
        for record in records:
            self._kind(record).pop(record.id, None)

    def _kind(self, record: Service | Task) -> dict[str, Any]:
        return self.services if isinstance(record, Service) else self.tasks


class FakeContainers:
    """Containers without processes. Their ends are for the test to decide."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.records: dict[str, Container] = {}
        self.removed: list[str] = []

    async def create(self, name: str, config: ContainerConfig, host_config: HostConfig, *_: object) -> Created:
        record = made_of(name, config=config, host_config=host_config)
        self.records[record.id] = record
        return Created(record, [])

    async def start(self, reference: str) -> None:
        self.find(reference).state.status = "running"
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

    def end(self, reference: str, code: int) -> None:
        state = self.find(reference).state
        if state.running:
            state.status, state.exit_code = "exited", code
            self._tell("die", reference)

    def _tell(self, action: str, reference: str) -> None:
        record = self.find(reference)
        self._events.publish("container", action, record.id, {TASK_LABEL: record.config.labels[TASK_LABEL]})


class World:
    """A swarm of one node with everything that it needs."""

    def __init__(self) -> None:
        self.events = Events()
        self.store = Store()
        self.containers = FakeContainers(self.events)
        self.node = NodeFacts(id="n", hostname="alpha", nano_cpus=4 * 10**9, memory=4 * GIB)
        self.cluster = SimpleNamespace(
            active=True,
            locked=False,
            record=SimpleNamespace(spec=SwarmSpec()),
            node_id="n",
            node_facts=lambda: self.node,
        )
        self.settle = AsyncMock(return_value=True)
        self.runner = Runner(
            store=self.store,  # type: ignore[arg-type]
            containers=cast(Containers, self.containers),
            images=Mock(),
            deliveries=AsyncMock(deliver=AsyncMock(return_value=[])),
            credentials=AsyncMock(),
            wake=lambda: self.reconciler.wake(),
        )
        self.reconciler = Reconciler(
            store=self.store,  # type: ignore[arg-type]
            cluster=cast(Cluster, self.cluster),
            containers=cast(Containers, self.containers),
            runner=self.runner,
            endpoints=cast(Endpoints, SimpleNamespace(settle=self.settle)),
            events=self.events,
        )

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
        self.reconciler.wake()
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


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    world.reconciler.start()
    yield world
    await world.reconciler.close()
    await world.runner.close()


async def test_declared_tasks_run_each_in_its_slot(world: World) -> None:
    world.declare(3)
    await world.until(lambda: len(world.running()) == 3, "three run")
    assert sorted(task.slot or 0 for task in world.running()) == [1, 2, 3]
    assert len(world.containers.records) == 3


async def test_what_ends_is_replaced_in_its_slot(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    world.containers.end(first.status.container_id, 3)
    await world.until(lambda: world.running() and world.running()[0] is not first, "another runs")
    assert world.running()[0].slot == first.slot
    assert (first.status.state, first.status.err, first.status.exit_code) == ("failed", "task: non-zero exit (3)", 3)


async def test_a_container_that_somebody_removed_is_replaced(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    await world.containers.remove(first.status.container_id)
    world.reconciler.wake()
    await world.until(lambda: world.running() and world.running()[0] is not first, "another runs")
    assert first.status.err == f"No such container: {first.status.container_id}"


async def test_fewer_are_wanted(world: World) -> None:
    service = world.declare(3)
    await world.until(lambda: len(world.running()) == 3, "three run")
    service.spec.mode = Mode(replicated=Replicated(replicas=1))
    service.version = 2
    world.reconciler.wake()
    await world.until(lambda: [t.slot for t in world.tasks() if t.alive] == [1], "one is left, that of the first slot")


async def test_tasks_end_with_their_service(world: World) -> None:
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    del world.store.services["web"]
    world.reconciler.wake()
    await world.until(lambda: not world.store.tasks, "no task is left")
    assert not world.containers.records


async def test_tasks_of_a_service_whose_record_cannot_be_read_stay(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    world.store.unreadable_services = frozenset(["web"])
    del world.store.services["web"]
    world.settle.reset_mock()
    world.reconciler.wake()
    await world.until(lambda: world.settle.await_count, "everything was looked at")
    assert len(world.running()) == 1


async def test_a_container_of_a_task_that_is_history_is_stopped_again(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    world.containers.end(first.status.container_id, 1)
    await world.until(lambda: world.running() and world.running()[0] is not first, "another runs")
    await world.containers.start(first.status.container_id)
    await world.until(lambda: not world.containers.find(first.status.container_id).state.running, "it is stopped")


async def test_an_unhealthy_task_fails_and_is_replaced(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    world.containers.find(first.status.container_id).state.health = Health(status="unhealthy")
    world.reconciler.wake()
    await world.until(lambda: world.running() and world.running()[0] is not first, "another runs")
    assert "unhealthy container" in first.status.err


async def test_a_task_with_a_health_check_runs_when_it_is_healthy(world: World) -> None:
    start = world.containers.start

    async def start_unwell(reference: str) -> None:
        world.containers.find(reference).state.health = Health(status="starting")
        await start(reference)

    world.containers.start = start_unwell  # type: ignore[method-assign]
    world.declare(1)
    await world.until(lambda: [t for t in world.tasks() if t.status.state == "starting"], "it starts")
    (task,) = world.tasks()
    health = world.containers.find(task.status.container_id).state.health
    assert health is not None
    health.status = "healthy"
    world.reconciler.wake()
    await world.until(world.running, "it runs")


async def test_what_has_no_room_waits_for_it(world: World) -> None:
    wanted = TaskResources(reservations=Amount(memory_bytes=3 * GIB))
    world.declare(2, resources=wanted)
    await world.until(lambda: any("insufficient resources" in t.status.err for t in world.tasks()), "one is refused")
    await world.until(lambda: len(world.running()) == 1, "the other runs")
    world.node = NodeFacts(id="n", hostname="alpha", nano_cpus=4 * 10**9, memory=8 * GIB)
    world.reconciler.wake()
    await world.until(lambda: len(world.running()) == 2, "both run where there is room")


async def test_a_drained_node_has_no_tasks(world: World) -> None:
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    world.node = NodeFacts(id="n", hostname="alpha", availability="drain")
    world.reconciler.wake()
    await world.until(
        lambda: not any(record.state.running for record in world.containers.records.values()), "none runs"
    )


async def test_a_locked_swarm_starts_nothing_that_needs_a_secret(world: World) -> None:
    world.cluster.locked = True
    secret = SecretReference(secret_id="s1", secret_name="word", file=FileTarget(name="word"))
    world.declare(1, container_spec=ContainerSpec(image="busybox", secrets=[secret]))
    world.declare(1, name="plain")
    await world.until(lambda: world.running("plain"), "what needs none runs")
    await world.until(lambda: [t for t in world.tasks() if "the swarm is locked" in t.status.err], "the other is told")
    world.cluster.locked = False
    world.reconciler.wake()
    await world.until(world.running, "it runs when the swarm is unlocked")


async def test_the_loop_outlives_a_fault(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.settle.side_effect = RuntimeError("broken")
    world.declare(1)
    await world.until(lambda: "could not be reconciled" in caplog.text, "the fault is told")
    world.settle.side_effect = None
    await world.until(world.running, "it runs all the same")


async def test_only_events_of_tasks_wake_it(world: World) -> None:
    await world.until(lambda: world.settle.await_count, "the first look")
    await asyncio.sleep(0)
    world.settle.reset_mock()
    world.events.publish("container", "die", "c", {})
    world.events.publish("container", "exec_start", "c", {TASK_LABEL: "t"})
    assert not world.reconciler._woken.is_set()
    world.events.publish("container", "die", "c", {TASK_LABEL: "t"})
    await world.until(lambda: world.settle.await_count, "it looks")
