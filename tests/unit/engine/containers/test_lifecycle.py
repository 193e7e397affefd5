"""The life of a container, on a host that is only played."""

import asyncio

import pytest
from msgspec.structs import replace

from husk.engine.containers.config import restart_policy
from husk.engine.containers.index import Exit
from husk.engine.model.container_config import ContainerConfig, HealthConfig, HostConfig, LogConfig, RestartPolicy
from husk.errors import Conflict, InvalidParameter, NotModified, SystemFault
from husk.runtime.supervise.conmon import GaveUp
from tests.support.but import but
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container

ALWAYS = HostConfig(restart_policy=RestartPolicy(name="always"))


async def test_a_start_makes_all_that_a_process_needs_and_is_stored_before_it_is_told(room: Room) -> None:
    instance = await room.started(container("web"))
    id = instance.id
    assert room.host.held == {f"{what} {id}" for what in ("sandbox", "volumes", "root", "bundle", "cgroup")}
    assert instance.record.state.status == "running"
    assert room.host.runtimes.runtime.done == [("start", id)]
    assert room.told.heard == ["starting", "running"]
    assert room.actions == ["start"]
    stored = room.stored(instance)
    assert stored is not None and stored.state.status == "running"
    assert stored.monitor_started == stored.monitor_pid * 10


async def test_what_runs_is_not_started_again(room: Room) -> None:
    instance = await room.started(container())
    with pytest.raises(NotModified):
        await room.lifecycle.start(instance)
    instance.believe(but(instance.record, state=replace(instance.record.state, status="paused")))
    with pytest.raises(Conflict, match="try unpause"):
        await room.lifecycle.start(instance)


async def test_an_end_is_recorded_and_everything_given_back_before_anybody_hears_of_it(room: Room) -> None:
    instance = await room.started(container())
    exit = instance.next_exit()
    room.host.end(instance, 3)
    assert (await exit).code == 3
    assert room.host.held == set()
    assert room.told.heard == ["starting", "running", "ended"]
    assert room.actions == ["start", "die"]
    stored = room.stored(instance)
    assert stored is not None and (stored.state.status, stored.state.exit_code) == ("exited", 3)
    assert instance.process is None and instance.record.state.pid == 0


async def test_a_monitor_that_was_killed_takes_the_process_with_it(room: Room) -> None:
    instance = await room.started(container())
    first = room.host.processes.open(instance.record.state.pid)
    await room.ended(instance, None)
    assert first.signals == [9]
    state = instance.record.state
    assert (state.exit_code, state.error) == (137, "the container's monitor ended without an exit status")


async def test_a_killed_process_was_out_of_memory_if_the_kernel_says_so(room: Room) -> None:
    instance = await room.started(container())
    room.host.assembly.out_of_memory.add(room.host.paths.cgroup(instance.id, ""))
    await room.ended(instance, 137)
    assert instance.record.state.oom_killed
    assert room.actions == ["start", "oom", "die"]


@pytest.mark.parametrize(
    ("message", "code"),
    [("executable file not found in $PATH", 127), ("permission denied", 126), ("no such luck", 128)],
)
async def test_a_failed_start_leaves_nothing_and_says_why(room: Room, message: str, code: int) -> None:
    instance = await room.add(container())
    room.host.monitor.fails = SystemFault(message)
    with pytest.raises(InvalidParameter, match=message.partition("$")[0]):
        await room.lifecycle.start(instance)
    assert room.host.held == set()
    state = instance.record.state
    assert (state.status, state.error) == ("created", message)
    assert state.exit_code == code
    stored = room.stored(instance)
    assert stored is not None and stored.state.error == message


async def test_a_monitor_that_gives_up_is_tried_once_more(room: Room) -> None:
    instance = await room.add(container())
    room.host.monitor.fails = GaveUp("no terminal")
    await room.lifecycle.start(instance)
    assert room.host.held == {f"{what} {instance.id}" for what in ("sandbox", "volumes", "root", "bundle", "cgroup")}
    assert (instance.record.state.status, room.actions) == ("running", ["start"])


