"""A browser for each file, and a tab that has signed in. Without a browser these tests are skipped."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.chromium import Tab, program, started
from tests.support.daemon import Daemon
from tests.support.dashboard import new_link


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    if program() is None:
        pytest.skip("needs chromium: scripts/setup --test")
    async with started(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def tab(shown: Daemon, chromium: Browser) -> AsyncIterator[Tab]:
    """One that has signed in; it must not have complained when the test is over."""
    link = new_link(shown)
    # Colours that fade into each other would be measured half-way.
    context = await chromium.new_context(reduced_motion="reduce")
    try:
        found = Tab(await context.new_page(), link)
        await found.sign_in(link)
        yield found
        assert found.faults == []
    finally:
        await context.close()
