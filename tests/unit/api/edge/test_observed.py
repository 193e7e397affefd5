"""Observers hear of every request, by its route, with what the client was told."""

import contextvars
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest

from husk.api.edge.observed import ObservedEdge, SeenRequest
from husk.api.edge.server import serve
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until

if TYPE_CHECKING:
    from husk.composition import Engine

current: contextvars.ContextVar[str] = contextvars.ContextVar("current", default="")


class Recorder:
    def __init__(self) -> None:
        self.begun_paths: list[str] = []
        self.heard: list[tuple[str, str, str, int]] = []

    def begun(self, seen: SeenRequest) -> None:
        self.begun_paths.append(seen.request.path)

    def entered(self, seen: SeenRequest) -> None:
        current.set(seen.request.path)

    def done(self, seen: SeenRequest) -> None:
        assert seen.seconds >= 0
        self.heard.append((seen.request.method.decode(), seen.route, seen.argument, seen.status))


@pytest.fixture
async def recorder(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[tuple[Recorder, aiohttp.ClientSession]]:
    found = Recorder()
    edge = ObservedEdge(cast("Engine", engine), observers=(found,))
    path = tmp_path / "socket"
    connector = aiohttp.UnixConnector(str(path))
    async with (
        serve(edge, [f"unix://{path}"], ""),
        aiohttp.ClientSession("http://docker", connector=connector) as client,
    ):
        yield found, client


async def test_requests_are_told_by_their_route(recorder: tuple[Recorder, aiohttp.ClientSession]) -> None:
    found, client = recorder
    for path in ("/_ping", "/v1.41/containers/nope/json", "/nowhere", "/" + "x" * 300):
        await (await client.get(path)).read()
    await (await client.post("/containers/nope/start")).read()
    await until(lambda: len(found.heard) == 5)
    assert found.heard == [
        ("GET", "/_ping", "", 200),
        ("GET", "/containers/{id}/json", "nope", 404),
        ("GET", "", "", 404),
        ("GET", "", "", 404),
        ("POST", "/containers/{id}/start", "nope", 204),
    ]
    assert found.begun_paths[0] == "/_ping"


async def test_what_observers_set_stays_within_the_request(recorder: tuple[Recorder, aiohttp.ClientSession]) -> None:
    found, client = recorder
    await (await client.get("/_ping")).read()
    await (await client.post("/containers/nope/start")).read()
    await until(lambda: len(found.heard) == 2)
    assert current.get() == ""
