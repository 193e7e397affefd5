"""Compose projects and builds in a real browser."""

import signal
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.building import buildkit_builds
from tests.support.chromium import Tab
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]


async def test_a_project_is_stopped_started_and_removed_as_a_whole(shown: Daemon, tab: Tab) -> None:
    shown.docker("volume", "create", "--label", "com.docker.compose.project=shop", "shop_data")
    for service in ("front", "db"):
        labels = ("--label", "com.docker.compose.project=shop", "--label", f"com.docker.compose.service={service}")
        shown.docker("run", "-d", "--init", "--name", f"shop-{service}-1", *labels, "busybox", "sleep", "3600")
    shown.docker("create", "--name", "beside", "busybox", "sleep", "3600")
    page = await tab.open("/containers")
    states = page.locator("#project-shop td[data-label=State]")
    await expect(states).to_contain_text(["running", "running"])
    await page.get_by_role("button", name="Stop all of shop").click()
    await expect(page.locator("#notices")).to_contain_text("shop: 2 containers stopped.")
    await expect(states).to_contain_text(["exited", "exited"])
    await page.get_by_role("button", name="Start all of shop", exact=True).click()
    await expect(states).to_contain_text(["running", "running"])
    await page.get_by_role("link", name="Remove all of shop").click()
    await expect(page.locator("main")).to_contain_text("shop-db-1, shop-front-1")
    assert await tab.faults_of_page() == []
    await page.get_by_label("Also its volumes").check()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.locator("#notices")).to_contain_text("The project shop was removed.")
    await expect(page.locator("#list")).to_contain_text("beside")
    await expect(page.locator("#list")).not_to_contain_text("shop")
    assert shown.docker("volume", "ls", "-q").stdout == ""


async def test_a_build_is_seen_while_it_runs_and_after(shown: Daemon, tab: Tab, tmp_path: Path) -> None:
    page = await tab.open("/builds")
    await expect(page.locator("#list")).to_contain_text("Nothing was built yet")
    with buildkit_builds(shown, tmp_path) as builds:
        builds.context.write({"Dockerfile": "FROM busybox\nRUN echo a word from inside; sleep 3600\n"})
        command = ["docker", "build", "-t", "shop/app", str(builds.context.path)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=builds.environment, stdout=quiet, stderr=quiet) as client:
            try:
                await page.get_by_role("link", name="shop/app").click()
                await expect(page.locator(".steps")).to_contain_text("a word from inside")
                await expect(page.locator(".summary .state")).to_have_text("running")
            finally:
                client.send_signal(signal.SIGINT)
        # It is the same page, and nobody has loaded it again.
        await expect(page.locator(".summary .state")).to_have_text("failed")
        await expect(page.locator("#list > .notice.bad")).to_contain_text("cancel")
        assert await tab.faults_of_page() == []
        await page.get_by_role("link", name="Cache").click()
        await expect(page.locator("h1")).to_be_visible()
        assert await tab.faults_of_page() == []
