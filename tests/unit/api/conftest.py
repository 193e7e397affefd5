"""The whole HTTP edge on a fake engine, behind a real socket."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer

from husk.api.server import build_app
from tests.unit.api.fake_engine import FakeEngine

if TYPE_CHECKING:
    from husk.engine.engine import Engine


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def client(engine: FakeEngine) -> AsyncIterator[TestClient]:
    app = build_app(cast("Engine", engine))
    async with TestClient(TestServer(app)) as client:
        yield client
