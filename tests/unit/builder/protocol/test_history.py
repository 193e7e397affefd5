"""The records that are kept of builds, and the clients that hear of them."""

import asyncio
import subprocess
import sys

import pytest

from husk.builder.graph.graph import Vertex
from husk.builder.graph.operations import Operation, Source
from husk.builder.jobs.results import Predicate
from husk.builder.jobs.status_log import LogTold, Told, VertexTold, WarningTold
from husk.builder.protocol.history import MOST, BuildHistory
from husk.builder.protocol.messages import control
from husk.builder.protocol.messages.common import Any, Status
from husk.errors import NotFound
from tests.unit.builder.protocol.fake_builder import KeptInMemory

VERTEX = Vertex(digest="d", operation=Operation(Source("local://x")))


def ask(**wanted: object) -> control.BuildHistoryRequest:
    request = control.BuildHistoryRequest(early_exit=True)
    for name, value in wanted.items():
        setattr(request, name, value)
    return request


def new() -> BuildHistory:
    return BuildHistory(KeptInMemory())


async def refs(history: BuildHistory, **wanted: object) -> list[str]:
    return [event.record.ref async for event in history.listen(ask(**wanted)) if event.record]


async def built(history: BuildHistory, *names: str) -> None:
    for name in names:
        history.begin(control.SolveRequest(ref=name))
        await history.complete(name, [])


async def test_steps_are_counted() -> None:
    history = new()
    history.begin(control.SolveRequest(ref="a"))
    told = [VertexTold(vertex=VERTEX, started=1), VertexTold(vertex=VERTEX, started=1, completed=2, cached=True)]
    await history.complete("a", told, {"k": "v"})
    (event,) = [event async for event in history.listen(ask())]
    assert event.type == control.BUILD_COMPLETE and event.record is not None
    record = event.record
    assert (record.total_steps, record.completed_steps, record.cached_steps) == (1, 1, 1)
    assert record.exporter_response == {"k": "v"}
    (status,) = await history.statuses("a") or []
    assert [(one.digest, one.cached) for one in status.vertexes] == [("d", False), ("d", True)]


async def test_some_can_be_asked_for() -> None:
    history = new()
    await built(history, "a", "b", "c")
    history.begin(control.SolveRequest(ref="d"))
    assert await refs(history) == ["a", "b", "c", "d"]
    assert await refs(history, ref="b") == ["b"]
    assert await refs(history, active_only=True) == ["d"]
    assert await refs(history, limit=2) == ["c", "d"]
    assert await history.statuses("d") is None


async def test_a_build_of_the_same_name_as_one_under_way_is_none() -> None:
    history = new()
    assert history.begin(control.SolveRequest(ref="a"))
    assert not history.begin(control.SolveRequest(ref="a"))
    await history.complete("a", [])
    assert history.begin(control.SolveRequest(ref="a"))


async def test_old_ones_are_forgotten_unless_they_are_pinned() -> None:
    history = new()
    await built(history, "first", "second")
    history.update(control.UpdateBuildHistoryRequest("first", pinned=True))
    await built(history, *(str(number) for number in range(MOST)))
    known = await refs(history)
    assert "first" in known and "second" not in known and len(known) == MOST + 1


async def test_logs_that_are_too_large_are_cut_off() -> None:
    history = new()
    history.begin(control.SolveRequest(ref="a"))
    logs = [LogTold(vertex="d", stream=1, data=bytes([number]) * (1 << 19), timestamp=1) for number in range(4)]
    await history.complete("a", [*logs, VertexTold(vertex=VERTEX, completed=2)])
    statuses = list(await history.statuses("a") or [])
    assert [log.msg[0] for status in statuses for log in status.logs] == [0, 1]
    assert [vertex.digest for status in statuses for vertex in status.vertexes] == ["d"]


