"""The picture that the README begins with: two Compose projects at work, in the light and in the dark.

HUSK_SCREENSHOTS=docs/images writes it anew; without it, it is made all the same and thrown away.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import ViewportSize

from tests.support.chromium import PATIENCE, Tab
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

SIZE: ViewportSize = {"width": 1400, "height": 480}
SCREENSHOTS = os.environ.get("HUSK_SCREENSHOTS", "")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Bytes; it is fetched by everybody who looks at the README.
MOST = 200_000
# A web server with a page; one who asks it; and one who writes files.
SERVES = "mkdir /www && seq 9999 >/www/index.html && exec httpd -f -p 80 -h /www"
ASKS = "while sleep 0.$((RANDOM % 9 + 1)); do wget -q -O /dev/null http://{} || true; done"
WRITES = "while sleep 0.5; do dd if=/dev/zero of=/data/file bs=64k count=$((RANDOM % 20 + 1)) conv=fsync; done"
# Project, service, command, and more words for `docker run`.
SERVICES = (
    ("shop", "front", SERVES, ("-p", "127.0.0.1::80", "--health-cmd", "wget -q -O /dev/null http://localhost")),
    ("shop", "orders", ASKS.format("front"), ()),
    ("shop", "db", WRITES, ("-v", "orders:/data", "--health-cmd", "true")),
    ("wiki", "pages", SERVES, ("-p", "127.0.0.1::80")),
    ("wiki", "search", ASKS.format("pages"), ()),
)
# True when every chart has so many points that it looks like one.
DRAWN = """least => {
    const points = chart => (chart.innerHTML.match(/[0-9.]+[ ,][0-9.]+/g) || []).length;
    const charts = [...document.querySelectorAll("svg[data-spark]")];
    return charts.length > 0 && charts.every(chart => points(chart) >= least);
}"""


@pytest.fixture(scope="module")
def at_work(shown: Daemon) -> Iterator[Daemon]:
    for project in ("shop", "wiki"):
        shown.docker("network", "create", f"{project}_default")
    for project, service, command, more in SERVICES:
        shown.docker("tag", "busybox", image := f"{project}/{service}:1.4")
        labels = {"com.docker.compose.project": project, "com.docker.compose.service": service}
        words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
        words += ["--name", f"{project}-{service}-1", "--network", f"{project}_default", "--network-alias", service]
        words += ["--health-interval", "2s"] if "--health-cmd" in more else []
        shown.docker("run", "-d", *words, *more, image, "sh", "-c", command)
    yield shown
    shown.remove_containers()


async def test_the_picture_of_the_readme(at_work: Daemon, tab: Tab, tmp_path: Path) -> None:
    page = tab.page
    await page.set_viewport_size(SIZE)
    await tab.open("/containers")
    await page.wait_for_function(DRAWN, arg=40 if SCREENSHOTS else 2, timeout=2 * PATIENCE)
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        picture = Path(SCREENSHOTS or tmp_path) / f"dashboard-{scheme}.png"
        await page.screenshot(path=picture)
        assert picture.stat().st_size <= MOST
