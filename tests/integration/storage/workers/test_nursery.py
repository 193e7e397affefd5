"""Workers come out of a process that forks them; whatever becomes of that process, the next worker comes."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel.process import wait_exit
from husk.storage.workers import nursery as module
from husk.storage.workers.answers import FileStatus
from husk.storage.workers.handle import Producer
from husk.storage.workers.jobs import PackJob, UnpackJob
from husk.storage.workers.messages import LARGEST_JOB, encode
from husk.storage.workers.nursery import Nursery
from tests.support.waiting import until
from tests.support.workers import forkers_of, reserve_of, workers_of


@contextlib.asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    nursery = Nursery()
    before = forkers()
    try:
        yield nursery
    finally:
        nursery.close()
        async with asyncio.timeout(10):
            while forkers() - before:
                await asyncio.sleep(0.01)


def forkers() -> set[int]:
    return forkers_of(os.getpid())


async def look(nursery: Nursery, root: Path) -> str:
    """Return the words of a worker about a path below `root`."""
    worker = await Producer.start(nursery, PackJob(str(root), [], "/there", only_status=True))
    try:
        async with asyncio.timeout(20):
            found = await worker.answer()
            assert isinstance(found, FileStatus)
            return found.name
    finally:
        worker.stop()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "there").write_text("x")
    return tmp_path


async def test_many_workers_come_out_of_one_process(root: Path):
    async with nursery() as one:
        assert set(await asyncio.gather(*(look(one, root) for _ in range(8)))) == {"there"}
        assert len(forkers()) == 1


async def test_a_killed_forker_is_replaced(root: Path):
    async with nursery() as one:
        assert await look(one, root) == "there"
        [pid] = forkers()
        os.kill(pid, signal.SIGKILL)
        assert await look(one, root) == "there"


async def test_who_is_cancelled_while_waiting_disturbs_nobody(root: Path):
    async with nursery() as one:
        waiting = asyncio.get_running_loop().create_task(look(one, root))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await look(one, root) == "there"


async def test_who_is_cancelled_leaves_no_worker(root: Path):
    """One that is born late would write where its caller has cleaned up."""
    async with nursery() as one:
        for turns in range(6):
            # It waits for its input, and holds its output open as long as it lives.
            stdin, input_end = os.pipe()
            output_end, stdout = os.pipe2(os.O_NONBLOCK)
            try:
                blob = root / f"blob{turns}"
                blob.touch()
                job = UnpackJob(str(root), str(blob))
                spawning = asyncio.get_running_loop().create_task(one.spawn(job, [stdin, stdout, stdout]))
                for _ in range(turns):
                    await asyncio.sleep(0)
                spawning.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await spawning
                os.close(stdout)
                assert os.read(output_end, 1) == b"", "nobody has it open any more"
            finally:
                for end in (stdin, input_end, output_end):
                    os.close(end)
        assert await look(one, root) == "there"


async def test_a_job_that_is_just_short_enough_arrives(root: Path):
    async with nursery() as one:
        stdin, stdout = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
        try:
            long = "x" * (LARGEST_JOB - len(encode(PackJob(str(root), [], ""))))
            child = await one.spawn(PackJob(str(root), [], long), [stdin, stdout, stdout])
            await wait_exit(child.pidfd)  # there is no such path
            child.close()
        finally:
            os.close(stdin)
            os.close(stdout)


async def test_a_job_that_is_too_long_is_an_error(root: Path):
    async with nursery() as one:
        with pytest.raises(SystemFault, match="cannot be told"):
            await one.spawn(PackJob(str(root), [], "x" * LARGEST_JOB), [0, 1, 1])


async def test_no_ended_worker_stays_a_zombie(root: Path):
    async with nursery() as one:
        await look(one, root)
        await only_the_reserve()


async def test_the_reserve_is_used_and_filled_again_and_goes_with_the_nursery(root: Path):
    async with nursery() as one:
        await look(one, root)
        reserves = set()
        for _ in range(10):
            # It can be seen before the nursery has heard that it is there: then another one does the work.
            reserves.add(await only_the_reserve())
            assert await look(one, root) == "there"
        assert len(reserves) > 3
        reserve = await only_the_reserve()
    await eventually(lambda: not Path(f"/proc/{reserve}").exists())


async def test_the_reserve_goes_when_nobody_wants_it_however_many_workers_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "_RESERVE_FOR", 0.3)
    async with nursery() as one:
        for pause in (0.0, 0.02, 0.04, 0.06):
            await asyncio.gather(look(one, root), look(one, root), look(one, root))
            await asyncio.sleep(pause)
        await only_the_reserve()
        await eventually(lambda: not reserve_of(os.getpid()))


async def test_a_reserve_that_was_killed_is_not_missed(root: Path):
    async with nursery() as one:
        await look(one, root)
        reserve = await only_the_reserve()
        os.kill(reserve, signal.SIGKILL)
        await eventually(lambda: not Path(f"/proc/{reserve}").exists())
        assert await look(one, root) == "there"


async def test_a_nursery_that_is_closed_at_any_moment_leaves_no_process(root: Path):
    before = forkers()
    for moment in range(0, 60, 3):
        one = Nursery()
        await look(one, root)
        await asyncio.sleep(moment / 1000)  # the next worker is about to be forked, or just was
        one.close()
    await eventually(lambda: not forkers() - before)
    with pytest.raises(SystemFault):
        await look(one, root)


async def test_who_waits_for_a_worker_is_told_that_there_will_be_none(root: Path):
    one = Nursery()
    waiting = Tasks().spawn(look(one, root), "look", awaited=True)
    await asyncio.sleep(0.01)  # the forker is starting
    one.close()
    with pytest.raises(SystemFault, match="no more workers"):
        await waiting
    await eventually(lambda: not forkers())


async def only_the_reserve() -> int:
    """Wait until there is no other worker; its pid."""
    await eventually(lambda: not workers_of(os.getpid()) and len(reserve_of(os.getpid())) == 1)
    [reserve] = reserve_of(os.getpid())
    return reserve


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_the_process_can_be_started_before_a_worker_is_wanted(root: Path):
    async with nursery() as one:
        before = forkers()
        one.wake()
        one.wake()
        await asyncio.to_thread(until, lambda: len(forkers() - before) == 1, "the process is there")
        assert await look(one, root) == "there"
        assert len(forkers() - before) == 1
    one.wake()
    assert not forkers() - before


@pytest.mark.parametrize("woken", [False, True])
async def test_a_broken_installation_is_told_at_once(root: Path, woken: bool, monkeypatch: pytest.MonkeyPatch):
    """The process that forks cannot import what workers need, and dies before it has heard of anybody."""
    command = module._command()
    broken = "import sys; sys.modules['husk.storage.workers.unpack'] = None; "
    monkeypatch.setattr(module, "_command", lambda: [*command[:-1], broken + command[-1]])
    async with nursery() as one:
        if woken:
            one.wake()
        async with asyncio.timeout(20):
            for _ in range(2):
                with pytest.raises(SystemFault, match="the process that starts workers died"):
                    await look(one, root)


async def test_workers_that_all_die_before_they_have_work_are_an_error(root: Path, monkeypatch: pytest.MonkeyPatch):
    async with nursery() as one:
        monkeypatch.setattr(module._Idle, "employ", lambda idle, work, descriptors: idle.dismiss())
        async with asyncio.timeout(20):
            with pytest.raises(SystemFault, match="workers die before they have work"):
                await look(one, root)
