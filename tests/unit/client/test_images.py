import json

import pytest

from husk.api.http.response import Response
from husk.client.calls import Calls
from husk.client.image import Image
from husk.errors import BuildError, InvalidParameter, SystemFault


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


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
    with pytest.raises(SystemFault, match="not there"):
        await client.images.pull("busybox:1")


async def test_listing(client, engine):
    engine.answers("GET", "/images/json", [{"Id": "sha256:1"}])
    assert [image.id for image in await client.images.list(filters={"dangling": True})] == ["sha256:1"]
    assert engine.last("GET", "/images/json").query == {"all": "0", "filters": '{"dangling":["true"]}'}


def told(*lines):
    return Response(200, b"".join(json.dumps(line).encode() + b"\r\n" for line in lines))


async def test_pushing(client, engine):
    engine.answers(
        "POST",
        "/images/host:5000/a/push",
        told(
            {"status": "Pushing", "id": "l1", "progressDetail": {"current": 1, "total": 2}}, {"aux": {"Digest": "d1"}}
        ),
    )
    assert await client.images.push("host:5000/a:1") == "d1"
    asked = engine.last("POST", "/images/host:5000/a/push")
    assert asked.query == {"tag": "1"}
    assert asked.headers["x-registry-auth"] == "e30="


async def test_a_platform_is_told_as_the_api_wants_it(client, engine):
    engine.answers("GET", "/images/a/json", {"Id": "sha256:1"})
    await client.images.get("a", platform="linux/arm/v7")
    wanted = '{"os":"linux","architecture":"arm","variant":"v7"}'
    assert engine.last("GET", "/images/a/json").query == {"platform": wanted}
    with pytest.raises(InvalidParameter, match="linux/arm64"):
        await client.images.get("a", platform="arm64")


async def test_names_are_given_and_taken(client, engine):
    engine.answers("POST", "/images/sha256:1/tag", None)
    engine.answers("DELETE", "/images/a:1", [{"Untagged": "a:1"}])
    await client.images.tag(Image(Calls(engine.dial), {"Id": "sha256:1"}), "host:5000/a:2")
    assert engine.last("POST", "/images/sha256:1/tag").query == {"repo": "host:5000/a", "tag": "2"}
    assert await client.images.remove("a:1", force=True, noprune=True) == [{"Untagged": "a:1"}]
    assert engine.last("DELETE", "/images/a:1").query == {"force": "1", "noprune": "1"}


async def test_several_images_in_one_archive(client, engine):
    engine.answers("GET", "/images/get", b"archive")
    named = Image(Calls(engine.dial), {"Id": "sha256:1", "RepoTags": ["b:1"]})
    assert b"".join([piece async for piece in client.images.save("a", named)]) == b"archive"
    assert engine.last("GET", "/images/get").all["names"] == ["a", "b:1"]


async def test_what_an_archive_had(client, engine):
    layer = {"status": "Loading layer", "id": "l1", "progressDetail": {"current": 1}}
    engine.answers(
        "POST",
        "/images/load",
        told(layer, {"stream": "Loaded image: a:1\n"}, {"stream": "Loaded image ID: sha256:2\n"}),
    )
    engine.answers("GET", "/images/a:1/json", {"Id": "sha256:1"})
    engine.answers("GET", "/images/sha256:2/json", {"Id": "sha256:2"})

    async def pieces():
        yield b"arch"
        yield b"ive"

    assert [image.id for image in await client.images.load(pieces())] == ["sha256:1", "sha256:2"]
    assert engine.last("POST", "/images/load").body == b"archive"


async def test_files_that_cannot_be_read_end_a_load(client, engine):
    engine.answers("POST", "/images/load", told({"status": "never"}))

    async def pieces():
        yield b"arch"
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError):
        await client.images.load(pieces())


async def test_importing(client, engine):
    made = "sha256:" + "a" * 64
    engine.answers("POST", "/images/create", told({"status": "Importing", "progressDetail": {}}, {"status": made}))
    engine.answers("GET", f"/images/{made}/json", {"Id": made})
    image = await client.images.import_image(b"tar", "mine:1", changes=["CMD sh", "ENV a=b"])
    asked = engine.last("POST", "/images/create")
    assert (image.id, asked.body) == (made, b"tar")
    assert asked.all == {"fromSrc": ["-"], "repo": ["mine"], "tag": ["1"], "changes": ["CMD sh", "ENV a=b"]}
    await client.images.import_image("http://host/x.tar")
    assert engine.last("POST", "/images/create").query == {"fromSrc": "http://host/x.tar"}


async def test_what_the_registry_says(client, engine):
    platforms = [{"os": "linux", "architecture": "amd64"}]
    engine.answers("GET", "/distribution/a/json", {"Descriptor": {"digest": "d1"}, "Platforms": platforms})
    engine.answers("GET", "/images/search", [{"name": "a"}])
    data = await client.images.get_registry_data("a", auth={"username": "me"})
    assert (data.id, data.has_platform("linux/amd64")) == ("d1", True)
    assert "x-registry-auth" in engine.last("GET", "/distribution/a/json").headers
    assert await client.images.search("a", limit=3) == [{"name": "a"}]
    assert engine.last("GET", "/images/search").query == {"term": "a", "limit": "3"}


async def test_those_of_one_repository(client, engine):
    engine.answers("GET", "/images/json", [])
    await client.images.list("busybox")
    assert engine.last("GET", "/images/json").query["filters"] == '{"reference":["busybox"]}'


async def test_removing_what_nobody_uses(client, engine):
    engine.answers("POST", "/images/prune", {"SpaceReclaimed": 1})
    engine.answers("POST", "/build/prune", {"SpaceReclaimed": 2})
    assert (await client.images.prune({"dangling": False}))["SpaceReclaimed"] == 1
    assert engine.last("POST", "/images/prune").query == {"filters": '{"dangling":["false"]}'}
    assert (await client.images.prune_builds(all=True, keep=5))["SpaceReclaimed"] == 2
    assert engine.last("POST", "/build/prune").query == {"all": "1", "reserved-space": "5"}


async def test_building(client, engine):
    engine.answers("POST", "/build", told({"stream": "Step 1/1 : FROM scratch\n"}, {"aux": {"ID": "sha256:1"}}))
    engine.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1"})
    image = await client.images.build(fileobj="FROM scratch", tag="a:1", auths={"host": {"username": "me"}})
    asked = engine.last("POST", "/build")
    assert (image.id, asked.query, asked.headers["content-type"]) == ("sha256:1", {"t": "a:1"}, "application/x-tar")
    assert "x-registry-config" in asked.headers


async def test_a_build_that_fails_has_its_log(client, engine):
    failure = {"error": "returned a non-zero code: 3", "errorDetail": {"code": 3}}
    engine.answers("POST", "/build", told({"stream": "Step 1/1 : RUN false\n"}, failure))
    with pytest.raises(BuildError, match="non-zero") as failed:
        await client.images.build(fileobj="FROM scratch")
    assert (failed.value.code, failed.value.log) == (3, "Step 1/1 : RUN false\n")
