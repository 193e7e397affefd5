"""A real browser for tests of the dashboard: Debian's chromium, driven by Playwright, and what it complains about.

Not by Playwright's own face without asyncio: its greenlets break the tracebacks of pytest in Python 3.11.2, Debian's.
"""

import os
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, ConsoleMessage, Page, ViewportSize, async_playwright, expect

from tests.support.quiet_net import quiet_net

AXE = Path(__file__).resolve().parents[2] / ".venv/vendor/axe.min.js"
# Milliseconds; much on a busy host.
PATIENCE = 30_000
PHONE: ViewportSize = {"width": 360, "height": 740}
# A name of somebody else that leads to this host.
FOREIGN = "foreign.example"
_NAMES = ("chromium", "google-chrome")
expect.set_options(timeout=PATIENCE)
# What axe calls bad enough.
_GRAVE = ("serious", "critical")


def program() -> str | None:
    """The browser that is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@asynccontextmanager
async def started(scratch: Path) -> AsyncIterator[Browser]:
    """A browser as long as it is wanted, in a network where nothing changes but what its pages do."""
    arguments = ["--disable-gpu", "--disable-dev-shm-usage", "--proxy-bypass-list=<-loopback>"]
    # Its sandbox wants a user; what it shows here is our own.
    arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
    with quiet_net() as net:
        launcher = scratch / "chromium"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join([*net.enter, str(program())])} "$@"\n')
        launcher.chmod(0o755)
        arguments.append(f"--proxy-server={net.proxy}")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=launcher, args=arguments, timeout=4 * PATIENCE)
            try:
                yield browser
            finally:
                await browser.close()


class Tab:
    """A page of a browser. `faults` are its console's errors, scripts that failed, and what the policy forbade."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        self.origin = link.partition("/sign-in")[0]
        # What stands before the paths of its session.
        self.root = ""
        self._faults: list[str] = []
        self._forgiven: set[str] = set()
        page.set_default_timeout(PATIENCE)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._faults.append(f"script: {error}"))

    async def open(self, path: str) -> Page:
        """Go to a path of the dashboard."""
        await self.page.goto(self.origin + self.root + path)
        return self.page

    async def sign_in(self, link: str) -> None:
        await self.page.goto(link)
        await self.page.wait_for_url("**/~*/")
        self.root = urlsplit(self.page.url).path.removesuffix("/")

    @property
    def faults(self) -> list[str]:
        """The complaints of scripts and the console."""
        return [each for each in self._faults if not any(one in each for one in self._forgiven)]

    def forgive(self, status: int) -> None:
        """The test wanted an answer with this status; the console may tell of it only later."""
        self._forgiven.add(f"status of {status} ")

    def forgive_all(self) -> None:
        """Forgive all complaints, those of before and those that come."""
        self._forgiven.add("")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._faults.append(f"{message.type}: {message.text} ({self.page.url})")

    async def faults_of_page(self) -> list[str]:
        """Return the faults of the page that is open: for axe in light and in dark, and by its width on a phone."""
        page, found = self.page, []
        size = page.viewport_size
        if AXE.exists():
            found += await self.grave()
            await page.emulate_media(color_scheme="dark")
            found += await self.grave("color-contrast")
            await page.emulate_media(color_scheme="light")
        await page.set_viewport_size(PHONE)
        wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [f"{page.url} is {wide} pixels too wide for a phone"] if wide > 0 else []
        if size is not None:
            await page.set_viewport_size(size)
        return found

    async def grave(self, *rules: str) -> list[str]:
        """Return the serious and critical findings of axe on the page that is open; of all its rules, or of some."""
        # As a program, not as an element: the page's policy forbids such.
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found: dict[str, Any] = await self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{self.page.url}: {each['id']} ({each['impact']}): {node['html'][:200]} {node.get('failureSummary')}"
            for each in found["violations"]
            if each["impact"] in _GRAVE
            for node in each["nodes"]
        ]
