"""The reconciler and agents on doubles of containers and networks: services come to what is declared."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from husk.cluster.records import News, Record
from husk.engine.model.clock import now_ns
from husk.engine.services import reconciler
from husk.engine.services.model import (
    Amount,
    ContainerSpec,
    FileTarget,
    Mode,
    Replicated,
    SecretReference,
    Service,
    TaskResources,
)
from husk.engine.services.placement import NodeFacts
from husk.engine.services.planner import planning
from husk.engine.services.unreadable import Unreadable
from husk.storage.state.store import StateStore

from .world import GIB, World


@pytest.fixture
async def three(state: StateStore) -> AsyncIterator[World]:
    """A swarm of three nodes in this process."""
    made = World(state, *(NodeFacts(id=id, hostname=id, nano_cpus=10**10, memory=GIB) for id in "abc"))
    made.start()
    yield made
    await made.close()


async def test_declared_tasks_run_each_in_its_slot(world: World) -> None:
    world.declare(3)
    await world.until(lambda: len(world.running()) == 3, "three run")
    assert sorted(task.slot or 0 for task in world.running()) == [1, 2, 3]
    assert len(world.containers.records) == 3


async def test_fewer_are_wanted(world: World) -> None:
    service = world.declare(3)
    await world.until(lambda: len(world.running()) == 3, "three run")
    service.spec.mode = Mode(replicated=Replicated(replicas=1))
    service.version = 2
    world.wake()
    await world.until(lambda: [t.slot for t in world.tasks() if t.alive] == [1], "one is left, that of the first slot")


async def test_tasks_end_with_their_service(world: World) -> None:
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    del world.store.services["web"]
    world.wake()
    await world.until(lambda: not world.store.tasks, "no task is left")
    assert not world.containers.records


async def test_tasks_of_a_service_whose_record_cannot_be_read_stay(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    world.store.unreadable = Unreadable([("service", "web")])
    del world.store.services["web"]
    world.reachable.reset_mock()
    world.wake()
    await world.until(lambda: world.reachable.await_count, "everything was looked at")
    assert len(world.running()) == 1


async def test_a_service_stays_as_it_is_while_one_of_its_tasks_cannot_be_read(world: World) -> None:
    """A newer release says of a task what is not known here: it may be running, so none takes its place."""
    world.declare(1)
    await world.until(world.running, "it runs")
    (known,) = world.tasks()
    body = msgspec.json.encode(known).replace(b'"state":"running"', b'"state":"hibernating"')
    name, whole = ("task", known.id), Record("task", known.id, msgspec.json.encode(known), 10**6 + 1)
    world.store.take_in(News(10**6, False, (Record(*name, body, 10**6),)))
    del world.store.tasks[known.id]  # as a daemon that starts would find it
    world.store.index.drop(known)
    world.reachable.reset_mock()
    world.wake()
    await world.until(lambda: world.reachable.await_count, "everything was looked at")
    assert not world.tasks()
    world.store.take_in(News(10**6 + 1, False, (whole,)))
    world.wake()
    await world.until(world.running, "it is known again")
    assert [task.id for task in world.tasks()] == [known.id]


async def test_what_has_no_room_waits_for_it(world: World) -> None:
    wanted = TaskResources(reservations=Amount(memory_bytes=3 * GIB))
    world.declare(2, resources=wanted)
    await world.until(lambda: any("insufficient resources" in t.status.err for t in world.tasks()), "one is refused")
    await world.until(lambda: len(world.running()) == 1, "the other runs")
    world.change("n", memory=8 * GIB)
    await world.until(lambda: len(world.running()) == 2, "both run where there is room")


async def test_a_drained_node_has_no_tasks(world: World) -> None:
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "both run")
    world.change("n", availability="drain")
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
    world.wake()
    await world.until(world.running, "it runs when the swarm is unlocked")


def homes(world: World) -> Counter[str]:
    return Counter(task.node_id for task in world.running())


async def test_each_node_runs_what_it_is_given(three: World) -> None:
    three.declare(6)
    await three.until(lambda: len(three.running()) == 6, "six run")
    assert homes(three) == {"a": 2, "b": 2, "c": 2}
    assert [len(host.containers.records) for host in three.hosts.values()] == [2, 2, 2]


async def test_a_drained_node_gives_its_tasks_to_others(three: World) -> None:
    three.declare(6)
    await three.until(lambda: len(three.running()) == 6, "six run")
    three.change("a", availability="drain")
    await three.until(lambda: homes(three) == {"b": 3, "c": 3}, "they have moved")
    assert not [record for record in three.hosts["a"].containers.records.values() if record.state.running]


async def test_tasks_of_a_lost_node_run_elsewhere_and_end_first_when_it_returns(three: World) -> None:
    three.declare(3)
    await three.until(lambda: len(three.running()) == 3, "three run")
    host = three.hosts["a"]
    await host.close()
    three.change("a", state="down", lost_ns=now_ns())
    await three.until(lambda: homes(three).total() == 3 and "a" not in homes(three), "three run again, elsewhere")
    assert [record.state.running for record in host.containers.records.values()] == [True], "nobody can tell it"
    three.change("a", state="ready")
    host.agent.start()
    await three.until(lambda: not any(r.state.running for r in host.containers.records.values()), "the old one ends")
    assert len(three.running()) == 3


async def test_a_changed_service_touches_only_its_own(three: World, monkeypatch: pytest.MonkeyPatch) -> None:
    three.declare(3)
    three.declare(3, name="other")
    await three.until(lambda: len(three.running()) == 3 and len(three.running("other")) == 3, "all run")
    await three.quiet()
    looked_at: list[str] = []

    def noted(service: Service, *rest: Any, **options: Any) -> Any:
        looked_at.append(service.id)
        return planning(service, *rest, **options)

    monkeypatch.setattr(reconciler, "planning", noted)
    task = three.store.index.on_node("a")[0]
    three.containers.end(task.status.container_id, 1)
    await three.until(lambda: not task.alive, "its end is seen")
    await three.until(lambda: len(three.running(task.service_id)) == 3, "another runs")
    assert set(looked_at) == {task.service_id}


async def test_a_service_that_waits_for_room_gets_it_when_another_task_ends(world: World) -> None:
    wanted = TaskResources(reservations=Amount(memory_bytes=3 * GIB))
    first = world.declare(1, name="first", resources=wanted)
    await world.until(lambda: world.running("first"), "it runs")
    world.declare(1, resources=wanted)
    await world.until(lambda: [t for t in world.tasks() if "insufficient" in t.status.err], "the other waits")
    first.spec.mode = Mode(replicated=Replicated(replicas=0))
    first.version = 2
    world.reconciler.wake("first")
    await world.until(world.running, "it has room")
