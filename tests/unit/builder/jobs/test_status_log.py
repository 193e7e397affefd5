"""Progress that a build has told, for those who come early and late."""

import asyncio

import pytest

from husk.aio.tasks import Tasks
from husk.builder.graph.graph import Vertex
from husk.builder.graph.operations import Operation, Source
from husk.builder.graph.progress import CLIPPED, LONGEST_LOG, Status
from husk.builder.jobs.status_log import LogTold, StatusLog, StatusTold, VertexTold, WarningTold

STEP = Vertex(digest="sha256:1", operation=Operation(Source("x")), name="step")


@pytest.fixture
def log():
    return StatusLog()


async def all_of(log):
    return [told async for new in log.follow() for told in new]


async def test_who_comes_late_hears_all_of_it(log):
    log.started(STEP)
    log.log(STEP, b"hello\n", stderr=True)
    log.ended(STEP, cached=True)
    log.close()
    started, said, ended = await all_of(log)
    assert isinstance(started, VertexTold)
    assert isinstance(said, LogTold)
    assert isinstance(ended, VertexTold)
    assert (said.data, said.stream) == (b"hello\n", 2)
    assert ended.cached
    assert ended.started == started.started <= ended.completed


async def test_who_is_there_hears_it_when_it_is_told(log):
    hearing = Tasks().spawn(all_of(log), "hear", awaited=True)
    log.started(STEP)
    log.warn(WarningTold(vertex="sha256:1", level=1, short=b"careful"))
    log.close()
    assert len(await hearing) == 2


async def test_parts_of_a_step(log):
    log.status(STEP, Status(id="layer", current=1, total=2))
    log.status(STEP, Status(id="layer", current=2, total=2, done=True))
    log.close()
    first, second = await all_of(log)
    assert isinstance(first, StatusTold)
    assert isinstance(second, StatusTold)
    assert (first.completed, first.started) == (0, second.started)
    assert second.completed


@pytest.mark.parametrize(
    ("how", "error"), [({"error": "exit code: 1"}, "exit code: 1"), ({"cancelled": True}, "context canceled")]
)
async def test_a_bad_end(log, how, error):
    log.ended(STEP, **how)
    log.close()
    (ended,) = await all_of(log)
    assert isinstance(ended, VertexTold)
    assert ended.error == error


async def test_who_says_too_much_is_cut_off(log):
    for _ in range(5):
        log.log(STEP, b"x" * (LONGEST_LOG // 2), stderr=False)
    log.close()
    said = [told.data for told in await all_of(log) if isinstance(told, LogTold)]
    assert sum(map(len, said)) == LONGEST_LOG + len(CLIPPED)
    assert said[-1].endswith(CLIPPED)


async def test_nothing_is_told_after_the_end(log):
    log.close()
    log.started(STEP)
    assert await all_of(log) == []


async def test_what_is_told_in_a_pause_comes_at_once_and_the_end_ends_it(log):
    follow = log.follow(pause=600)
    log.started(STEP)
    assert len(await anext(follow)) == 1
    log.log(STEP, b"x", stderr=False)
    log.ended(STEP)
    asyncio.get_running_loop().call_soon(log.close)
    assert len(await anext(follow)) == 2
    assert [told async for told in follow] == []


async def test_a_pause_has_an_end(log):
    follow = log.follow(pause=0.001)
    log.started(STEP)
    await anext(follow)
    log.ended(STEP)
    assert len(await anext(follow)) == 1
