"""The lists and the search as hands use them: fold, sort, filter, tick, the menu of a row, `/` and Ctrl-K."""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.support.chromium import Tab
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def furnished(shown: Daemon) -> Iterator[Daemon]:
    labels = ("--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=front")
    shown.docker("run", "-d", "--init", "--name", "shop-front-1", *labels, "busybox", "top")
    shown.docker("run", "--name", "failed", "busybox", "sh", "-c", "echo 'no such host: cache'; exit 3", check=False)
    shown.docker("create", "--name", "idle", "busybox", "true")
    yield shown
    shown.remove_containers()


async def test_a_folded_project_stays_folded(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/containers")
    row = page.get_by_role("link", name="shop-front-1", exact=True)
    await expect(row).to_be_visible()
    await page.get_by_role("button", name="Fold shop").click()
    await expect(row).to_be_hidden()
    # Something happens: the list is fetched anew.
    furnished.docker("create", "--name", "newcomer", "busybox")
    await expect(page.get_by_role("link", name="newcomer", exact=True)).to_be_visible()
    await expect(row).to_be_hidden()
    await page.reload()
    await expect(row).to_be_hidden()
    await page.get_by_role("button", name="Fold shop").click()
    await expect(row).to_be_visible()
    furnished.docker("rm", "newcomer")


async def test_those_that_are_ticked_are_started_and_removed(furnished: Daemon, tab: Tab) -> None:
    for name in ("one", "two"):
        furnished.docker("create", "--name", name, "busybox", "top")
    page = await tab.open("/containers")
    await expect(page.get_by_role("group", name="What is done")).to_be_hidden()
    for name in ("one", "two"):
        await page.get_by_role("checkbox", name=f"Tick {name}").check()
    await page.get_by_role("group", name="What is done").get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator("#notices")).to_contain_text("2 containers started.")
    # What is ticked stays so while the list changes.
    await expect(page.get_by_role("checkbox", name="Tick two")).to_be_checked()
    assert await tab.faults_of_page() == []
    await page.get_by_role("button", name="Remove…").click()
    await expect(page.locator("main")).to_contain_text("Remove 2 containers?")
    await page.get_by_role("button", name="Remove").click()
    await expect(page.locator("#notices")).to_contain_text("2 containers removed.")


async def test_the_menu_of_a_row_is_worked_by_keyboard(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/containers")
    await page.get_by_role("link", name="More for shop-front-1").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem", name="Stop")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("menuitem", name="Pause")).to_be_focused()
    assert await tab.grave() == []
    await page.keyboard.press("Enter")
    await expect(page.locator("#project-shop td[data-label=State]")).to_contain_text("paused")
    await page.get_by_role("link", name="More for shop-front-1").click()
    await page.get_by_role("menuitem", name="Unpause").click()
    await expect(page.locator("#project-shop td[data-label=State]")).to_contain_text("running")


async def test_the_search_is_reached_and_used_by_keyboard(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/images")
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    await page.keyboard.type("front")
    await expect(page.locator("#hits a.chosen")).to_contain_text("shop-front-1")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/containers/shop-front-1")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("volumes")
    await expect(page.locator("#hits a.chosen")).to_contain_text("Volumes")
    assert await tab.grave() == []
    await page.keyboard.press("Escape")
    await expect(page.locator("#hits")).to_be_hidden()


async def test_the_overview_says_what_needs_somebody_and_leads_there(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/")
    await expect(page.locator("#needs")).to_contain_text("1 thing needs you")
    await expect(page.locator("#needs")).to_contain_text("ended with status 3")
    await page.locator("#needs").get_by_role("link", name="failed").click()
    await expect(page.locator("#why")).to_contain_text("no such host: cache")
    assert await tab.faults_of_page() == []
    await page.get_by_role("link", name="Overview").first.click()
    furnished.docker("rm", "failed")
    await expect(page.locator("#needs")).to_contain_text("All is well")


async def test_a_container_is_run_from_a_form_that_shows_it_as_commands(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/containers")
    await page.get_by_role("link", name="Run…").click()
    await page.get_by_label("Image").fill("busybox")
    await page.get_by_label("Name", exact=True).fill("formed")
    await page.get_by_label("Command").fill("sleep 600")
    await page.get_by_label("Environment").fill("GREETING=good day")
    await expect(page.locator("#preview")).to_contain_text("-e 'GREETING=good day'")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/containers/formed")
    assert "GREETING=good day" in furnished.docker("exec", "formed", "env").stdout
    await page.get_by_role("link", name="Limits…").click()
    await page.get_by_label("Memory").fill("32m")
    await page.get_by_role("button", name="Change", exact=True).click()
    await expect(page.locator("#notices")).to_contain_text("limits of formed were changed")
    assert furnished.docker("inspect", "-f", "{{.HostConfig.Memory}}", "formed").stdout.strip() == str(32 << 20)
    furnished.docker("rm", "-f", "formed")


async def test_the_log_of_a_project_has_levels_and_names(furnished: Daemon, tab: Tab) -> None:
    labels = ("--label", "com.docker.compose.project=talk")
    says = "echo INFO hello from {0}; echo 'ERROR no cache' >&2; exec sleep 600"
    for name in ("one", "two"):
        furnished.docker(
            "run", "-d", "--init", "--name", f"talk-{name}", *labels, "busybox", "sh", "-c", says.format(name)
        )
    page = await tab.open("/containers")
    await page.get_by_role("link", name="Log of all of talk").click()
    await expect(page.locator("[data-log=count]")).to_have_text("4 lines")
    await expect(page.locator(".log-name").first).to_have_text("one")
    await page.get_by_label("Level").select_option("error")
    await expect(page.locator("[data-log=count]")).to_have_text("2 of 4 lines")
    assert await tab.faults_of_page() == []
    furnished.docker("rm", "-f", "talk-one", "talk-two")


async def test_the_colours_are_switched(furnished: Daemon, tab: Tab) -> None:
    page = await tab.open("/")
    await page.get_by_role("button", name="Change to light").click()
    await page.get_by_role("button", name="Change to dark").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = await page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
    await page.get_by_role("button", name="Change to system").click()
    await expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")
    assert dark != await page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
