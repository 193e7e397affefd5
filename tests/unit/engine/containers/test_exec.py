"""Execs: made, started once, inspected, forgotten; on a host that is only played."""

import asyncio
import errno

import pytest
from msgspec.structs import replace

from husk.engine.containers import exec as execs
from husk.engine.containers.exec import CannotRun
from husk.engine.containers.index import Instance
from husk.engine.model.container import Status
from husk.engine.model.container_config import ContainerConfig, ExecConfig
from husk.errors import Conflict, InvalidParameter, NotFound, SystemFault
from husk.runtime.supervise.conmon import Bundle
from tests.support.but import but
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container

ECHO = ExecConfig(cmd=["echo", "hi"])


async def running(room: Room) -> Instance:
    return await room.started(container("box", config=ContainerConfig(working_dir="/here")))


def end(room: Room, exec_id: str, code: int | None) -> None:
    record = room.execs.inspect(exec_id)
    if code is not None:
        room.host.exec_monitor.exits[room.host.paths.exec_bundle(exec_id)] = code
    for pid in (record.pid, record.monitor_pid):
        room.host.processes.running.pop(pid).end()


async def ended(room: Room, exec_id: str, code: int | None) -> None:
    end(room, exec_id, code)
    await until_async(lambda: room.execs.inspect(exec_id).exit_code is not None, "the end of the exec")
    await until_async(lambda: not room.host.exec_monitor.directories, "its files to go")


