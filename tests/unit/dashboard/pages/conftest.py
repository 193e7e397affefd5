"""A browser that has signed in, for tests that answer it in the same loop."""

import asyncio

import pytest

from husk.dashboard.server import Dashboard
from tests.support.dashboard import Browser, Page


class Visitor:
    """A browser whose requests do not hold the loop that answers them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def get(self, path: str) -> Page:
        return await asyncio.to_thread(self._browser.get, path)

    async def post(self, path: str, **fields: str) -> Page:
        return await asyncio.to_thread(self._browser.post, path, fields)


@pytest.fixture
async def visitor(dashboard: Dashboard) -> Visitor:
    browser = Browser(dashboard.site.link())
    assert (await asyncio.to_thread(browser.sign_in)).status == 200
    return Visitor(browser)
