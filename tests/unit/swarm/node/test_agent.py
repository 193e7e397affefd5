"""The agent of a node: tasks run as it is told, and what becomes of their containers is told to the swarm."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from husk.engine.model.container import TASK_LABEL, Health
from husk.errors import InvalidParameter
from tests.support.but import but
from tests.unit.swarm.world import World


async def test_what_ends_is_replaced_in_its_slot(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    world.containers.end(first.status.container_id, 3)
    await world.until(lambda: world.running() and world.running()[0].id != first.id, "another runs")
    assert world.running()[0].slot == first.slot
    first = world.store.tasks[first.id]
    assert (first.status.state, first.status.err, first.status.exit_code) == ("failed", "task: non-zero exit (3)", 3)


async def test_a_container_that_somebody_removed_is_replaced(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    await world.containers.remove(first.status.container_id)
    world.wake()
    await world.until(lambda: world.running() and world.running()[0].id != first.id, "another runs")
    first = world.store.tasks[first.id]
    assert first.status.err == f"No such container: {first.status.container_id}"


@pytest.mark.parametrize("known", [True, False], ids=["its id is known", "a crash left it without an id"])
async def test_a_container_of_a_task_that_is_history_is_stopped_again(world: World, known: bool) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    world.containers.end(first.status.container_id, 1)
    await world.until(lambda: world.running() and world.running()[0].id != first.id, "another runs")
    container = world.containers.find(first.status.container_id)
    if not known:
        world.store.learn(but(world.store.tasks[first.id], status__container_id=""))
    await world.containers.start(container.id)
    await world.until(lambda: not container.state.running, "it is stopped")


async def test_an_unhealthy_task_fails_and_is_replaced(world: World) -> None:
    world.declare(1)
    await world.until(world.running, "it runs")
    (first,) = world.running()
    there = world.containers.find(first.status.container_id)
    state = replace(there.state, health=Health(status="unhealthy"))
    world.containers.records[there.id] = but(there, state=state)
    world.wake()
    await world.until(lambda: world.running() and world.running()[0].id != first.id, "another runs")
    assert "unhealthy container" in world.store.tasks[first.id].status.err


async def test_a_task_with_a_health_check_runs_when_it_is_healthy(world: World) -> None:
    start = world.containers.start

    async def start_unwell(reference: str) -> None:
        there = world.containers.find(reference)
        state = replace(there.state, health=Health(status="starting"))
        world.containers.records[there.id] = but(there, state=state)
        await start(reference)

    world.containers.start = start_unwell  # type: ignore[method-assign]
    world.declare(1)
    await world.until(lambda: [c for c in world.containers.records.values() if c.state.running], "it starts")
    (container,) = world.containers.records.values()
    assert not world.running() and container.state.health is not None
    state = replace(container.state, health=Health(status="healthy"))
    world.containers.records[container.id] = but(container, state=state)
    world.wake()
    await world.until(world.running, "it runs")


async def test_the_loop_outlives_a_fault(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.reachable.side_effect = RuntimeError("broken")
    world.declare(1)
    await world.until(lambda: "could not be looked at" in caplog.text, "the fault is told")
    world.reachable.side_effect = None
    await world.until(world.running, "it runs all the same")


async def test_only_events_of_tasks_wake_it(world: World) -> None:
    await world.until(lambda: world.reachable.await_count, "the first look")
    await asyncio.sleep(0)
    world.reachable.reset_mock()
    world.events.publish("container", "die", "c", {})
    world.events.publish("container", "exec_start", "c", {TASK_LABEL: "t"})
    assert not world.hosts["n"].agent._woken.is_set()
    world.events.publish("container", "die", "c", {TASK_LABEL: "t"})
    await world.until(lambda: world.reachable.await_count, "it looks")


async def test_a_task_that_cannot_be_written_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Say one whose record would be larger than etcd takes."""
    world.declare(1, name="large")
    world.declare(1)
    await world.until(lambda: world.running("large") and world.running(), "both run")
    (stuck,), (other,) = world.running("large"), world.running()
    amend = world.store.amend

    async def refused(task: Any, *arguments: Any) -> bool:
        if task.id == stuck.id:
            raise InvalidParameter("etcd cannot do that: request is too large")
        return await amend(task, *arguments)

    monkeypatch.setattr(world.store, "amend", refused)
    for task in (stuck, other):
        world.containers.end(task.status.container_id, 1)
    world.hosts["n"].agent.wake(stuck.id, other.id)
    looks = world.reachable.await_count
    await world.until(lambda: world.running() and world.running()[0].id != other.id, "the other one is replaced")
    assert world.reachable.await_count > looks, "others are led to what runs"
    assert "request is too large" in caplog.text and world.store.tasks[stuck.id].status.state == "running"
    monkeypatch.undo()
    await world.until(lambda: world.store.tasks[stuck.id].status.state == "failed", "it is tried again")
