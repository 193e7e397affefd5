"""A dashboard of an engine that answers as the test says, and a browser that has signed in."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from husk.client.client import Client
from husk.dashboard.server import Dashboard, serve
from husk.dashboard.site import Settings
from tests.support.dashboard import Asker, Browser
from tests.support.fake_engine import FakeEngine


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    found.answers("GET", "/containers/json", [])
    yield found
    await found.close()


@pytest.fixture
async def client(engine: FakeEngine) -> AsyncIterator[Client]:
    found = Client(engine.dial)
    yield found
    await found.close()


@pytest.fixture
async def dashboard(client: Client) -> AsyncIterator[Dashboard]:
    async with serve(client, Settings(address="127.0.0.1:0")) as found:
        yield found


@pytest.fixture
async def asker(dashboard: Dashboard) -> Asker:
    found = Browser(dashboard.site.link())
    assert (await asyncio.to_thread(found.sign_in)).status == 200
    return Asker(found)
