"""Every page in a real browser: nothing in its console, nothing forbidden by its policy, nothing grave for axe."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.support.chromium import AXE, Tab
from tests.support.daemon import Daemon

pytestmark = pytest.mark.timeout(300)

PATHS = (
    "/containers", "/images", "/images/prune", "/volumes", "/volumes/data", "/volumes/data/remove", "/networks",
    "/networks/inner", "/services", "/services/web", "/nodes", "/secrets", "/builds", "/disk", "/events", "/health",
    "/nowhere",
)  # fmt: skip
DESK: ViewportSize = {"width": 1200, "height": 640}
PHONE: ViewportSize = {"width": 360, "height": 740}
# Where the README's picture is written to, when it is to be made anew.
SCREENSHOTS = os.environ.get("HUSK_SCREENSHOTS", "")


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


def test_pages_have_no_faults(furnished: Daemon, tab: Tab) -> None:
    """All of it in one go, for opening a page is what takes time."""
    found: list[str] = []
    for path in PATHS:
        page = tab.open(path)
        expect(page.locator("h1")).to_be_visible()
        if AXE.exists():
            found += tab.grave()
            page.emulate_media(color_scheme="dark")
            found += tab.grave("color-contrast")
            page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [f"{path} is {wide} pixels too wide for a phone"] if wide > 0 else []
        page.set_viewport_size(DESK)
    tab.forgive(404)
    assert found + tab.faults == []
    assert "hunter2" not in tab.open("/secrets").content()


def test_a_keyboard_is_enough(furnished: Daemon, tab: Tab) -> None:
    page = tab.open("/images")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#pull-name")).to_be_focused()
    page.goto(tab.origin + "/volumes/data/remove")
    page.get_by_role("link", name="Cancel").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/volumes/data")


def test_what_happens_is_seen_without_loading_again(furnished: Daemon, tab: Tab) -> None:
    page = tab.open("/volumes")
    furnished.docker("volume", "create", "newcomer")
    expect(page.get_by_role("link", name="newcomer")).to_be_visible()
    furnished.docker("volume", "rm", "newcomer")
    expect(page.get_by_role("link", name="newcomer")).to_have_count(0)


@pytest.mark.skipif(not SCREENSHOTS, reason="HUSK_SCREENSHOTS=docs/images writes the picture of the README")
def test_the_picture_of_the_readme(furnished: Daemon, tab: Tab) -> None:
    tab.page.set_viewport_size(DESK)
    tab.open("/containers").wait_for_timeout(3000)
    tab.page.screenshot(path=Path(SCREENSHOTS) / "dashboard.png")
