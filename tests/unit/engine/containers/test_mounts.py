"""Users of a root while a block lasts leave none mounted, however the block ends."""

import asyncio
import contextlib
import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.engine.containers.index import Instance
from husk.engine.model.container import MountPoint
from husk.errors import Conflict
from tests.support.but import but
from tests.support.room import Room
from tests.unit.engine.records import container

IMAGE = MountPoint(type="image", destination="/tools", layers=["tools"])


async def stopped(room: Room) -> Instance:
    record = container()
    record = but(record, mounts=[IMAGE])
    return await room.add(record)


def mounted(room: Room, instance: Instance) -> set[str]:
    return {name.removesuffix(f" {instance.id}") for name in room.host.held}


async def test_it_is_mounted_while_the_block_lasts(room: Room) -> None:
    instance = await stopped(room)
    async with room.roots.mounted(instance) as root:
        assert root == room.host.paths.of(instance.id).rootfs
        assert mounted(room, instance) == {"root", "volumes", "staging"}
    assert mounted(room, instance) == set() and instance.root_users == 0


async def test_the_last_one_unmounts_it(room: Room) -> None:
    instance = await stopped(room)
    async with room.roots.mounted(instance):
        async with room.roots.mounted(instance):
            assert instance.root_users == 2
        assert mounted(room, instance) == {"root", "volumes", "staging"}
    assert mounted(room, instance) == set()


async def test_a_block_that_fails_unmounts_it_too(room: Room) -> None:
    instance = await stopped(room)
    with pytest.raises(RuntimeError):
        async with room.roots.mounted(instance):
            raise RuntimeError("the disk is full")
    assert mounted(room, instance) == set()


async def test_a_container_that_starts_and_ends_meanwhile_leaves_it_mounted(room: Room) -> None:
    instance = await stopped(room)
    async with room.roots.mounted(instance):
        await room.lifecycle.start(instance)
        await room.ended(instance, 0)
        assert {"root", "volumes", "staging"} == mounted(room, instance)
    assert mounted(room, instance) == set()


async def test_a_running_container_keeps_what_a_copy_leaves(room: Room) -> None:
    instance = await stopped(room)
    await room.lifecycle.start(instance)
    async with room.roots.mounted(instance):
        pass
    assert {"root", "volumes", "staging"} <= mounted(room, instance)


async def test_a_container_that_goes_is_not_mounted(room: Room) -> None:
    instance = await stopped(room)
    instance.believe(but(instance.record, state=replace(instance.record.state, status="removing")))
    with pytest.raises(Conflict, match="marked for removal"):
        async with room.roots.mounted(instance):
            raise AssertionError("it is being removed")


async def test_a_cancelled_mount_is_unmounted_after_it_is_done(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = await stopped(room)
    root = room.host.assembly.root(instance.id)
    begun, go_on, mount = threading.Event(), threading.Event(), root.mount

    def slowly(lower: Sequence[str], *, volatile: bool) -> None:
        begun.set()
        assert go_on.wait(20)
        mount(lower)

    monkeypatch.setattr(root, "mount", slowly)

    async def use() -> None:
        async with room.roots.mounted(instance):
            raise AssertionError("it was cancelled before")

    using = Tasks().spawn(use(), "use", awaited=True)
    assert await asyncio.to_thread(begun.wait, 20)
    for _ in range(3):
        using.cancel()
        await asyncio.sleep(0)
    assert instance.lock.locked(), "nobody else may come in between"
    go_on.set()
    with contextlib.suppress(asyncio.CancelledError):
        await using
    assert using.cancelled() and not instance.lock.locked()
    assert mounted(room, instance) == set() and instance.root_users == 0


async def test_what_changes_lie_on_has_the_mount_points_on_top(room: Room) -> None:
    record = container(layers=["base", "app"])
    assert room.roots.lower(record) == [str(room.host.paths.mount_points_layer), "/layers/app", "/layers/base"]
