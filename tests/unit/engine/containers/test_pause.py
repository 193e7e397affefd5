"""Pause and unpause: the record is ahead of a frozen container."""

from typing import cast

import pytest
from msgspec.structs import replace

from husk.errors import Conflict, SystemFault
from tests.support.but import but
from tests.support.drivers import FakeRuntimes
from tests.support.room import Room
from tests.unit.engine.records import container


async def test_a_pause_is_stored_and_told_and_undone(room: Room) -> None:
    instance = await room.started(container())
    await room.pauser.pause(instance)
    stored = room.stored(instance)
    assert stored is not None and stored.state.status == instance.record.state.status == "paused"
    with pytest.raises(Conflict, match="already paused"):
        await room.pauser.pause(instance)
    await room.pauser.unpause(instance)
    stored = room.stored(instance)
    assert stored is not None and stored.state.status == "running"
    assert room.told.heard == ["starting", "running", "paused", "running"]
    assert room.actions == ["start", "pause", "unpause"]
    with pytest.raises(Conflict, match="is not paused"):
        await room.pauser.unpause(instance)


async def test_a_pause_that_fails_is_not_left_in_the_record(room: Room) -> None:
    instance = await room.started(container())
    cast(FakeRuntimes, room.host.drivers.runtimes).runtime.refuses["pause"] = "it cannot be frozen"
    with pytest.raises(SystemFault):
        await room.pauser.pause(instance, for_commit=True)
    assert room.host.assembly.thawed == [room.host.paths.cgroup(instance.id, "")]  # it may have died half-way
    stored = room.stored(instance)
    assert stored is not None and (stored.state.status, stored.paused_for_commit) == ("running", False)


async def test_a_runtime_that_finds_no_process_means_that_it_has_ended(room: Room) -> None:
    instance = await room.started(container())
    cast(FakeRuntimes, room.host.drivers.runtimes).runtime.refuses["pause"] = "no such process"
    room.host.processes.open(instance.record.state.pid).end()
    with pytest.raises(Conflict, match="is not running"):
        await room.pauser.pause(instance)


async def test_what_does_not_run_is_not_paused(room: Room) -> None:
    instance = await room.add(container())
    with pytest.raises(Conflict, match="is not running"):
        await room.pauser.pause(instance)
    instance.believe(but(instance.record, state=replace(instance.record.state, status="restarting")))
    with pytest.raises(Conflict, match="is restarting"):
        await room.pauser.pause(instance)
