"""Stop and kill, with processes that end when a test says so."""

import asyncio
import signal

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers import stop
from husk.engine.model.container_config import ContainerConfig, ExecConfig, HostConfig, RestartPolicy
from husk.errors import Conflict, InvalidParameter, NotModified, SystemFault
from tests.support.drivers import FakeProcess, FakeRuntime
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container


def process_of(room: Room, pid: int) -> FakeProcess:
    return room.host.processes.open(pid)


async def test_the_stop_signal_comes_first_and_the_end_is_waited_for(room: Room) -> None:
    instance = await room.started(container(config=ContainerConfig(stop_signal="SIGUSR1")))
    process = process_of(room, instance.record.state.pid)
    stopping = Tasks().spawn(room.stopper.stop(instance, 10, ""), "stop", awaited=True)
    await until_async(lambda: process.signals, "the signal")
    assert process.signals == [signal.SIGUSR1] and not stopping.done()
    room.host.end(instance, 0)
    await stopping
    assert instance.record.has_been_manually_stopped
    assert room.actions == ["start", "kill", "die", "stop"]


async def test_who_does_not_end_in_time_is_killed(room: Room) -> None:
    instance = await room.started(container())
    process = process_of(room, instance.record.state.pid)
    stopping = Tasks().spawn(room.stopper.stop(instance, 0, ""), "stop", awaited=True)
    await until_async(lambda: signal.SIGKILL in process.signals, "the second signal")
    room.host.end(instance, 137)
    await stopping
    assert process.signals == [signal.SIGTERM, signal.SIGKILL]


async def test_who_survives_even_that_is_told(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "KILL_PATIENCE", 0.0)
    instance = await room.started(container())
    with pytest.raises(SystemFault, match="did not end after SIGKILL"):
        await room.stopper.stop(instance, 0, "")
    with pytest.raises(SystemFault, match="did not end after SIGKILL"):
        await room.remover.remove(instance, force=True)
    assert instance.record.state.status == "running"


async def test_all_end_each_in_its_own_time_and_their_policies_count_later(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "KILL_PATIENCE", 0.0)
    policy = HostConfig(restart_policy=RestartPolicy(name="always"))
    patient = await room.started(container("patient", host_config=policy))
    stubborn = await room.started(container("stubborn", config=ContainerConfig(stop_timeout=0)))
    resting = await room.add(container("resting"))
    room.lifecycle.leave_restarts()
    ending = Tasks().spawn(room.stopper.end_all(), "end all", awaited=True)
    process = process_of(room, stubborn.record.state.pid)
    await until_async(lambda: signal.SIGKILL in process.signals, "the second signal")
    room.host.end(patient, 0)
    await ending
    assert (patient.record.state.status, stubborn.record.state.status) == ("exited", "running")
    assert not patient.record.has_been_manually_stopped
    assert resting.record.state.status == "created"


async def test_what_does_not_run_is_not_stopped(room: Room) -> None:
    instance = await room.add(container())
    with pytest.raises(NotModified):
        await room.stopper.stop(instance, None, "")
    with pytest.raises(Conflict, match="is not running"):
        await room.stopper.kill(instance, "")
    with pytest.raises(InvalidParameter):
        await room.stopper.kill(instance, "SIGNOTHING")


async def test_what_is_just_being_started_is_waited_for(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output may be seen before its start is told, and a client's ctrl-C follows at once."""
    going_on = asyncio.Event()

    async def start(runtime: FakeRuntime, container_id: str) -> None:
        await going_on.wait()

    monkeypatch.setattr(FakeRuntime, "start", start)
    instance = await room.add(container(name="box"))
    tasks = Tasks()
    starting = tasks.spawn(room.lifecycle.start(instance), "start", awaited=True)
    await until_async(lambda: instance.process is not None, "a process")
    making = tasks.spawn(room.execs.create("box", ExecConfig(cmd=["ls"])), "exec", awaited=True)
    killing = tasks.spawn(room.stopper.kill(instance, "INT"), "kill", awaited=True)
    stopping = tasks.spawn(room.stopper.stop(instance, 10, ""), "stop", awaited=True)
    await asyncio.sleep(0)
    going_on.set()
    await asyncio.gather(starting, making, killing)
    process = process_of(room, instance.record.state.pid)
    await until_async(lambda: signal.SIGTERM in process.signals, "the second signal")
    assert process.signals == [signal.SIGINT, signal.SIGTERM]
    room.host.end(instance, 130)
    await stopping


async def test_a_kill_with_another_signal_waits_for_no_end(room: Room) -> None:
    instance = await room.started(container(config=ContainerConfig(stop_signal="SIGTERM")))
    await room.stopper.kill(instance, "HUP")
    assert process_of(room, instance.record.state.pid).signals == [signal.SIGHUP]
    assert not instance.record.has_been_manually_stopped


async def test_a_frozen_container_is_thawed_to_take_the_signal(room: Room) -> None:
    instance = await room.started(container())
    await room.pauser.pause(instance)
    stopping = Tasks().spawn(room.stopper.stop(instance, 10, ""), "stop", awaited=True)
    await until_async(lambda: instance.record.state.status == "running", "the thawing")
    room.host.end(instance, 0)
    await stopping
    assert [verb for verb, _ in room.host.runtimes.runtime.done] == ["start", "pause", "resume", "delete"]


async def test_a_stop_between_two_runs_gives_the_next_one_up(room: Room) -> None:
    instance = await room.started(container(host_config=HostConfig(restart_policy=RestartPolicy(name="always"))))
    instance.restart_delay = 1000.0
    await room.ended(instance, 1)
    waiting = instance.pending_restart
    assert waiting is not None
    await room.stopper.stop(instance, None, "")
    await asyncio.wait([waiting])
    assert waiting.cancelled() and instance.record.state.status == "exited"
    stored = room.stored(instance)
    assert stored is not None and stored.state.status == "exited"


@pytest.mark.parametrize("number", [9, 15])
async def test_sigkill_thaws_first_whatever_the_record_says(room: Room, number: int) -> None:
    instance = await room.started(container())
    process = room.host.processes.running[instance.record.state.pid]
    seen: list[list[str]] = []
    signal_it = process.signal

    def signal_then(sent: int) -> bool:
        seen.append(list(room.host.assembly.thawed))
        Tasks().spawn(room.ended(instance, 128 + sent), "end")
        return signal_it(sent)

    process.signal = signal_then  # type: ignore[assignment, method-assign]
    await room.stopper.kill(instance, str(number))
    cgroup = room.host.paths.cgroup(instance.id, "")
    assert seen == [[cgroup] if number == 9 else []]
