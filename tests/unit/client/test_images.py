import pytest

from husk.api.http.response import Response
from husk.client.images import Image, progress, registry_auth, split_tag
from husk.errors import CommandFailed


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a", "")),
        ("a:1", ("a", "1")),
        ("h:5/a", ("h:5/a", "")),
        ("h:5/a:1", ("h:5/a", "1")),
    ],
)
def test_names_and_tags(name, parts):
    assert split_tag(name) == parts


def test_progress_of_a_layer():
    line = {"status": "Downloading", "id": "abc", "progressDetail": {"current": 1, "total": 2}}
    found = progress(line)
    assert (found.status, found.id, found.current, found.total) == ("Downloading", "abc", 1, 2)


def test_a_failure_in_the_stream():
    with pytest.raises(CommandFailed, match="denied"):
        progress({"error": "denied", "errorDetail": {"message": "denied"}})


def test_credentials_as_the_header_has_them():
    assert registry_auth({"username": "a", "password": "b"}) == "eyJ1c2VybmFtZSI6ImEiLCJwYXNzd29yZCI6ImIifQ=="


def test_an_image_without_a_name(calls):
    image = Image(calls, {"Id": "sha256:" + "a" * 64, "RepoTags": ["<none>:<none>"]})
    assert (image.tags, image.short_id, image.labels) == ([], "a" * 12, {})


async def test_pulling(client, engine):
    engine.answers("POST", "/images/create", Response(200, b'{"status":"Pulling"}\r\n{"status":"Done","id":"x"}\r\n'))
    engine.answers("GET", "/images/busybox/json", {"Id": "sha256:1"})
    image = await client.images.pull("busybox", auth={"username": "a", "password": "b"})
    assert image.id == "sha256:1"
    asked = engine.last("POST", "/images/create")
    assert asked.query["fromImage"] == "busybox:latest"
    assert "x-registry-auth" in asked.headers


async def test_a_pull_that_fails(client, engine):
    engine.answers("POST", "/images/create", Response(200, b'{"error":"not there"}\n'))
    with pytest.raises(CommandFailed, match="not there"):
        await client.images.pull("busybox:1")


async def test_listing(client, engine):
    engine.answers("GET", "/images/json", [{"Id": "sha256:1"}])
    assert [image.id for image in await client.images.list(filters={"dangling": True})] == ["sha256:1"]
    assert engine.last("GET", "/images/json").query == {"all": "0", "filters": '{"dangling":["true"]}'}


async def test_asking_again(client, engine):
    image = Image(client._calls, {"Id": "sha256:1"})
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "Config": {"Labels": {"a": "b"}}})
    await image.reload()
    assert image.labels == {"a": "b"}
