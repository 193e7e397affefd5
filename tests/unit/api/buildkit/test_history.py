"""What is kept of builds, and who hears of it."""

import asyncio

import pytest

from husk.api.buildkit.history import MOST, History
from husk.api.buildkit.messages import control
from husk.engine.builder.graph import Vertex
from husk.engine.builder.operations import Operation, Source
from husk.engine.builder.status import LogTold, VertexTold
from husk.errors import NotFound

VERTEX = Vertex(digest="d", operation=Operation(Source("local://x")))


def ask(**wanted: object) -> control.BuildHistoryRequest:
    request = control.BuildHistoryRequest(early_exit=True)
    for name, value in wanted.items():
        setattr(request, name, value)
    return request


async def refs(history: History, **wanted: object) -> list[str]:
    return [event.record.ref async for event in history.listen(ask(**wanted)) if event.record]


def built(history: History, *names: str) -> None:
    for name in names:
        history.begin(control.SolveRequest(ref=name))
        history.complete(name, [])


async def test_steps_are_counted() -> None:
    history = History()
    history.begin(control.SolveRequest(ref="a"))
    told = [VertexTold(vertex=VERTEX, started=1), VertexTold(vertex=VERTEX, started=1, completed=2, cached=True)]
    history.complete("a", told, {"k": "v"})
    (event,) = [event async for event in history.listen(ask())]
    assert event.type == control.BUILD_COMPLETE and event.record is not None
    record = event.record
    assert (record.total_steps, record.completed_steps, record.cached_steps) == (1, 1, 1)
    assert record.exporter_response == {"k": "v"}
    assert list(history.told("a") or []) == told


async def test_some_can_be_asked_for() -> None:
    history = History()
    built(history, "a", "b", "c")
    history.begin(control.SolveRequest(ref="d"))
    assert await refs(history) == ["a", "b", "c", "d"]
    assert await refs(history, ref="b") == ["b"]
    assert await refs(history, active_only=True) == ["d"]
    assert await refs(history, limit=2) == ["c", "d"]
    assert history.told("d") is None


async def test_a_build_of_the_same_name_as_one_under_way_is_none() -> None:
    history = History()
    assert history.begin(control.SolveRequest(ref="a"))
    assert not history.begin(control.SolveRequest(ref="a"))
    history.complete("a", [])
    assert history.begin(control.SolveRequest(ref="a"))


async def test_old_ones_are_forgotten_unless_they_are_pinned() -> None:
    history = History()
    built(history, "first", "second")
    history.update(control.UpdateBuildHistoryRequest("first", pinned=True))
    built(history, *(str(number) for number in range(MOST)))
    known = await refs(history)
    assert "first" in known and "second" not in known and len(known) == MOST + 1


async def test_logs_that_are_too_large_are_not_kept() -> None:
    history = History()
    history.begin(control.SolveRequest(ref="a"))
    history.complete("a", [LogTold(vertex="d", stream=1, data=bytes(2 << 20), timestamp=1)])
    assert list(history.told("a") or []) == []


async def test_who_follows_hears_of_changes() -> None:
    history = History()
    built(history, "a")
    events = history.listen(ask(early_exit=False))
    assert (await anext(events)).type == control.BUILD_COMPLETE
    following = asyncio.gather(anext(events))
    await asyncio.sleep(0)
    history.update(control.UpdateBuildHistoryRequest("a", delete=True))
    assert (await following)[0].type == control.BUILD_DELETED
    await events.aclose()
    with pytest.raises(NotFound):
        history.update(control.UpdateBuildHistoryRequest("a"))
