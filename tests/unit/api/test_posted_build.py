"""`POST /build?version=2` over HTTP: what becomes of its parameters."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from husk.builder.protocol.posted import PostedBuild
from husk.engine.model.image import BuiltImage, Progress, Traced


class Posted:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.wanted: list[PostedBuild] = []
        self.body = b""
        self.uploads: dict[str, bytes] = {}

    async def build(self, wanted: PostedBuild, body: Any, report: Any) -> None:
        self.wanted.append(wanted)
        self.body = b"".join([chunk async for chunk in body])
        report(Progress(id="moby.buildkit.trace", aux=Traced(message=b"abc")))
        report(Progress(id="moby.image.id", aux=BuiltImage(id="sha256:1")))

    async def upload(self, id: str, body: Any) -> None:
        self.uploads[id] = b"".join([chunk async for chunk in body])


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Posted:
    posted = Posted()

    async def server_of(common: Any) -> Any:
        return SimpleNamespace(posted=posted)

    monkeypatch.setattr("husk.api.posted_build.server_of", server_of)
    return posted


async def test_the_answer_carries_messages_of_buildkit(client: ClientSession, posted: Posted) -> None:
    response = await client.post("/build?version=2&t=me/it", data=b"a tar")
    assert response.status == 200
    assert (await response.text()).splitlines() == [
        '{"id":"moby.buildkit.trace","aux":"YWJj"}',
        '{"id":"moby.image.id","aux":{"ID":"sha256:1"}}',
    ]
    assert posted.body == b"a tar"
    (exporter,) = posted.wanted[0].exporters
    assert (exporter.type, exporter.attrs) == ("moby", {"name": "docker.io/me/it:latest"})


async def test_parameters_become_attributes(client: ClientSession, posted: Posted) -> None:
    query = (
        "version=2&session=s&buildid=b&remote=client-session&dockerfile=d/File&target=prod&nocache=1&pull=1&networkmode=host"
        '&shmsize=1000&memory=5&memswap=-1&buildargs={"A":"1","B":null,"BUILDKIT_INLINE_CACHE":"1"}&labels={"x":"y"}'
        '&extrahosts=db:10.0.0.1&ulimits=[{"Name":"nofile","Soft":1,"Hard":2}]&cachefrom=["a"]&platform=linux/arm64'
    )
    await client.post(f"/build?{query}")
    (wanted,) = posted.wanted
    assert (wanted.id, wanted.session, wanted.remote) == ("b", "s", "client-session")
    assert (wanted.cache_from, wanted.inline_cache, wanted.entitlements) == (["a"], True, ["network.host"])
    assert wanted.attributes == {
        "target": "prod",
        "filename": "d/File",
        "platform": "linux/arm64",
        "force-network-mode": "host",
        "add-hosts": "db=10.0.0.1",
        "shm-size": "1000",
        "ulimit": "nofile=1:2",
        "image-resolve-mode": "pull",
        "memory": "5",
        "memswap": "-1",
        "build-arg:A": "1",
        "build-arg:BUILDKIT_INLINE_CACHE": "1",
        "label:x": "y",
        "no-cache": "",
    }


async def test_outputs(client: ClientSession, posted: Posted) -> None:
    await client.post('/build?version=2&outputs=[{"Type":"tar","Attrs":{"a":"b"}}]')
    await client.post('/build?version=2&outputs=[{"Type":"cacheonly","Attrs":null}]')
    first, second = (wanted.exporters for wanted in posted.wanted)
    assert [(one.type, one.attrs) for one in first] == [("tar", {"a": "b"})]
    assert list(second) == []


async def test_a_context_may_come_with_another_request(client: ClientSession, posted: Posted) -> None:
    response = await client.post("/build?version=2&buildid=upload-request:b", data=b"mine")
    assert (response.status, posted.uploads) == (200, {"b": b"mine"})


async def test_networks_that_steps_cannot_have(client: ClientSession, posted: Posted) -> None:
    response = await client.post("/build?version=2&networkmode=mine")
    assert response.status == 400
    assert "not supported by buildkit" in await response.text()
