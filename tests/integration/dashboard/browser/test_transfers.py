"""A pull, seen in a real browser: a bar for each layer, which fills as the layer comes."""

import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from playwright.async_api import expect

from tests.support.chromium import Tab
from tests.support.daemon import Daemon
from tests.support.registry import make_image, tar_of
from tests.support.web import WebServer

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]


class Held:
    """A registry with one image of two layers, whose second is held back in its middle until it is let go."""

    def __init__(self, web: WebServer) -> None:
        noise = random.Random(1)
        image = make_image([tar_of({"one": b"1"}), tar_of({"two": noise.randbytes(3 << 20)})])
        self.host = web.url.removeprefix("http://")
        self.go_on = threading.Event()
        self.short = image.layer_digests[1].removeprefix("sha256:")[:12]
        web.files["/v2/"] = b"{}"
        for reference in ("latest", image.digest):
            web.files[f"/v2/app/manifests/{reference}"] = image.manifest
            web.headers[f"/v2/app/manifests/{reference}"] = {"Content-Type": image.media_type}
        for digest, blob in image.blobs.items():
            web.files[f"/v2/app/blobs/{digest}"] = blob
        slow = image.blobs[image.layer_digests[1]]

        def half(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.send_header("Content-Length", str(len(slow)))
            request.end_headers()
            request.wfile.write(slow[: len(slow) // 2])
            self.go_on.wait(100)
            request.wfile.write(slow[len(slow) // 2 :])

        web.pages[f"/v2/app/blobs/{image.layer_digests[1]}"] = half


@pytest.fixture
def held() -> Iterator[Held]:
    with WebServer() as web:
        found = Held(web)
        try:
            yield found
        finally:
            found.go_on.set()


async def test_a_pull_has_a_bar_for_each_layer(shown: Daemon, tab: Tab, held: Held) -> None:
    page = await tab.open("/images")
    await page.get_by_label("Pull an image").fill(f"{held.host}/app")
    await page.get_by_role("button", name="Pull").click()
    await page.wait_for_url("**/images/transfers/*")
    bars = page.locator("progress")
    await expect(bars).to_have_count(2)
    bar = page.get_by_label(f"layer {held.short}")
    await page.wait_for_function("bar => 0 < bar.position && bar.position < 1", arg=await bar.element_handle())
    await expect(page.locator("#transfer")).to_contain_text("running")
    held.go_on.set()
    await expect(page.locator("#transfer")).to_contain_text("done")
    assert await bars.evaluate_all("bars => bars.map(bar => bar.position)") == [1, 1]
    await page.get_by_role("link", name="All images").click()
    await page.get_by_role("link", name=f"{held.host}/app:latest", exact=True).click()
    await expect(page.get_by_role("rowheader", name="layer 1")).to_be_visible()
    await page.get_by_role("link", name="Remove…").click()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.locator("#notices")).to_contain_text("was removed")


async def test_a_pull_that_fails_says_why(shown: Daemon, tab: Tab) -> None:
    page = await tab.open("/images")
    await page.get_by_label("Pull an image").fill("127.0.0.1:1/none")
    await page.get_by_role("button", name="Pull").click()
    await expect(page.locator("#transfer")).to_contain_text("failed")
    await expect(page.locator("#transfer")).to_contain_text("connection refused")
