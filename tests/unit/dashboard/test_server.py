import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator

import pytest

from husk.api.http.request import Request
from husk.api.http.response import Answer
from husk.client.client import Client
from husk.dashboard import server as served
from husk.dashboard.server import LIMITS, Dashboard, serve
from husk.dashboard.site import DashboardSettings
from husk.errors import InvalidParameter
from tests.support.dashboard import Browser, Page
from tests.support.fake_engine import FakeEngine, failed

WEB = {
    "Id": "a" * 64, "Names": ["/web"], "Image": "<b>nginx</b>", "State": "running", "Status": "Up 5 minutes (healthy)",
    "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "front"},
    "Ports": [{"IP": "0.0.0.0", "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}],
}  # fmt: skip
INSPECTED = {"Id": "a" * 64, "Name": "/web", "State": {"Status": "running"}, "Config": {"Image": "nginx", "Labels": {}}}


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    found = FakeEngine()
    found.answers("GET", "/containers/json", [WEB])
    found.answers("GET", "/containers/web/json", INSPECTED)
    found.answers("POST", f"/containers/{'a' * 64}/stop", None)
    yield found
    await found.close()


@pytest.fixture
def stranger(dashboard: Dashboard) -> Browser:
    return Browser(dashboard.site.link())


@pytest.fixture
async def browser(dashboard: Dashboard) -> Browser:
    found = Browser(dashboard.site.link())
    assert (await asyncio.to_thread(found.sign_in)).status == 200
    return found


async def get(browser: Browser, path: str, **headers: str) -> Page:
    return await asyncio.to_thread(browser.get, path, **headers)


async def post(browser: Browser, path: str, fields: dict[str, str] | None = None, **headers: str) -> Page:
    return await asyncio.to_thread(browser.post, path, fields, **headers)


async def test_who_is_not_signed_in_sees_how_to_sign_in(stranger: Browser) -> None:
    for path in ("/", "/containers", "/live", "/nowhere"):
        page = await get(stranger, path)
        assert page.status == 401 and "Sign in" in page.text and "web" not in page.text


async def test_a_link_signs_in_once(dashboard: Dashboard, stranger: Browser) -> None:
    page = await asyncio.to_thread(stranger.sign_in)
    cookie = page.headers["set-cookie"]
    assert "; HttpOnly" in cookie and "; SameSite=Strict" in cookie and "Secure" not in cookie
    assert (await get(stranger, "/containers")).status == 200
    again = Browser(stranger.link)
    page = await asyncio.to_thread(again.sign_in)
    assert page.status == 403 and "used already" in page.text and "set-cookie" not in page.headers


async def test_guesses_are_limited(stranger: Browser) -> None:
    statuses = [(await get(stranger, "/sign-in?token=guess")).status for _ in range(11)]
    assert statuses == [403] * 10 + [429]
    assert (await asyncio.to_thread(stranger.sign_in)).status == 200


async def test_a_session_is_known_below_its_own_place_alone(browser: Browser) -> None:
    """Browsers send a cookie to all ports of a host: this one's path keeps it from those of containers."""
    assert re.fullmatch(r"/~[A-Za-z0-9_-]{43}", browser.root)
    root, browser.root = browser.root, ""
    for place in ("", f"/~{'a' * 43}"):
        page = await get(browser, f"{place}/containers")
        assert page.status == 401 and "web" not in page.text and root not in page.text
    assert (await get(browser, f"{root}/sign-in")).status == 404
    assert (await get(browser, root)).status == 404


async def test_the_cookie_is_for_pages_of_its_session_alone(stranger: Browser) -> None:
    cookie = (await asyncio.to_thread(stranger.sign_in)).headers["set-cookie"]
    assert f"; Path={stranger.root}/; " in cookie and "Domain" not in cookie
    cookie = (await post(stranger, "/sign-out")).headers["set-cookie"]
    assert f"=; Path={stranger.root}/; " in cookie


async def test_a_session_that_another_address_uses_is_none(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(served, "peer_of", lambda _: "172.17.0.2")
    assert (await get(browser, "/containers")).status == 401
    assert (await get(browser, "/containers")).status == 401
    assert caplog.text.count("was used from 172.17.0.2") == 1
    monkeypatch.undo()
    assert (await get(browser, "/containers")).status == 200


async def test_who_signs_out_is_out(browser: Browser) -> None:
    page = await post(browser, "/sign-out")
    assert page.status == 200 and "Max-Age=0" in page.headers["set-cookie"]
    assert (await get(browser, "/containers")).status == 401
    # A page that is still open asks for its parts.
    assert (await get(browser, "/containers", x_region="list")).status == 401


async def test_every_answer_has_the_policy(browser: Browser) -> None:
    asset = re.findall(r'(?:src|href)="(/static/[^"]+)"', (await get(browser, "/containers")).text)
    for path in ("/containers", "/nowhere", "/sign-in", *asset):
        headers = (await get(browser, path)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
    assert len(asset) >= 3


async def test_no_page_has_script_or_style_or_an_outside_address_in_it(browser: Browser) -> None:
    text = (await get(browser, "/containers")).text
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    assert re.findall(r'(?:src|href)="(?!/|#)([^"]*)"', text) == ["http://localhost:8080/"]


async def test_connections_that_ask_nothing_keep_nobody_out(browser: Browser) -> None:
    """All users of a host have one address, the loopback's."""
    host, _, port = browser.host.rpartition(":")
    async with contextlib.AsyncExitStack() as held:
        for number in range(LIMITS.peer_connections + 20):
            channel = held.enter_context(socket.socket())
            channel.setblocking(False)
            await asyncio.get_running_loop().sock_connect(channel, (host, int(port)))
            if number % 2:
                await asyncio.get_running_loop().sock_sendall(channel, b"GET / HTTP/1.1\r\nHost: x\r\nX-")
        assert (await get(browser, "/containers")).status == 200


async def test_a_name_that_was_bent_to_us_gets_nothing(browser: Browser) -> None:
    page = await get(browser, "/containers", host="evil.example")
    assert page.status == 403 and "web" not in page.text
    assert (await get(browser, "/containers", host=browser.host.replace("127.0.0.1", "localhost"))).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "", "sec_fetch_site": "cross-site"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
async def test_a_form_of_another_site_changes_nothing(
    engine: FakeEngine, browser: Browser, headers: dict[str, str]
) -> None:
    assert (await post(browser, "/containers/web/stop", None, **headers)).status == 403
    assert not [each for each in engine.asked if each.method == "POST"]


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_form_without_the_token_changes_nothing(engine: FakeEngine, browser: Browser, token: str) -> None:
    page = await post(browser, "/containers/web/stop", {"csrf": token})
    assert page.status == 403 and "load the page again" in page.text
    assert not [each for each in engine.asked if each.method == "POST"]


async def test_a_form_of_ours_changes_something_and_is_told(engine: FakeEngine, browser: Browser) -> None:
    page = await post(browser, "/containers/web/stop", {"next": "/containers"})
    assert (page.status, page.headers["location"]) == (303, "/containers")
    assert engine.last("POST", f"/containers/{'a' * 64}/stop")
    assert "web was stopped." in (await get(browser, "/containers")).text
    assert "web was stopped." not in (await get(browser, "/containers")).text


async def test_the_script_is_answered_in_json(browser: Browser) -> None:
    page = await post(browser, "/containers/web/stop", accept="application/json", x_csrf_token=browser.csrf)
    assert page.status == 200 and b"web was stopped." in page.body


@pytest.mark.parametrize("place", ["//evil.example", "http://evil.example", "/\\evil.example", "/a\nb"])
async def test_a_form_leads_to_no_other_site(browser: Browser, place: str) -> None:
    assert (await post(browser, "/containers/web/stop", {"next": place})).headers["location"] == "/containers/web"


async def test_get_changes_nothing(browser: Browser) -> None:
    page = await get(browser, "/containers/web/stop")
    assert page.status == 405 and "POST" in page.text


async def test_a_page_of_another_site_may_link_to_pages_and_not_read_them(browser: Browser) -> None:
    linked = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert (await get(browser, "/containers", **linked)).status == 200
    assert (await get(browser, "/containers", sec_fetch_site="cross-site", sec_fetch_mode="cors")).status == 403
    assert (await get(browser, "/containers", origin="http://evil.example")).status == 403
    assert (await get(browser, "/live", **linked)).status == 403


async def test_what_the_engine_says_is_escaped_and_grouped(browser: Browser) -> None:
    text = (await get(browser, "/containers")).text
    assert "&lt;b&gt;nginx&lt;/b&gt;" in text and "<b>nginx" not in text
    assert "shop" in text and "healthy" in text and 'href="http://localhost:8080/"' in text


async def test_a_region_is_the_same_without_the_rest(browser: Browser) -> None:
    whole, part = (await get(browser, "/containers")).text, (await get(browser, "/containers", x_region="list")).text
    assert part.strip() in whole and "<html" not in part and "shop" in part
    unknown = await get(browser, "/containers", x_region="nothing")
    assert (unknown.status, unknown.text) == (404, "")


async def test_what_is_not_there_is_said_so(browser: Browser, engine: FakeEngine) -> None:
    engine.answers("GET", "/containers/none/json", failed(404, "No such container: none"))
    page = await get(browser, "/containers/none/remove")
    assert page.status == 404 and "No such container: none" in page.text
    page = await get(browser, "/nowhere")
    assert page.status == 404 and "there is no page at /nowhere" in page.text


async def test_an_engine_that_does_not_answer_is_503(
    browser: Browser, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: Request) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(served, "PAGE_TIME", 0.05)
    engine.answers("GET", "/containers/json", never)
    page = await get(browser, "/containers")
    assert page.status == 503 and "does not answer" in page.text


async def test_a_fault_of_ours_is_500_and_tells_nothing_of_it(
    browser: Browser, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.answers("GET", "/containers/json", {"secret": 1})
    page = await get(browser, "/containers")
    assert page.status == 500 and "secret" not in page.text
    assert "/containers failed" in caplog.text


async def test_a_form_has_a_limit_and_is_a_form(browser: Browser) -> None:
    assert (await post(browser, "/containers/web/stop", {"x": "y" * 70_000})).status == 413
    assert (await post(browser, "/containers/web/stop", content_type="application/json")).status == 415


async def test_what_cannot_be_undone_is_asked_for_first(browser: Browser, engine: FakeEngine) -> None:
    page = await get(browser, "/containers/web/remove")
    assert page.status == 200 and "Remove web?" in page.text and 'name="force"' in page.text
    engine.answers("DELETE", f"/containers/{'a' * 64}", None)
    page = await post(browser, "/containers/web/remove", {"force": "1"})
    assert page.status == 303
    assert engine.last("DELETE", f"/containers/{'a' * 64}").query == {"force": "1", "v": "0", "link": "0"}


@pytest.mark.parametrize("path", ["/images/%ed%a0%80", "/containers/%ff/logs", "/%80"])
async def test_a_path_that_is_no_text_is_refused(browser: Browser, path: str) -> None:
    page = await get(browser, path)
    assert (page.status, page.text) == (400, "The path is not UTF-8.\n")


async def test_read_only_changes_nothing_but_signs_out(client: Client, engine: FakeEngine) -> None:
    async with serve(client, DashboardSettings(address="127.0.0.1:0", read_only=True)) as dashboard:
        browser = Browser(dashboard.site.link())
        await asyncio.to_thread(browser.sign_in)
        text = (await get(browser, "/containers")).text
        assert "read-only" in text and "/stop" not in text
        page = await post(browser, "/containers/web/stop")
        assert page.status == 403 and "read-only" in page.text
        assert not [each for each in engine.asked if each.method == "POST"]
        assert (await post(browser, "/sign-out")).status == 200


async def test_streams_of_a_session_are_limited(browser: Browser) -> None:
    streams = [await asyncio.to_thread(browser.open, "GET", "/live") for _ in range(32)]
    assert (await get(browser, "/live")).status == 429
    for connection, answer in streams:
        assert answer.status == 200
        connection.close()


async def test_it_ends_while_pages_are_open(client: Client) -> None:
    async with serve(client, DashboardSettings(address="127.0.0.1:0")) as dashboard:
        browser = Browser(dashboard.site.link())
        await asyncio.to_thread(browser.sign_in)
        connection, answer = await asyncio.to_thread(browser.open, "GET", "/live")
        assert answer.status == 200
    await asyncio.to_thread(connection.close)


async def test_an_open_address_without_tls_is_refused(client: Client) -> None:
    with pytest.raises(InvalidParameter, match="without TLS"):
        async with serve(client, DashboardSettings(address="0.0.0.0:0")):
            pass
