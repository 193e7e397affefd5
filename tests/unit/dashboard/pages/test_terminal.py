import asyncio

import pytest

from husk.client.client import Client
from husk.dashboard.pages.terminal import _words
from husk.dashboard.server import serve
from husk.dashboard.site import DashboardSettings
from husk.errors import InvalidParameter
from tests.support.dashboard import WEB, Asker, Browser
from tests.support.fake_engine import FakeEngine


@pytest.fixture(autouse=True)
def web(engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/web/json", WEB)


async def test_what_is_no_websocket_is_refused(asker: Asker) -> None:
    page = await asker.get("/containers/web/terminal/socket", origin=asker.browser.origin)
    assert page.status == 400 and "WebSocket" in page.text


@pytest.mark.parametrize("origin", ["", "http://evil.example", "null"])
async def test_a_page_of_another_site_opens_no_terminal(asker: Asker, engine: FakeEngine, origin: str) -> None:
    page = await asker.get("/containers/web/terminal/socket", origin=origin, upgrade="websocket", connection="upgrade")
    assert page.status == 403
    assert not [each for each in engine.asked if each.path.endswith("/exec")]


async def test_read_only_opens_no_terminal(client: Client) -> None:
    async with serve(client, DashboardSettings(address="127.0.0.1:0", read_only=True)) as dashboard:
        browser = Browser(dashboard.site.link())
        asker = Asker(browser)
        await asyncio.to_thread(browser.sign_in)
        assert (await asker.get("/containers/web/terminal/socket", origin=browser.origin)).status == 403
        assert "read-only" in (await asker.get("/containers/web/terminal")).text


async def test_a_terminal_is_opened_when_it_is_asked_for(asker: Asker) -> None:
    assert "data-socket" not in (await asker.get("/containers/web/terminal")).text
    text = (await asker.get("/containers/web/terminal?command=ls+-l&user=root")).text
    assert "no terminal" in text or "/containers/web/terminal/socket?command=ls+-l&amp;user=root" in text


def test_a_command_that_takes_long_to_split_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="more than"):
        _words("'" + "a" * 100_000)
    assert _words("ls '-l a'") == ["ls", "-l a"]
