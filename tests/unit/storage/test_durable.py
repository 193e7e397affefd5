"""Writers that wait for the disk wait for a sync that began after the write; all that wait at once share one."""

import asyncio
import threading

import pytest

from husk.errors import SystemFault
from husk.storage.durable import Flusher
from tests.support.waiting import until


class Disk:
    """Syncs when it is told to go on."""

    def __init__(self) -> None:
        self.syncs = 0
        self.error: OSError | None = None
        self.go_on = threading.Semaphore(0)

    def sync(self) -> None:
        self.syncs += 1
        assert self.go_on.acquire(timeout=20)
        if self.error is not None:
            raise self.error


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def flusher(disk: Disk):
    flusher = Flusher(disk.sync, "sync", soon=0.01)
    yield flusher
    disk.go_on.release(100)
    flusher.close()


async def begun(disk: Disk, number: int) -> None:
    await asyncio.to_thread(until, lambda: disk.syncs == number, f"sync {number} begins")


async def test_what_is_on_the_disk_is_not_synced_again(disk: Disk, flusher: Flusher) -> None:
    await flusher.settle()
    flusher.wrote()
    disk.go_on.release()
    await flusher.settle()
    await flusher.settle()
    assert disk.syncs == 1


async def test_a_sync_that_began_before_the_write_does_not_count(disk: Disk, flusher: Flusher) -> None:
    flusher.wrote()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(flusher.settle())
        await begun(disk, 1)
        flusher.wrote()
        late = [group.create_task(flusher.settle()) for _ in range(5)]
        disk.go_on.release()
        await begun(disk, 2)
        assert first.done() and not any(task.done() for task in late)
        disk.go_on.release()
    assert disk.syncs == 2


async def test_a_disk_that_fails_is_told_and_asked_again(disk: Disk, flusher: Flusher) -> None:
    disk.error = OSError(5, "Input/output error")
    disk.go_on.release(2)
    flusher.wrote()
    with pytest.raises(SystemFault, match="Input/output error"):
        await flusher.settle()
    disk.error = None
    await flusher.settle()


async def test_what_nobody_waits_for_is_on_the_disk_soon(disk: Disk, flusher: Flusher) -> None:
    disk.go_on.release()
    flusher.wrote()
    flusher.settle_soon()
    flusher.settle_soon()
    await begun(disk, 1)
    await flusher.settle()
    assert disk.syncs == 1
