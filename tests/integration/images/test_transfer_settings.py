"""Settings of the daemon about transfers hold: proxies, attempts, and how many at a time."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from husk.aio.tasks import Tasks
from tests.support.daemon import Daemon
from tests.support.fake_registry import Cut, FakeRegistry, Stall
from tests.support.images import busybox_layer
from tests.support.pulling import failed, in_thread, pull, statuses
from tests.support.registry import make_image, tar_of


@pytest.fixture
def daemon_with(tmp_path: Path) -> Iterator[Any]:
    started: list[Daemon] = []

    def start(**settings: object) -> Daemon:
        file = tmp_path / "daemon.json"
        file.write_text(json.dumps({name.replace("_", "-"): value for name, value in settings.items()}))
        started.append(Daemon("--config-file", str(file)))
        started[-1].start()
        return started[-1]

    yield start
    left = [one for daemon in started for one in daemon.close()]
    assert not left, left


async def test_pulls_go_through_the_proxy_of_the_settings(daemon_with: Any, fake: FakeRegistry) -> None:
    fake.add("app", "1", make_image([busybox_layer()], compression="none"))
    daemon = await in_thread(
        lambda: daemon_with(
            proxies={
                "http-proxy": f"http://me:secret@{fake.host}",
                "https-proxy": f"http://{fake.host}",
                "no-proxy": "x",
            },
            insecure_registries=["registry.example"],
        )
    )
    answer = await in_thread(pull, daemon, "registry.example/app", "1")
    assert any(status.startswith("Status: Downloaded newer image") for status in statuses(answer))
    _, path, headers = next(request for request in fake.requests if "/manifests/1" in request[1])
    assert path.startswith("http://registry.example/v2/app/")
    assert headers["Host"] == "registry.example" and headers["Proxy-Authorization"].startswith("Basic ")
    info = (await in_thread(daemon.http, "GET", "/info")).json()
    assert info["HttpProxy"] == f"http://xxxxx:xxxxx@{fake.host}" and info["NoProxy"] == "x"
    assert "secret" not in daemon.log_path.read_text()


async def test_a_layer_is_tried_as_often_as_the_settings_say(daemon_with: Any, fake: FakeRegistry) -> None:
    image = make_image([tar_of({"big": bytes(100_000)})], compression="none")
    fake.add("app", "1", image)
    fake.faults[image.layer_digests[0]] = [Cut(after=0) for _ in range(10)]
    daemon = await in_thread(lambda: daemon_with(max_download_attempts=2))
    assert failed(await in_thread(pull, daemon, f"{fake.host}/app", "1"))
    assert len(fake.asked(image.layer_digests[0])) == 2


async def test_one_download_at_a_time_if_the_settings_say_so(daemon_with: Any, fake: FakeRegistry) -> None:
    image = make_image([busybox_layer(), tar_of({"a": bytes(50_000)})], compression="none")
    fake.add("app", "1", image)
    stall = Stall(1000)
    fake.faults[image.layer_digests[0]] = [stall]
    fake.faults[image.layer_digests[1]] = []
    daemon = await in_thread(lambda: daemon_with(max_concurrent_downloads=1))
    pulling = Tasks().spawn(in_thread(pull, daemon, f"{fake.host}/app", "1"), "pull", awaited=True)
    await asyncio.wait_for(stall.reached.wait(), 20)
    assert [len(fake.asked(digest)) for digest in image.layer_digests] == [1, 0]
    stall.go_on.set()
    assert any(status.startswith("Status: Downloaded") for status in statuses(await pulling))


class Uploads:
    """A registry that takes anything. An upload goes on when as many were under way at once as are expected."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.under_way = self.most = 0
        self.enough = asyncio.Event()
        self.done: list[str] = []

    async def serve(self, request: web.Request) -> web.Response:
        if request.method == "HEAD":
            return web.Response(status=404)
        if request.method == "POST":
            return web.Response(status=202, headers={"Location": f"{request.path}{uuid.uuid4()}"})
        if request.method == "GET" or "/manifests/" in request.path:
            return web.Response(status=201 if request.method == "PUT" else 200)
        if not request.can_read_body:
            return web.Response(status=201)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == self.expected:
            self.enough.set()
        await asyncio.wait_for(self.enough.wait(), 20)
        await request.read()
        self.under_way -= 1
        self.done.append(request.path)
        status = 201 if request.method == "PUT" else 202
        return web.Response(status=status, headers={"Location": request.path})


@pytest.mark.parametrize("limit", [1, 2])
async def test_as_many_uploads_at_a_time_as_the_settings_say(daemon_with: Any, limit: int) -> None:
    daemon = await in_thread(lambda: daemon_with(max_concurrent_uploads=limit))
    uploads = Uploads(limit)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", uploads.serve)
    async with TestServer(app) as server:
        name = f"127.0.0.1:{server.port}/app"
        layers = [busybox_layer(), *(tar_of({f"file{n}": bytes([n]) * 50_000}) for n in range(3))]
        image = make_image(layers, compression="none")
        async with FakeRegistry() as source:
            source.add("app", "1", image)
            await in_thread(daemon.docker, "pull", f"{source.host}/app:1")
            await in_thread(daemon.docker, "tag", f"{source.host}/app:1", f"{name}:1")
        pushed = await in_thread(daemon.docker, "push", f"{name}:1")
        assert "digest: sha256:" in pushed.stdout
    assert (uploads.most, len(uploads.done) >= len(layers)) == (limit, True)
