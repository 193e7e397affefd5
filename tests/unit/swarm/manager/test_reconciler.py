"""The reconciler and agents on doubles of containers and networks: services come to what is declared."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from husk.errors import DiskFault, HuskError, InvalidParameter, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager import reconciler
from husk.swarm.manager.planner import planning
from husk.swarm.model.clocks import CLOCK
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import (
    SECOND,
    Amount,
    ContainerSpec,
    FileTarget,
    Mode,
    Replicated,
    SecretReference,
    Service,
    TaskResources,
    UpdateConfig,
    UpdateStatus,
)
from husk.swarm.state.records import UnreadableRecords
from husk.swarm.state.transactions import Check, ClusterRecord, News, Put, Step, StoreUnavailable
from tests.support.but import but
from tests.unit.swarm.world import GIB, World


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
    world.store.services[service.id] = but(service, version=2)
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
    world.store.unreadable = UnreadableRecords([("service", "web")])
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
    name, whole = ("task", known.id), ClusterRecord("task", known.id, msgspec.json.encode(known), 10**6 + 1)
    world.store.take_in(News(10**6, False, (ClusterRecord(*name, body, 10**6),)))
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
    three.change("a", state="down", lost_ns=CLOCK.now())
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
    await three.until(lambda: not three.store.tasks[task.id].alive, "its end is seen")
    await three.until(lambda: len(three.running(task.service_id)) == 3, "another runs")
    assert set(looked_at) == {task.service_id}


async def test_a_service_that_waits_for_room_gets_it_when_another_task_ends(world: World) -> None:
    wanted = TaskResources(reservations=Amount(memory_bytes=3 * GIB))
    first = world.declare(1, name="first", resources=wanted)
    await world.until(lambda: world.running("first"), "it runs")
    world.declare(1, resources=wanted)
    await world.until(lambda: [t for t in world.tasks() if "insufficient" in t.status.err], "the other waits")
    first.spec.mode = Mode(replicated=Replicated(replicas=0))
    first = but(first, version=2)
    world.reconciler.wake("first")
    await world.until(world.running, "it has room")


def refuse(world: World, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[bytes], bool], error: HuskError) -> None:
    """A store that does not take some records."""
    commit = world.store.store.commit

    async def choosy(*steps: Step, **options: Any) -> int:
        if any(isinstance(step, Put) and wrong(step.body) for step in steps):
            raise error
        return await commit(*steps, **options)

    monkeypatch.setattr(world.store.store, "commit", choosy)


async def test_a_service_that_cannot_be_written_stops_no_other_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    large = InvalidParameter("etcd cannot do that: request is too large")
    refuse(world, monkeypatch, lambda body: b"LARGE=" in body, large)
    world.declare(3, name="first", container_spec=ContainerSpec(image="busybox", env=["LARGE=x"]))
    world.declare(2)
    await world.until(lambda: len(world.running()) == 2, "the one behind it runs")
    await world.until(lambda: world.tasks("first"), "people are told")
    (told,) = world.tasks("first")
    assert (told.status.state, told.status.err) == ("rejected", large.message)
    for _ in range(3):
        world.reconciler.wake("first")
        await world.quiet()
    assert [task.id for task in world.tasks("first")] == [told.id], "once"
    assert len([record for record in caplog.records if "first" in record.message]) == 1
    known = world.store.services["first"]
    plain = but(known.spec.task_template, container_spec=ContainerSpec(image="busybox"))
    world.store.services["first"] = but(known, spec__task_template=plain, spec_version=2)
    world.reconciler.wake("first")
    await world.until(lambda: len(world.running("first")) == 3, "what can be written runs")


async def test_a_fault_of_ours_in_one_service_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def odd(service: Service, *rest: Any, **options: Any) -> Any:
        if service.id == "first":
            raise KeyError("nobody has thought of that")
        return planning(service, *rest, **options)

    monkeypatch.setattr(reconciler, "planning", odd)
    world.declare(1, name="first")
    world.declare(1)
    await world.until(world.running, "the one behind it runs")
    await world.until(lambda: world.tasks("first"), "people are told")
    assert "nobody has thought of that" in world.tasks("first")[0].status.err


async def test_while_the_store_is_away_nothing_is_said_of_any_service(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [StoreUnavailable("no member answers")]

    def refused(body: bytes) -> bool:
        return bool(away)

    refuse(world, monkeypatch, refused, away[0])
    world.declare(1)
    world.declare(1, name="other")
    await asyncio.sleep(0)
    away.clear()
    await world.until(lambda: world.running() and world.running("other"), "both run")
    assert len(world.tasks()) == len(world.tasks("other")) == 1


async def test_nothing_is_planned_before_memory_knows_what_others_have_planned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager that planned before has given the slot a task, of which this one has not heard yet."""
    behind, asked = [Unavailable("this manager has not heard yet what the others have written")], [0]

    async def catch_up() -> None:
        asked[0] += 1
        if behind:
            raise behind[0]

    async def lead() -> SimpleNamespace:
        version = await world.store.store.commit(Put("leader", "planner", b"{}"))
        return SimpleNamespace(leading=True, leader="a", checks=(Check("leader", "planner", version),))

    monkeypatch.setattr(world.store, "catch_up", catch_up)
    monkeypatch.setattr(reconciler, "RETRY_NS", 10**6)
    world.store.leadership = await lead()
    world.declare(1)
    await world.until(lambda: asked[0] > 1, "it asks again")
    assert not world.tasks()
    behind.clear()
    await world.until(world.running, "it plans")
    once = asked[0]
    world.declare(1, name="other")
    await world.until(lambda: world.running("other"), "it goes on planning")
    assert asked[0] == once
    # Somebody else may have planned meanwhile.
    world.store.leadership = await lead()
    world.declare(1, name="third")
    await world.until(lambda: world.running("third"), "it plans again")
    assert asked[0] == once + 1


