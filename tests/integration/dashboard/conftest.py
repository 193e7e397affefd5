"""A daemon with a dashboard, and a browser that has signed in."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, links, new_link
from tests.support.waiting import until


@pytest.fixture(scope="module")
def shown() -> Iterator[Daemon]:
    """A daemon whose dashboard is on a free port."""
    with Daemon("--dashboard", "127.0.0.1:0") as daemon:
        until(lambda: links(daemon), "the link of the dashboard")
        yield daemon


@pytest.fixture
def browser(shown: Daemon) -> Iterator[Browser]:
    found = Browser(new_link(shown))
    assert found.sign_in().status == 200
    yield found
    shown.remove_containers()
