"""Signing in with a real browser, and what other sites try with it."""

from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Route, expect

from tests.support.chromium import FOREIGN, Tab
from tests.support.daemon import Daemon
from tests.support.dashboard import links, new_link
from tests.support.waiting import until
from tests.support.web import WebServer

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

FORM = """<!doctype html><form method="post" action="{action}"><input name="name" value="stolen"></form>
<script>document.forms[0].submit()</script>"""
POST = """async ([path, headers]) =>
    (await fetch(path, {method: "POST", headers, body: new URLSearchParams({name: "stolen"})})).status"""


@pytest.fixture
def elsewhere() -> Iterator[WebServer]:
    """A container's port on this host: to a browser it is the same site with another origin."""
    with WebServer() as web:
        yield web


def volumes(daemon: Daemon) -> list[str]:
    return [each["Name"] for each in daemon.http("GET", "/volumes").json()["Volumes"] or []]


async def test_a_link_signs_in_once_and_a_session_ends(shown: Daemon, chromium: Browser, tab: Tab) -> None:
    cookies = await tab.page.context.cookies()
    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]
    link = new_link(shown)
    await tab.page.goto(link)
    context = await chromium.new_context()
    try:
        page = await context.new_page()
        await page.goto(link)
        await expect(page.locator("main")).to_contain_text("used already")
        await page.goto(tab.origin + "/containers")
        await expect(page.locator("h1")).to_contain_text("Sign in")
    finally:
        await context.close()
    await tab.open("/containers")
    await tab.page.get_by_role("button", name="Sign out").click()
    await expect(tab.page.locator("h1")).to_contain_text("signed out")
    await tab.open("/containers")
    await expect(tab.page.locator("h1")).to_contain_text("Sign in")
    tab.forgive(401)


async def test_the_end_of_a_session_is_told_though_the_page_hears_of_it_first(tab: Tab) -> None:
    page = await tab.open("/containers")

    async def late(route: Route) -> None:
        async with page.expect_response(lambda answer: answer.status == 401):
            answer = await route.fetch(max_redirects=0)
        await route.fulfill(response=answer)

    await page.route("**/sign-out", late)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.locator("h1")).to_contain_text("signed out")
    tab.forgive(401)


async def test_another_port_of_this_host_never_gets_the_session(tab: Tab, elsewhere: WebServer) -> None:
    """Cookies know no ports. A person who is led there, and pages there that ask for themselves, are the same site."""
    here = elsewhere.url.rpartition(":")[2]
    html = f"""<!doctype html><a href="/second">again</a><img src="/picture"><iframe src="/framed"></iframe>
        <script>fetch("/fetched", {{credentials: "include"}}).then(() => document.title = "done")</script>{here}"""
    for path in ("/", "/second"):
        elsewhere.files[path] = html.encode()
        elsewhere.headers[path] = {"Content-Type": "text/html"}
    page = await tab.open("/containers")
    # As a link on the page of a container does it, and by the name that the dashboard has.
    await page.evaluate(
        "url => document.querySelector('main').append(Object.assign(document.createElement('a'), "
        "{href: url, textContent: 'led away'}))",
        elsewhere.url,
    )
    await page.get_by_text("led away").click()
    await expect(page).to_have_title("done")
    await page.get_by_text("again").click()
    await page.wait_for_url("**/second")
    await expect(page).to_have_title("done")
    assert {"/", "/second", "/fetched", "/framed", "/picture"} <= set(elsewhere.paths())
    for path, headers in elsewhere.asked:
        assert "cookie" not in headers and tab.root not in headers.get("referer", ""), (path, headers)
    assert await page.evaluate("[document.referrer.includes('~'), localStorage.length, window.opener]") == [
        False, 0, None,
    ]  # fmt: skip
    await tab.open("/containers")
    await expect(page.locator("h1")).to_have_text("Containers")
    tab.forgive(404)


async def test_a_browser_that_has_signed_in_finds_its_session_again(tab: Tab) -> None:
    page = await tab.open("/containers")
    for path in ("/", "/events?type=image", f"/~{'a' * 43}/events?type=image"):
        await page.goto(tab.origin + path)
        await page.wait_for_url(f"{tab.origin}{tab.root}/{'events?type=image' if 'events' in path else ''}")
    tab.forgive(401)


async def test_a_form_of_another_site_changes_nothing(shown: Daemon, tab: Tab, elsewhere: WebServer) -> None:
    elsewhere.files["/"] = FORM.format(action=f"{tab.origin}{tab.root}/volumes/create").encode()
    elsewhere.headers["/"] = {"Content-Type": "text/html"}
    async with tab.page.expect_response("**/volumes/create") as told:
        await tab.page.goto(elsewhere.url)
    assert (await told.value).status == 403
    assert "stolen" not in volumes(shown)
    tab.forgive(403)
    tab.forgive(404)


async def test_a_change_needs_the_token_of_the_session(shown: Daemon, tab: Tab) -> None:
    page = await tab.open("/volumes")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for headers in (form, {**form, "X-CSRF-Token": "guessed"}):
        assert await page.evaluate(POST, [f"{tab.root}/volumes/create", headers]) == 403
    assert "stolen" not in volumes(shown)
    tab.forgive(403)


async def test_a_name_that_was_bent_to_us_shows_nothing(shown: Daemon, tab: Tab) -> None:
    port = tab.origin.rpartition(":")[2]
    answer = await tab.page.goto(f"http://{FOREIGN}:{port}/containers")
    assert answer is not None and answer.status == 403
    assert "not known by that name" in await tab.page.content()
    tab.forgive_all()  # the browser does not trust that place either, and says so


async def test_a_read_only_dashboard_changes_nothing(chromium: Browser) -> None:
    with Daemon("--dashboard", "127.0.0.1:0", "--dashboard-read-only") as daemon:
        link = until(lambda: links(daemon), "the link of the dashboard")[0]
        context = await chromium.new_context()
        try:
            tab = Tab(await context.new_page(), link)
            await tab.sign_in(link)
            page = await tab.open("/volumes")
            await expect(page.get_by_text("read-only")).to_be_visible()
            await expect(page.get_by_role("button", name="Create")).to_have_count(0)
            token = await page.locator('meta[name="husk-csrf"]').get_attribute("content")
            headers = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": token}
            assert await page.evaluate(POST, [f"{tab.root}/volumes/create", headers]) == 403
            assert volumes(daemon) == []
        finally:
            await context.close()
