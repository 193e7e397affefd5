"""Removals and prunes, on a host that is only played."""

import asyncio
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers.remove import ContainerPruner
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.events import Events
from husk.engine.model.filters import Filters
from husk.errors import Conflict, HuskError
from tests.support.room import Room
from tests.support.waiting import until_async
from tests.unit.engine.records import container


async def test_what_runs_is_removed_by_force_only(room: Room) -> None:
    instance = await room.started(container("web"))
    with pytest.raises(Conflict, match='cannot remove container "web": container is running'):
        await room.remover.remove(instance, force=False)
    process = room.host.processes.open(instance.record.state.pid)
    removing = Tasks().spawn(room.remover.remove(instance, force=True), "remove", awaited=True)
    await until_async(lambda: process.signals, "the signal")
    room.host.end(instance, 137)
    await removing
    assert room.stored(instance) is None and room.host.held == set()
    room.index.reserve_name("web", "5" * 64)


async def test_the_record_goes_though_what_it_used_does_not(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = await room.add(container())

    def fails(_: str) -> None:
        raise HuskError("the disk is broken")

    monkeypatch.setattr(room.host.assembly, "discard", fails)
    removal = instance.removal()
    await room.remover.remove(instance, force=False)
    assert room.stored(instance) is None
    assert (await removal).code == 0
    assert room.actions == ["destroy"]


async def test_a_prune_takes_what_does_not_run_and_is_chosen(room: Room) -> None:
    events = Events()
    pruner = ContainerPruner(room.index, room.host.assembly, room.remover, events)
    running = await room.started(container())
    kept = await room.add(container(config=ContainerConfig(labels={"keep": "1"})))
    going = await room.add(container())
    done = await pruner.prune(Filters({"label!": ["keep"]}))
    assert done.ids == [going.id]
    assert room.index.present(running) and room.index.present(kept)


async def test_nobody_writes_the_end_of_what_is_removed(room: Room) -> None:
    instance = await room.started(container())
    process = room.host.processes.open(instance.record.state.pid)
    removing = Tasks().spawn(room.remover.remove(instance, force=True), "remove", awaited=True)
    await until_async(lambda: process.signals, "the signal")
    written = room.stored(instance)
    await room.index.settle(instance, instance.record)
    assert instance.doomed and room.stored(instance) == written
    room.host.end(instance, 137)
    await removing
    assert not instance.doomed and room.stored(instance) is None


async def test_a_removal_that_fails_leaves_the_end_in_the_store(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = await room.started(container())
    process = room.host.processes.open(instance.record.state.pid)

    async def fails(*_: object) -> None:
        raise HuskError("no")

    monkeypatch.setattr(room.index, "delete", fails)
    removing = Tasks().spawn(room.remover.remove(instance, force=True), "remove", awaited=True)
    await until_async(lambda: process.signals, "the signal")
    room.host.end(instance, 137)
    with pytest.raises(HuskError):
        await removing
    stored = room.stored(instance)
    assert stored is not None and stored.state.exit_code == 137


async def test_a_removal_whose_client_leaves_goes_on_to_its_end(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = await room.add(container("web"))
    begun, may_go = asyncio.Event(), asyncio.Event()
    delete = room.index.delete

    async def slow(*given: Any) -> None:
        begun.set()
        await may_go.wait()
        await delete(*given)

    monkeypatch.setattr(room.index, "delete", slow)
    cleared: list[str] = []
    monkeypatch.setattr(room.remover._releaser, "clear_later", lambda instance: cleared.append(instance.id))
    removal = instance.removal()
    removing = Tasks().spawn(room.remover.remove(instance, force=False), "remove", awaited=True)
    await begun.wait()
    removing.cancel()
    may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await removing
    assert room.stored(instance) is None and not room.index.present(instance)
    assert cleared == [instance.id] and removal.done() and room.actions == ["destroy"]
