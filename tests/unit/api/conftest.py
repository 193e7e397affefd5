"""The whole HTTP edge on a fake engine, behind a real socket."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp import ClientSession

from husk.api.edge.server import ApiEdge, serve
from tests.unit.api.fake_engine import FakeEngine

if TYPE_CHECKING:
    from husk.composition import Engine


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def client(engine: FakeEngine) -> AsyncIterator[ClientSession]:
    async with (
        serve(ApiEdge(cast("Engine", engine)), ["tcp://127.0.0.1:0"], group="") as (address,),
        ClientSession(address.replace("tcp", "http", 1)) as session,
    ):
        yield session