async def test_its_life(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    assert room.execs.inspect(exec_id).exit_code is None
    await room.execs.start(exec_id, attach=False)
    record = room.execs.inspect(exec_id)
    assert record.running and record.monitor_started == record.monitor_pid * 10
    (spec,) = room.host.exec_monitor.specs
    assert (spec["args"], spec["cwd"]) == (["echo", "hi"], "/here")
    assert list(room.host.exec_monitor.directories) == [room.host.paths.exec_bundle(exec_id)]
    await ended(room, exec_id, 3)
    assert (record.running, record.exit_code) == (False, 3)
    assert room.actions == ["start", "exec_create: echo hi", "exec_start: echo hi", "exec_die"]


async def test_it_runs_once(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    with pytest.raises(Conflict, match="is already running"):
        await room.execs.start(exec_id, attach=False)
    await ended(room, exec_id, 0)
    with pytest.raises(Conflict, match="has already run"):
        await room.execs.start(exec_id, attach=False)


async def test_a_monitor_that_was_killed_means_a_killed_process(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    process = room.host.processes.running[room.execs.inspect(exec_id).pid]
    room.host.processes.running[room.execs.inspect(exec_id).monitor_pid].end()
    await until_async(lambda: room.execs.inspect(exec_id).exit_code is not None, "the end of the exec")
    assert room.execs.inspect(exec_id).exit_code == 137
    assert process.signals == [9], "it would run on, and nobody would know"


@pytest.mark.parametrize(("message", "code"), [("executable file not found in $PATH", 127), ("it cannot be done", 126)])
async def test_one_that_cannot_be_run_has_an_exit_code_and_leaves_nothing(room: Room, message: str, code: int) -> None:
    await running(room)
    room.host.exec_monitor.fails = SystemFault(message)
    exec_id = await room.execs.create("box", ECHO)
    with pytest.raises(CannotRun):
        await room.execs.start(exec_id, attach=False)
    assert room.execs.inspect(exec_id).exit_code == code
    assert room.host.exec_monitor.directories == {}


async def test_one_that_cannot_be_run_ends_though_its_files_stay(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await running(room)
    room.host.exec_monitor.fails = SystemFault("it cannot be done")

    def stay(bundle: Bundle) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(room.host.exec_monitor, "discard", stay)
    exec_id = await room.execs.create("box", ECHO)
    with pytest.raises(CannotRun):
        await room.execs.start(exec_id, attach=False)
    assert (room.execs.inspect(exec_id).running, room.execs.inspect(exec_id).exit_code) == (False, 126)
    await room.execs.remove(exec_id)


async def test_a_full_disk_is_told_of_in_words(room: Room) -> None:
    await running(room)
    room.host.exec_monitor.fails = OSError(errno.ENOSPC, "No space left on device")
    exec_id = await room.execs.create("box", ECHO)
    with pytest.raises(CannotRun, match=r"^no space left on device$"):
        await room.execs.start(exec_id, attach=False)


async def test_one_that_runs_is_seen_to_its_end_though_it_cannot_be_noted(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running(room)

    def full(bundle: Bundle, record: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room.host.exec_monitor, "save", full)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    await ended(room, exec_id, 3)
    assert room.execs.inspect(exec_id).exit_code == 3


@pytest.mark.parametrize(("status", "words"), [("paused", "is paused"), ("exited", "is not running")])
async def test_only_a_running_container_takes_one(room: Room, status: Status, words: str) -> None:
    instance = await running(room)
    exec_id = await room.execs.create("box", ECHO)
    instance.believe(but(instance.record, state=replace(instance.record.state, status=status)))
    with pytest.raises(Conflict, match=words):
        await room.execs.create("box", ECHO)
    with pytest.raises(Conflict, match=words):
        await room.execs.start(exec_id, attach=False)


@pytest.mark.parametrize("size", [[65536, 80], [-1, 80], [24, 2**63]])
async def test_a_size_that_no_terminal_has_is_refused(room: Room, size: list[int]) -> None:
    await running(room)
    with pytest.raises(InvalidParameter, match="invalid ConsoleSize"):
        await room.execs.create("box", ExecConfig(cmd=["true"], tty=True, console_size=size))
    exec_id = await room.execs.create("box", ExecConfig(cmd=["true"], tty=True))
    with pytest.raises(InvalidParameter, match="between 0 and 65535"):
        await room.execs.start(exec_id, attach=True, tty=True, size=size)
    assert room.execs.inspect(exec_id).exit_code is None and not room.execs.inspect(exec_id).running


async def test_nothing_to_run_and_nobody_known(room: Room) -> None:
    await running(room)
    with pytest.raises(InvalidParameter, match="No exec command specified"):
        await room.execs.create("box", ExecConfig())
    with pytest.raises(NotFound):
        room.execs.inspect("no-such-exec")
    with pytest.raises(InvalidParameter):
        await room.execs.check_user("box", "stranger")
    await room.execs.check_user("box", "1000")


async def test_what_was_never_started_goes_with_the_container(room: Room) -> None:
    instance = await running(room)
    waiting, started = await room.execs.create("box", ECHO), await room.execs.create("box", ECHO)
    await room.execs.start(started, attach=False)
    await room.ended(instance, 0)
    with pytest.raises(NotFound):
        room.execs.inspect(waiting)
    assert room.execs.inspect(started).running


async def test_what_ended_long_ago_is_forgotten(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    await ended(room, exec_id, 0)
    monkeypatch.setattr(execs, "FORGET_AFTER_NS", -(10**9))
    await room.execs.create("box", ECHO)
    with pytest.raises(NotFound):
        room.execs.inspect(exec_id)


async def test_the_next_daemon_takes_over_what_runs(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    after = await room.crashed()
    await after.execs.restore()
    assert after.execs.inspect(exec_id).running
    await ended(after, exec_id, 7)
    assert after.execs.inspect(exec_id).exit_code == 7


async def test_the_next_daemon_knows_how_one_ended_meanwhile_and_cleans_up(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    await room.tasks.cancel_all()
    end(room, exec_id, 2)
    after = await room.crashed()
    after.host.exec_monitor.directories[after.host.paths.exec_bundle("broken")] = b"not a record"
    await after.execs.restore()
    assert after.execs.inspect(exec_id).exit_code == 2
    assert after.host.exec_monitor.directories == {}


async def test_a_command_of_the_engines_own_is_killed_when_time_is_up(room: Room) -> None:
    instance = await running(room)

    async def run() -> execs.Outcome:
        return await room.execs.run(instance, ["probe"], 0.0, 100)

    running_probe = room.tasks.spawn(run(), "probe", awaited=True)
    await until_async(lambda: len(room.host.processes.running) > 2, "the process of the probe")
    (exec_id,) = room.execs.unfinished(instance.id)
    process = room.host.processes.open(room.execs.inspect(exec_id).pid)
    await until_async(lambda: process.signals, "the signal")
    end(room, exec_id, 137)
    outcome = await running_probe
    assert process.signals == [9] and outcome.exit_code == 137


async def test_one_that_is_removed_is_killed_and_forgotten(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    removing = asyncio.get_running_loop().create_task(room.execs.remove(exec_id))
    process = room.host.processes.running[room.execs.inspect(exec_id).pid]
    await until_async(lambda: process.signals == [9], "SIGKILL")
    end(room, exec_id, 137)
    await removing
    with pytest.raises(NotFound):
        room.execs.inspect(exec_id)


async def test_one_that_the_next_daemon_removes_is_killed(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.start(exec_id, attach=False)
    after = await room.crashed()
    await after.execs.restore()
    removing = asyncio.get_running_loop().create_task(after.execs.remove(exec_id))
    process = after.host.processes.running[after.execs.inspect(exec_id).pid]
    await until_async(lambda: process.signals == [9], "SIGKILL")
    end(after, exec_id, 137)
    await removing
    with pytest.raises(NotFound):
        after.execs.inspect(exec_id)


async def test_one_that_is_removed_before_it_starts_never_does(room: Room) -> None:
    await running(room)
    exec_id = await room.execs.create("box", ECHO)
    await room.execs.remove(exec_id)
    with pytest.raises(NotFound):
        await room.execs.start(exec_id, attach=False)
