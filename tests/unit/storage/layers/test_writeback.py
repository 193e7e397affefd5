"""The files of layers are synced when nobody waits for them, and their owner hears of it."""

import asyncio
from pathlib import Path

import pytest

from husk.storage.layers.writeback import Writeback


class Disk:
    def __init__(self) -> None:
        self.syncs = 0
        self.fails = 0

    def sync(self, path: Path) -> None:
        self.syncs += 1
        if self.syncs <= self.fails:
            raise OSError(5, "Input/output error")


class Owner:
    def __init__(self) -> None:
        self.heard: list[frozenset[str]] = []
        self.told = asyncio.Event()

    async def done(self, directories: frozenset[str]) -> None:
        self.heard.append(directories)
        self.told.set()


@pytest.fixture
def disk() -> Disk:
    return Disk()


async def test_all_that_came_meanwhile_are_synced_at_once(disk: Disk) -> None:
    owner = Owner()
    later = Writeback(Path("/"), owner.done, disk.sync, later=0.01)
    later.add("a")
    later.add("b")
    async with asyncio.timeout(20):
        await owner.told.wait()
    await later.close()
    assert owner.heard == [frozenset("ab")] and disk.syncs == 1


async def test_while_more_comes_it_waits_but_not_without_end(disk: Disk) -> None:
    owner = Owner()
    later = Writeback(Path("/"), owner.done, disk.sync, later=1000.0, at_most=0.05)
    later.postpone()
    later.add("a")
    async with asyncio.timeout(20):
        while not owner.told.is_set():
            later.postpone()
            await asyncio.sleep(0)
    await later.close()
    assert owner.heard == [frozenset("a")] and disk.syncs == 1


async def test_a_disk_that_fails_is_asked_again(disk: Disk) -> None:
    disk.fails = 2
    owner = Owner()
    later = Writeback(Path("/"), owner.done, disk.sync, later=0.01)
    later.add("a")
    async with asyncio.timeout(20):
        await owner.told.wait()
    await later.close()
    assert owner.heard == [frozenset("a")] and disk.syncs == 3


async def test_an_end_waits_for_what_is_left_and_for_nothing_else(disk: Disk) -> None:
    owner = Owner()
    idle = Writeback(Path("/"), owner.done, disk.sync)
    await idle.close()
    assert disk.syncs == 0
    busy = Writeback(Path("/"), owner.done, disk.sync)
    busy.add("a")
    await busy.close()
    assert owner.heard == [frozenset("a")] and disk.syncs == 1


async def test_a_disk_that_fails_at_the_end_does_not_keep_anybody(disk: Disk) -> None:
    disk.fails = 9
    owner = Owner()
    later = Writeback(Path("/"), owner.done, disk.sync)
    later.add("a")
    await later.close()
    assert owner.heard == []


async def test_it_waits_for_layers_that_still_come_but_not_without_end(disk: Disk) -> None:
    owner = Owner()
    later = Writeback(Path("/"), owner.done, disk.sync, later=0.01, at_most=0.2)
    with later.coming():
        later.add("a")
        await asyncio.sleep(0.05)
        assert disk.syncs == 0
    async with asyncio.timeout(20):
        await owner.told.wait()
    owner.told.clear()
    with later.coming():
        later.add("b")
        async with asyncio.timeout(20):
            await owner.told.wait()
    await later.close()
    assert owner.heard == [frozenset("a"), frozenset("b")] and disk.syncs == 2
