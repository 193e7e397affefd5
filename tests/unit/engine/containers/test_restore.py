"""Containers that another daemon left, and what a new one does about them, on a host that is only played."""

import pytest
from msgspec.structs import replace

from husk.engine.containers.index import Instance
from husk.engine.model.container import Container
from husk.engine.model.container_config import HostConfig, RestartPolicy
from tests.support.but import but
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container


def only(room: Room) -> Instance:
    (instance,) = room.index
    return instance


async def left_running(room: Room, record: Container) -> Room:
    await room.started(record)
    return await room.crashed()


async def test_what_runs_is_taken_over_and_its_end_is_seen(room: Room) -> None:
    after = await left_running(room, container())
    await after.restorer.restore()
    instance = only(after)
    assert instance.record.state.status == "running" and after.told.heard == ["running"]
    assert after.actions == []
    await after.ended(instance, 4)
    assert instance.record.state.exit_code == 4 and after.host.held == set()


async def test_what_ended_meanwhile_is_recorded_with_its_own_time(room: Room) -> None:
    instance = await room.started(container())
    after = await room.crashed()
    after.host.monitor.ended_at[instance.id] = 10**18
    after.host.end(only(after), 5)
    await after.restorer.restore()
    state = only(after).record.state
    assert (state.status, state.exit_code, state.finished_at) == ("exited", 5, "2001-09-09T01:46:40.000000000Z")
    assert after.host.held == set()


async def test_a_pid_that_means_another_process_by_now_is_not_taken_over(room: Room) -> None:
    after = await left_running(room, container())
    there = only(after)
    there.believe(but(there.record, monitor_started=there.record.monitor_started + 1))
    after.host.monitor.exits[only(after).id] = 0
    await after.restorer.restore()
    assert only(after).record.state.status == "exited"


async def test_a_pause_for_a_commit_that_nobody_finishes_ends(room: Room) -> None:
    instance = await room.started(container())
    await room.pauser.pause(instance, for_commit=True)
    after = await room.crashed()
    await after.restorer.restore()
    assert only(after).record.state.status == "running"
    assert after.host.runtimes.runtime.done[-1] == ("resume", instance.id)


async def test_a_pause_of_the_users_stays(room: Room) -> None:
    instance = await room.started(container())
    await room.pauser.pause(instance)
    after = await room.crashed()
    await after.restorer.restore()
    assert only(after).record.state.status == "paused"


async def test_a_removal_that_was_cut_off_is_finished(room: Room) -> None:
    instance = await room.add(container())
    instance.believe(but(instance.record, state=replace(instance.record.state, status="removing")))
    await room.index.save(instance, instance.record)
    after = await room.crashed()
    await after.restorer.restore()
    assert list(after.index) == [] and after.actions == ["destroy"]


async def test_an_ended_container_that_removes_itself_does_so_now(room: Room) -> None:
    instance = await room.started(container(host_config=HostConfig(auto_remove=True)))
    with instance.kept():
        await room.ended(instance, 0)
    after = await room.crashed()
    await after.restorer.restore()
    assert list(after.index) == []


@pytest.mark.parametrize(
    ("policy", "stopped", "again"),
    [
        ("no", False, False),
        ("always", False, True),
        ("always", True, True),
        ("unless-stopped", False, True),
        ("unless-stopped", True, False),
    ],
)
async def test_policies_count_for_what_ended_while_no_daemon_ran(
    room: Room, policy: str, stopped: bool, again: bool
) -> None:
    instance = await room.started(container(host_config=HostConfig(restart_policy=RestartPolicy(name=policy))))
    instance.believe(but(instance.record, has_been_manually_stopped=stopped))
    instance.believe(but(instance.record, state=replace(instance.record.state, status="exited")))
    await room.index.save(instance, instance.record)
    room.host.end(instance, 0)
    after = await room.crashed()
    await after.restorer.restore()
    if again:
        await until_async(lambda: only(after).record.state.status == "running", "the next run")
    else:
        assert only(after).pending_restart is None and only(after).record.state.status == "exited"


async def test_what_belongs_to_nobody_is_released_and_what_is_known_stays(room: Room) -> None:
    instance = await room.add(container())
    for ids in room.host.leftovers.there.values():
        ids |= {instance.id, "stranger"}
    await room.restorer.restore()
    await room.tasks.join()
    assert all(ids == {instance.id} for ids in room.host.leftovers.there.values())
    assert ("delete", "stranger") in room.host.runtimes.runtime.done
    assert room.host.leftovers.cleared == ["stranger"]


async def test_a_start_that_was_cut_off_does_not_go_on(room: Room) -> None:
    instance = await room.add(container())
    room.host.leftovers.there["bundle"] = {instance.id, "stranger"}
    await room.restorer.restore()
    assert set(room.host.leftovers.ended) == {instance.id, "stranger"}


async def test_one_whose_monitor_is_about_to_end_is_waited_for(room: Room) -> None:
    instance = await room.started(container())
    room.host.processes.running.pop(instance.record.state.pid).end()
    after = await room.crashed()
    await after.restorer.restore()
    assert only(after).record.state.status == "running" and only(after).has_ended
    await after.ended(only(after), 5)
    state = only(after).record.state
    assert (state.status, state.exit_code, state.error) == ("exited", 5, "")


async def test_one_that_cannot_be_restored_keeps_nobody_else(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await room.started(container()), await room.started(container())
    after = await room.crashed()
    broken = after.index.find(first.id)
    broken.believe(but(broken.record, state=replace(broken.record.state, started_at="not a time")))
    after.host.end(broken, 0)
    await after.restorer.restore()
    assert after.index.find(second.id).process is not None
