"""A dashboard on an engine that answers as the test says, and a browser that has signed in."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from husk.client.client import Client
from husk.dashboard.server import Dashboard, serve
from husk.dashboard.site import Settings
from tests.support.dashboard import Browser, Page
from tests.support.fake_engine import FakeEngine


class Visitor:
    """A browser whose requests do not hold the loop that answers them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def get(self, path: str) -> Page:
        return await asyncio.to_thread(self._browser.get, path)

    async def post(self, path: str, **fields: str) -> Page:
        return await asyncio.to_thread(self._browser.post, path, fields)


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    found.answers("GET", "/containers/json", [])
    yield found
    await found.close()


@pytest.fixture
async def dashboard(engine: FakeEngine) -> AsyncIterator[Dashboard]:
    client = Client(engine.dial)
    async with serve(client, Settings(address="127.0.0.1:0")) as found:
        yield found
    await client.close()


@pytest.fixture
async def visitor(dashboard: Dashboard) -> Visitor:
    browser = Browser(dashboard.site.link())
    assert (await asyncio.to_thread(browser.sign_in)).status == 200
    return Visitor(browser)
