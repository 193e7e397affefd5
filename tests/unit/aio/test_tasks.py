"""Tasks: nothing is lost while it runs, and no failure goes unseen."""

import asyncio
import gc
import logging

import pytest

from husk.aio.tasks import Tasks


async def fail() -> None:
    raise ValueError("broken")


async def test_a_task_without_other_references_runs_to_its_end() -> None:
    tasks, done = Tasks(), asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        done.set()

    tasks.spawn(work(), "work")
    gc.collect()
    await tasks.join()
    assert done.is_set()


async def test_a_failure_is_logged_with_the_name_of_the_task(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    tasks.spawn(fail(), "the work")
    await tasks.join()
    assert [record.getMessage() for record in caplog.records] == ["task the work failed"]
    assert caplog.records[0].exc_info is not None


async def test_the_failure_of_an_awaited_task_is_its_callers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "husk.aio.tasks")
    tasks = Tasks()
    with pytest.raises(ValueError, match="broken"):
        await tasks.spawn(fail(), "work", awaited=True)
    await tasks.join()
    assert not [record for record in caplog.records if record.name == "husk.aio.tasks"]


async def test_join_ends_when_all_have_ended_just_now() -> None:
    tasks, done = Tasks(), asyncio.Event()

    async def work() -> None:
        done.set()

    tasks.spawn(work(), "work")
    await done.wait()
    assert tasks.count == 1
    await tasks.join()
    assert tasks.count == 0


async def test_join_waits_for_what_tasks_start_too() -> None:
    tasks, order = Tasks(), list[str]()

    async def inner() -> None:
        await asyncio.sleep(0)
        order.append("inner")

    async def outer() -> None:
        await asyncio.sleep(0)
        tasks.spawn(inner(), "inner")
        order.append("outer")

    tasks.spawn(outer(), "outer")
    await tasks.join()
    assert order == ["outer", "inner"]


async def test_cancelling_waits_until_tasks_have_cleaned_up() -> None:
    tasks, started, cleaned = Tasks(), asyncio.Event(), list[int]()

    async def work() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    task = tasks.spawn(work(), "work")
    await started.wait()
    await tasks.cancel_all()
    assert cleaned == [1]
    assert task.cancelled()


async def test_what_must_not_be_cut_off_is_done_before_its_caller_is_cancelled() -> None:
    tasks, go_on, seen = Tasks(), asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        seen.append("done")

    async def caller() -> None:
        try:
            await tasks.to_its_end(work(), "work")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    calling = tasks.spawn(caller(), "caller", awaited=True)
    await asyncio.sleep(0)
    for _ in range(3):
        calling.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not calling.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert seen == ["done", "cancelled"]


async def test_what_must_not_be_cut_off_tells_its_caller_of_its_failure(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="broken"):
        await Tasks().to_its_end(fail(), "work")
    assert not caplog.records
