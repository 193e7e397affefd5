"""Every page in a real browser: nothing in its console, nothing forbidden by its policy, nothing grave for axe."""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.support.chromium import Tab
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

PATHS = (
    "/", "/containers", "/search?q=shop", "/run", "/run?from=shop-db-1", "/containers/shop-db-1/limits",
    "/images", "/images/prune", "/volumes", "/volumes/data", "/volumes/data/remove", "/networks",
    "/networks/inner", "/services", "/services/web", "/nodes", "/secrets", "/builds", "/builds/cache",
    "/projects/shop/remove", "/disk", "/events", "/health", "/nowhere",
)  # fmt: skip


@pytest.fixture(scope="module")
def furnished(shown: Daemon) -> Iterator[Daemon]:
    """A daemon with one of everything."""
    shown.docker("network", "create", "inner")
    for name, service in (("shop-front-1", "front"), ("shop-db-1", "db")):
        labels = ("--label", "com.docker.compose.project=shop", "--label", f"com.docker.compose.service={service}")
        shown.docker("run", "-d", "--name", name, *labels, "-v", "data:/data", "--network", "inner", "busybox", "top")
    shown.docker("create", "--name", "idle", "busybox")
    shown.docker("swarm", "init")
    shown.docker("secret", "create", "password", "-", input="hunter2")
    shown.docker("service", "create", "--quiet", "--detach", "--name", "web", "busybox", "top")
    yield shown
    shown.docker("service", "rm", "web")
    shown.docker("swarm", "leave", "--force")


async def test_pages_have_no_faults(furnished: Daemon, tab: Tab) -> None:
    """All of it in one go, for opening a page is what takes time."""
    found: list[str] = []
    for path in PATHS:
        page = await tab.open(path)
        await expect(page.locator("h1")).to_be_visible()
        found += await tab.faults_of_page()
    tab.forgive(404)
    assert found + tab.faults == []
    assert "hunter2" not in await (await tab.open("/secrets")).content()


async def test_a_keyboard_is_enough(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/images")
    await page.keyboard.press("Tab")
    await expect(page.locator(":focus")).to_have_text("Skip to the content")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.locator("#pull-name")).to_be_focused()
    await page.goto(tab.origin + tab.root + "/volumes/data/remove")
    await page.get_by_role("link", name="Cancel").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/volumes/data")


async def test_what_happens_is_seen_without_loading_again(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/volumes")
    furnished.docker("volume", "create", "newcomer")
    await expect(page.get_by_role("link", name="newcomer")).to_be_visible()
    furnished.docker("volume", "rm", "newcomer")
    await expect(page.get_by_role("link", name="newcomer")).to_have_count(0)
