"""Images on their way in and out over HTTP; pulls are in `test_images`."""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import ClientSession
from yarl import URL

from husk.engine.images.transfers import Distribution
from husk.engine.model.image import ImportOptions, Progress
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import Descriptor, Platform
from tests.unit.api.fake_engine import FakeEngine

ARM = Platform("arm", "linux", "v7")
ARM_TEXT = '{"os": "linux", "architecture": "arm", "variant": "v7"}'
AUTH = base64.urlsafe_b64encode(b'{"username": "me", "password": "x"}').decode()


class Images:
    """A record of what the engine was asked to do with images."""

    def __init__(self, engine: Any) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.body = b""
        for name in ("push", "save", "load", "import_stream", "import_url", "search", "distribution"):
            setattr(engine.images, name, getattr(self, name))

    async def push(self, name: str, tag: str, platform: object, auth: object, report: Any) -> None:
        self.asked.append((name, tag, platform, getattr(auth, "username", None)))
        report(Progress(status="Preparing"))
        if name == "secret":
            raise InvalidParameter("denied")

    async def save(self, names: Sequence[str], platforms: Sequence[Platform]) -> AsyncIterator[bytes]:
        self.asked.append((list(names), list(platforms)))
        if "nothing" in names:
            raise NotFound("No such image: nothing")
        yield b"a "
        yield b"tar"

    async def load(self, archive: AsyncIterator[bytes], platforms: object, quiet: bool, report: Any) -> None:
        self.body = b"".join([piece async for piece in archive])
        self.asked.append((platforms, quiet))
        if not self.body:
            raise InvalidParameter("no archive")
        report(Progress(stream="Loaded image: x\n"))

    async def import_stream(self, archive: AsyncIterator[bytes], options: ImportOptions, report: Any) -> None:
        self.body = b"".join([piece async for piece in archive])
        self.asked.append(("-", options))

    async def import_url(self, url: str, options: ImportOptions, report: Any) -> None:
        self.asked.append((url, options))

    async def search(self, term: str, limit: int, filters: Any, auth: object) -> list[object]:
        self.asked.append((term, limit, filters.get("stars")))
        return []

    async def distribution(self, reference: str, auth: object) -> Distribution:
        return Distribution(Descriptor(media_type="m", digest="sha256:1", size=5), [ARM, Platform("amd64", "linux")])


@pytest.fixture
def images(engine: FakeEngine) -> Images:
    return Images(engine)


async def test_a_push_with_its_platform_and_credentials(client: ClientSession, images: Images) -> None:
    response = await client.post(
        "/images/team/app/push", params={"tag": "1", "platform": ARM_TEXT}, headers={"X-Registry-Auth": AUTH}
    )
    assert response.status == 200 and images.asked == [("team/app", "1", ARM, "me")]
    await client.post("/images/team/app/push", headers={"X-Registry-Auth": "nonsense"})
    assert images.asked[-1][-1] is None, "dockerd goes on without credentials that it cannot read"
    failed = await (await client.post("/images/secret/push")).text()
    assert json.loads(failed.splitlines()[-1])["error"] == "denied"
    assert (await client.post("/images/app/push?platform=linux/arm")).status == 400


async def test_an_archive_of_one_or_several(client: ClientSession, images: Images) -> None:
    one = await client.get("/images/team/app/get")
    assert (await one.read(), one.content_type) == (b"a tar", "application/x-tar")
    await client.get("/images/get", params=[("names", "a"), ("names", "b:1"), ("platform", ARM_TEXT)])
    assert images.asked == [(["team/app"], []), (["a", "b:1"], [ARM])]
    missing = await client.get("/images/nothing/get")
    assert (missing.status, await missing.json()) == (404, {"message": "No such image: nothing"})


async def test_a_load_tells_even_its_first_failure_in_the_stream(client: ClientSession, images: Images) -> None:
    response = await client.post("/images/load?quiet=1", data=b"x" * 3_000_000)
    assert images.asked == [([], True)] and len(images.body) == 3_000_000
    assert json.loads(await response.text()) == {"stream": "Loaded image: x\n"}
    empty = await client.post("/images/load")
    assert empty.status == 200 and json.loads(await empty.text())["error"] == "no archive"
    assert (await client.post("/images/load?platform=x")).status == 400
    assert (await client.post(URL("/images/load?quiet=%ff", encoded=True))).status == 400


async def test_an_import_from_the_body_or_from_the_web(client: ClientSession, images: Images) -> None:
    params = [("fromSrc", "-"), ("repo", "app"), ("tag", "1"), ("changes", "CMD a"), ("changes", "ENV b=1")]
    assert (await client.post("/images/create", params=params, data=b"a tar")).status == 200
    options = ImportOptions(repo="app", tag="1", changes=["CMD a", "ENV b=1"])
    assert images.body == b"a tar" and images.asked == [("-", options)]
    await client.post("/images/create", params={"fromSrc": "http://x/y.tar", "platform": "linux/arm"})
    assert images.asked[-1] == ("http://x/y.tar", ImportOptions(platform="linux/arm"))
    assert (await client.post("/images/create")).status == 400


async def test_what_registries_say(client: ClientSession, images: Images) -> None:
    found = await client.get("/images/search", params={"term": "x", "limit": "5", "filters": '{"stars": ["3"]}'})
    assert await found.json() == [] and images.asked == [("x", 5, ["3"])]
    assert (await client.get("/images/search?term=x&limit=many")).status == 400
    assert (await client.get("/images/search", params={"term": "x", "filters": '{"odd": ["3"]}'})).status == 400
    shown = await (await client.get("/distribution/team/app/json")).json()
    assert shown["Platforms"] == [
        {"architecture": "arm", "os": "linux", "variant": "v7"}, {"architecture": "amd64", "os": "linux"},
    ]  # fmt: skip
    assert shown["Descriptor"]["digest"] == "sha256:1"
