"""The pages of one container in a real browser: its log, a terminal, files, secrets, and what axe says of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.chromium import Tab
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

TABS = (
    "", "/logs", "/stats", "/terminal", "/terminal?command=sh", "/files", "/files?path=/etc/hostname", "/processes",
    "/environment", "/inspect", "/remove", "/kill",
)  # fmt: skip
MANY = 200_000
AT_ITS_END = """
([view, height]) => window.innerHeight === height && view.scrollTop + view.clientHeight > view.scrollHeight - 3
"""
WRITES = f"""
printf '\\033[31mred\\033[0m and \\033[1mbold\\033[0m\\n'; echo 'an <error>' >&2
seq 1 {MANY} | sed 's/^/line /'; exec sleep 3600
"""


@pytest.fixture(scope="module")
def box(shown: Daemon) -> Iterator[str]:
    shown.docker("run", "-d", "--init", "--name", "box", "-e", "TOKEN=hunter2", "busybox", "sh", "-c", WRITES)
    yield "box"
    shown.remove_containers()


def write(daemon: Daemon, text: str, stream: int = 1) -> None:
    """A line in the log of the container, from now."""
    daemon.docker("exec", "box", "sh", "-c", f"echo '{text}' > /proc/1/fd/{stream}")


async def test_its_pages_have_no_faults(shown: Daemon, box: str, tab: Tab) -> None:
    found: list[str] = []
    for end in TABS:
        page = await tab.open(f"/containers/{box}{end}")
        await expect(page.locator("h1")).to_have_count(1)
        if end.startswith("/terminal?"):
            await expect(page.locator(".xterm-rows")).to_contain_text("#")
        if end == "/inspect":
            await page.locator("summary", has_text="HostConfig").click()
        found += await tab.faults_of_page()
    assert found == []


async def opened(tab: Tab, box: str, query: str = "tail=all") -> tuple[Page, Locator]:
    """The page of the log, when all lines are there; and what is in view."""
    page = await tab.open(f"/containers/{box}/logs?{query}")
    await expect(page.locator('[data-log="count"]')).to_contain_text("lines")
    return page, page.locator(".log-view")


async def test_a_log_of_many_lines_follows(shown: Daemon, box: str, tab: Tab) -> None:
    page, view = await opened(tab, box)
    rows = view.locator(".log-row")
    await expect(rows.last).to_have_text(f"line {MANY}")
    write(shown, "the newest")
    await expect(rows.last).to_have_text("the newest")
    # Of all these lines only those in view are elements.
    assert await rows.count() < 200
    follow = page.get_by_label("Follow")
    # A window of another size is no wish to stop following.
    for height in (900, 500, 700):
        await page.set_viewport_size({"width": 1200, "height": height})
        await page.wait_for_function(AT_ITS_END, arg=[await view.element_handle(), height])
    await expect(follow).to_be_checked()
    # Whoever scrolls up stays there.
    await view.evaluate("view => { view.scrollTop = 0; }")
    await expect(rows.first).to_contain_text("red and bold")
    await expect(follow).not_to_be_checked()
    write(shown, "not seen yet")
    await expect(page.locator('[data-log="count"]')).to_contain_text(f"{MANY + 4} lines")
    await expect(rows.first).to_contain_text("red and bold")
    await follow.check()
    await expect(rows.last).to_have_text("not seen yet")


async def test_whoever_scrolls_up_stays_there_though_new_lines_are_about_to_be_drawn(
    shown: Daemon, box: str, tab: Tab
) -> None:
    page, view = await opened(tab, box)
    rows = view.locator(".log-row")
    await expect(rows.last).to_be_visible()
    await view.evaluate("view => { view.dispatchEvent(new Event('scroll')); view.scrollTop = 0; }")
    await expect(page.get_by_label("Follow")).not_to_be_checked()
    await expect(rows.first).to_contain_text("red and bold")


async def test_a_log_is_searched_and_shows_streams_times_and_colours(shown: Daemon, box: str, tab: Tab) -> None:
    page, view = await opened(tab, box)
    rows = view.locator(".log-row")
    await expect(rows.last).to_be_visible()
    search, count = page.get_by_label("Search here"), page.locator('[data-log="count"]')
    await search.fill("LINE 123456")
    await expect(rows).to_have_text(["line 123456"])
    await expect(view.locator("mark")).to_have_text("line 123456")
    await expect(count).to_contain_text("1 of ")
    await search.fill("red and")
    await expect(view.locator(".ansi-fg-1")).to_have_text("red")
    await search.fill("")
    await page.locator('[data-log="stream"]').select_option("stderr")
    await expect(rows).to_have_text(["an <error>"])
    await page.get_by_label("Times").check()
    await expect(rows.locator("time")).to_have_count(1)
    # The same by the server, for who wants to read less.
    page, view = await opened(tab, box, "tail=all&stream=stdout&search=line+1999")
    await expect(page.locator('[data-log="count"]')).to_have_text("111 lines")


async def test_a_terminal_is_typed_at(shown: Daemon, box: str, tab: Tab) -> None:
    page = await tab.open(f"/containers/{box}/terminal")
    await page.get_by_role("button", name="Open").click()
    screen = page.locator(".xterm-rows")
    await expect(screen).to_contain_text("#")
    await page.keyboard.type("echo $((6*7)) is it; stty size\n")
    await expect(screen).to_contain_text("42 is it")
    size = await page.evaluate("() => document.querySelector('.xterm-rows').children.length")
    await expect(screen).to_contain_text(f"{size} ")
    await page.set_viewport_size({"width": 700, "height": 400})
    await page.wait_for_function("before => document.querySelector('.xterm-rows').children.length < before", arg=size)
    rows = await page.evaluate("() => document.querySelector('.xterm-rows').children.length")
    await page.keyboard.type("clear; stty size\n")
    await expect(screen).to_contain_text(f"{rows} ")
    # Colours that no class has.
    await page.keyboard.type("clear; printf '\\033[38;2;10;200;30mgreen\\033[0m\\n'\n")
    await expect(screen.locator("span", has_text="green").first).to_have_css("color", "rgb(10, 200, 30)")
    await page.keyboard.type("exit 3\n")
    await expect(screen).to_contain_text("ended with status 3")


async def test_a_terminal_is_left_by_keyboard(shown: Daemon, box: str, tab: Tab) -> None:
    page = await tab.open(f"/containers/{box}/terminal?command=cat")
    typed = page.locator(".xterm-helper-textarea")
    await expect(typed).to_be_focused()
    # Tab is the shell's, unless Escape was before it.
    await page.keyboard.press("Tab")
    await expect(typed).to_be_focused()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await expect(typed).not_to_be_focused()


async def test_files_go_up_and_down(shown: Daemon, box: str, tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "note one.txt").write_text("written here\n")
    page = await tab.open(f"/containers/{box}/files?path=/tmp")
    await page.locator("#upload").set_input_files(tmp_path / "note one.txt")
    await expect(page.locator("#notices")).to_contain_text("/tmp/note one.txt was written")
    await page.get_by_role("link", name="note one.txt", exact=True).click()
    await expect(page.locator("pre")).to_have_text("written here")
    async with page.expect_download() as coming:
        await page.get_by_role("link", name="Download").click()
    assert Path(await (await coming.value).path()).read_text() == "written here\n"


async def test_secrets_are_hidden_until_they_are_asked_for(shown: Daemon, box: str, tab: Tab) -> None:
    page = await tab.open(f"/containers/{box}/environment")
    assert "hunter2" not in await page.content()
    await page.get_by_role("link", name="Show TOKEN").click()
    await expect(page.get_by_text("hunter2")).to_be_visible()


async def test_stats_are_drawn_and_go_on(shown: Daemon, box: str, tab: Tab) -> None:
    page = await tab.open(f"/containers/{box}/stats")
    memory = page.locator('svg[data-hour="memory"] path.line')
    await expect(memory).to_have_count(1)
    before = await memory.get_attribute("d")
    await expect(memory).not_to_have_attribute("d", before or "")
    await expect(page.locator('[data-stat="memory"]')).to_contain_text("B")


async def test_it_is_stopped_and_started_where_it_is_looked_at(shown: Daemon, box: str, tab: Tab) -> None:
    page = await tab.open(f"/containers/{box}")
    standing = page.locator("#standing")
    await standing.get_by_role("button", name="Pause").click()
    await expect(standing).to_contain_text("paused")
    await standing.get_by_role("button", name="Unpause").click()
    await expect(standing).to_contain_text("running")
    await standing.get_by_role("link", name="Kill…").click()
    await page.get_by_role("link", name="Cancel").click()
    await expect(page.locator("h1")).to_contain_text("Containers")
    await expect(page.locator("tr", has_text="box")).to_contain_text("running")
