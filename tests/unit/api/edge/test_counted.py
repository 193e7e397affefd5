"""Requests are counted by their route, with what the client was told."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest

from husk.api.edge.counted import CountedEdge
from husk.api.edge.observed import ObservedEdge
from husk.api.edge.server import ApiEdge, serve
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.api.loops import until

if TYPE_CHECKING:
    from husk.composition import Engine


class Tally:
    def __init__(self) -> None:
        self.in_flight = 0
        self.heard: list[tuple[bytes, str, int]] = []

    def add(self, method: bytes, route: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.heard.append((method, route, status))


class Silent:
    """One who looks on and says nothing."""

    def begun(self, seen: object) -> None: ...

    def entered(self, seen: object) -> None: ...

    def done(self, seen: object) -> None: ...


@pytest.mark.parametrize("observed", [False, True])
async def test_requests_are_counted_once_by_their_route(engine: FakeEngine, tmp_path: Path, observed: bool) -> None:
    counts, path = Tally(), tmp_path / "socket"
    known = cast("Engine", engine)
    edge: ApiEdge = (
        ObservedEdge(known, observers=(Silent(),), counts=counts) if observed else CountedEdge(known, counts=counts)
    )
    connector = aiohttp.UnixConnector(str(path))
    async with (
        serve(edge, [f"unix://{path}"], ""),
        aiohttp.ClientSession("http://docker", connector=connector) as client,
    ):
        for place in ("/_ping", "/v1.41/containers/nope/json", "/nowhere", "/" + "x" * 300):
            await (await client.get(place)).read()
        await (await client.post("/containers/nope/start")).read()
        await until(lambda: len(counts.heard) == 5)
    assert counts.heard == [
        (b"GET", "/_ping", 200),
        (b"GET", "/containers/{id}/json", 404),
        (b"GET", "", 404),
        (b"GET", "", 404),
        (b"POST", "/containers/{id}/start", 204),
    ]
    assert counts.in_flight == 0