async def test_the_next_daemon_knows_them() -> None:
    kept = KeptInMemory()
    history = BuildHistory(kept)
    await history.load()
    history.begin(control.SolveRequest(ref="a"))
    stated = {"linux/amd64": [Predicate(type="https://slsa.dev/provenance/v1", body=b"{}")]}
    warning = WarningTold(vertex="d", level=1, short=b"x")
    await history.complete("a", [VertexTold(vertex=VERTEX), warning], {}, Status(2, "bad", [Any("t", b"v")]), stated)
    await built(history, "b")
    history.update(control.UpdateBuildHistoryRequest("a", pinned=True))
    history.update(control.UpdateBuildHistoryRequest("b", delete=True))
    history.begin(control.SolveRequest(ref="never ended"))
    for _ in range(100):  # until all of it is kept
        await asyncio.sleep(0)
    kept.files["rubbish"] = {"record": b"\xff"}
    later = BuildHistory(kept)
    await later.load()
    await later.load()
    assert await refs(later) == ["a"]
    (event,) = [event async for event in later.listen(ask())]
    record = event.record
    assert record is not None and record.error is not None and record.result is not None
    assert (record.pinned, record.warnings, record.error.message) == (True, 1, "bad")
    assert record.external_error is not None
    error = Status.decode(await later.blob(record.external_error.digest) or b"")
    assert (error.message, error.details, record.error.details) == ("bad", [Any("t", b"v")], [])
    (attached,) = record.result.attestations
    assert attached.annotations == {"in-toto.io/predicate-type": "https://slsa.dev/provenance/v1"}
    assert await later.blob(attached.digest) == b"{}"
    assert await later.blob("sha256:" + "0" * 64) is None
    (status,) = await later.statuses("a") or []
    assert len(status.vertexes) == len(status.warnings) == 1


async def test_who_follows_hears_of_changes() -> None:
    history = new()
    await built(history, "a")
    events = history.listen(ask(early_exit=False))
    assert (await anext(events)).type == control.BUILD_COMPLETE
    following = asyncio.gather(anext(events))
    await asyncio.sleep(0)
    history.update(control.UpdateBuildHistoryRequest("a", delete=True))
    assert (await following)[0].type == control.BUILD_DELETED
    await events.aclose()
    with pytest.raises(NotFound):
        history.update(control.UpdateBuildHistoryRequest("a"))


async def test_who_waits_for_a_build_hears_of_its_end() -> None:
    history = new()
    assert not await history.wait("a")
    history.begin(control.SolveRequest(ref="a"))
    waiting = asyncio.get_running_loop().create_task(history.wait("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    await history.complete("a", [])
    assert await waiting and await history.wait("a")


def test_nothing_of_connections_is_loaded_with_the_history() -> None:
    code = "import sys, husk.builder.protocol.history, husk.api.build_request; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    unwanted = ("hpack", "husk.rpc.http2.core", "husk.rpc.grpc.connection")
    assert [name for name in loaded if name.startswith(unwanted)] == []


async def test_much_that_was_told_is_written_in_a_thread() -> None:
    """Two are told of each operation of a build, and while they were written nobody else had a turn."""
    apart: list[str] = []

    async def noted(work, record, *more):
        apart.append(record.ref)
        return await asyncio.to_thread(work, record, *more)

    history = BuildHistory(KeptInMemory(), noted)
    small, large = VertexTold(vertex=VERTEX), WarningTold(vertex="d", level=1, short=b"x" * (1 << 20))
    several: list[tuple[str, list[Told]]] = [("few", [small] * 10), ("many", [small] * 2000), ("large", [large])]
    for name, told in several:
        history.begin(control.SolveRequest(ref=name))
        await history.complete(name, told)
    assert apart == ["many", "large"]
    assert sum(len(one.vertexes) for one in await history.statuses("many") or ()) == 2000


async def test_a_build_whose_end_is_written_is_complete_though_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    history = new()
    history.begin(control.SolveRequest(ref="a"))
    completing = asyncio.ensure_future(history.complete("a", [VertexTold(vertex=VERTEX)] * 2000))  # noqa: TID251
    await asyncio.sleep(0)
    completing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await completing
    assert await refs(history, active_only=True) == [] and await refs(history) == ["a"]