async def test_a_verdict_that_cannot_be_written_is_come_to_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that nobody wrote down must not end as a completed update to what was to be rolled back."""
    service = world.declare(1)
    await world.until(world.running, "it runs")
    refused = list[bytes]()

    def verdict(body: bytes) -> bool:
        found = b"rollback_started" in body and len(refused) < 2
        refused.extend([body] if found else [])
        return found

    refuse(world, monkeypatch, verdict, DiskFault("no space left on device"))
    bad = but(service.spec, task_template__container_spec=ContainerSpec(image="bad"))
    bad = but(bad, update_config=UpdateConfig(parallelism=1, failure_action="rollback"))
    updated = but(
        service,
        version=0,
        spec=bad,
        spec_version=2,
        spec_versions=2,
        previous_spec=service.spec,
        previous_spec_version=1,
        update_status=UpdateStatus(state="updating", started_at=CLOCK.stamp()),
        update_began_ns=CLOCK.now(),
    )
    await world.store.save(updated)
    world.reconciler.wake("web")
    await world.until(lambda: any(task.spec_version == 2 for task in world.running()), "the new one runs")
    (new,) = world.running()
    world.containers.end(new.status.container_id, 1)
    await world.until(lambda: len(refused) == 2, "what it has come to could not be written twice")
    states = {"updating", "rollback_started", "rollback_completed"}
    now = world.store.services["web"]
    assert now.update_status is not None and now.update_status.state in states
    await world.until(lambda: world.store.services["web"].spec == service.spec, "it is rolled back")


async def test_an_hour_back_delays_no_restart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3600 * SECOND)
    for _ in range(2):
        (first,) = world.running()
        world.containers.end(first.status.container_id, 1)
        await world.until(lambda: [task for task in world.running() if task.id != first.id], "another runs")  # noqa: B023
    numbers = [task.number for task in world.tasks()]
    assert sorted(numbers) == [1, 2, 3] and world.running()[0].number == 3