async def test_a_start_that_is_cancelled_leaves_the_container_as_it_was(room: Room) -> None:
    instance = await room.add(container())
    room.host.monitor.fails = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await room.lifecycle.start(instance)
    assert room.host.held == set()
    assert instance.record.state.status == "created"


async def test_a_container_that_removes_itself_goes_with_its_process_and_its_volumes(room: Room) -> None:
    instance = await room.started(container(host_config=HostConfig(auto_remove=True), layers=["one", "two"]))
    removal = instance.removal()
    room.host.end(instance, 0)
    assert (await removal).code == 0
    assert room.stored(instance) is None and not room.index.present(instance)
    assert room.host.volumes.gone_with == [(instance.id, True)]
    assert room.released_layers == [["one", "two"]]
    assert room.actions == ["start", "die", "destroy"]


async def test_somebody_who_keeps_it_finds_it_after_its_end(room: Room) -> None:
    instance = await room.started(container(host_config=HostConfig(auto_remove=True)))
    with instance.kept():
        await room.ended(instance, 0)
    assert room.index.present(instance)


async def test_a_policy_starts_it_again_and_counts(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_policy, "FIRST_DELAY", 0.0)
    instance = await room.started(container(host_config=ALWAYS))
    await room.ended(instance, 1)
    assert instance.record.restart_count == 1
    await until_async(lambda: room.actions.count("start") == 2, "the second run")
    assert room.actions == ["start", "die", "start"]


async def test_between_two_runs_it_is_restarting_for_the_next_daemon_too(room: Room) -> None:
    instance = await room.started(container(host_config=ALWAYS))
    instance.restart_delay = 1000.0
    await room.ended(instance, 1)
    stored = room.stored(instance)
    assert stored is not None and stored.state.status == "restarting"
    assert room.host.held == set()


async def test_a_client_that_is_faster_than_the_daemon_s_own_start_takes_its_place(room: Room) -> None:
    instance = await room.add(container(host_config=ALWAYS))
    room.lifecycle.schedule_restart(instance, 0.0)
    timer = instance.pending_restart
    assert timer is not None
    await room.lifecycle.start(instance)
    await asyncio.wait([timer])
    assert timer.cancelled() and room.actions == ["start"]


async def test_nothing_is_started_again_by_a_daemon_that_goes(room: Room) -> None:
    instance = await room.started(container(host_config=ALWAYS))
    exit = instance.next_exit()
    instance.believe(but(instance.record, has_been_manually_stopped=False))
    process = instance.process
    room.lifecycle.close()
    assert instance.process is None and process is not None and not process.has_ended
    room.host.end(instance, 0)
    await exit
    assert instance.record.state.status == "exited"


async def test_health_begins_with_the_process(room: Room) -> None:
    config = ContainerConfig(healthcheck=HealthConfig(test=["CMD", "true"]))
    instance = await room.started(container(config=config))
    assert instance.record.state.health is not None and instance.record.state.health.status == "starting"


async def test_a_container_that_has_gone_is_not_started(room: Room) -> None:
    instance = await room.add(container())
    await room.index.delete(instance)
    with pytest.raises(Conflict, match="marked for removal"):
        await room.lifecycle.start(instance)


async def test_who_waits_for_one_that_goes_by_itself_hears_why_it_ended(room: Room) -> None:
    host_config = HostConfig(auto_remove=True, log_config=LogConfig(type="none"))
    instance = await room.started(container(host_config=host_config))
    removal = instance.removal()
    room.host.assembly.out_of_memory.add(room.host.assembly.paths.cgroup(instance.id, ""))
    room.host.end(instance, 137)
    assert await removal == Exit(137, oom_killed=True)
    assert room.stored(instance) is None
