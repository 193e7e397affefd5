"""A browser for each file, and a tab that has signed in. Without a browser these tests are skipped."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import Tab, program, started
from tests.support.daemon import Daemon
from tests.support.dashboard import new_link


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("needs chromium: scripts/setup --test")
    with started(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def tab(shown: Daemon, chromium: Browser) -> Iterator[Tab]:
    """One that has signed in; it must not have complained when the test is over."""
    link = new_link(shown)
    # Colours that fade into each other would be measured half-way.
    context = chromium.new_context(reduced_motion="reduce")
    try:
        found = Tab(context.new_page(), link)
        found.sign_in(link)
        yield found
        assert found.faults == []
    finally:
        context.close()
