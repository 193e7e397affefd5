"""Images over HTTP: pulls with progress, errors with a status or in the stream, and the rest."""

import asyncio
import base64
import json
from collections.abc import Callable

import pytest
from aiohttp import ClientSession

from husk.engine.model.image import Progress
from husk.errors import NotFound, Unauthorized
from husk.registry.auth import Credentials
from tests.unit.api.fake_engine import BUSYBOX, FakeEngine
from tests.unit.api.loops import until

Report = Callable[[Progress], None]


async def lines(
    client: ClientSession, path: str = "/images/create?fromImage=busybox&tag=latest"
) -> list[dict[str, object]]:
    response = await client.post(path)
    assert (response.status, response.content_type) == (200, "application/json")
    return [json.loads(line) for line in (await response.text()).splitlines()]


async def test_a_pull_tells_its_progress(client: ClientSession, engine: FakeEngine) -> None:
    async def pull(report: Report) -> None:
        report(Progress(status="Pulling from library/busybox", id="latest"))
        report(Progress(status="Pulling fs layer", id="0123456789ab"))
        for current in range(1, 1001):
            report(Progress(status="Downloading", id="0123456789ab", current=current, total=1000))
        report(Progress(status="Pull complete", id="0123456789ab"))
        report(Progress(status="Digest: sha256:00"))
        report(Progress(status="Status: Downloaded newer image for busybox:latest"))

    engine.images.pulling = pull
    records = await lines(client)
    assert engine.images.pulled == ("busybox", "latest", "", None)
    assert [r["status"] for r in records] == [
        "Pulling from library/busybox",
        "Pulling fs layer",
        "Downloading",
        "Pull complete",
        "Digest: sha256:00",
        "Status: Downloaded newer image for busybox:latest",
    ]
    assert records[2]["progressDetail"] == {"current": 1000, "total": 1000}, "of many reports the newest is sent"


async def test_an_error_before_the_stream_has_a_status(client: ClientSession, engine: FakeEngine) -> None:
    async def pull(report: Report) -> None:
        raise NotFound("pull access denied for nope")

    engine.images.pulling = pull
    response = await client.post("/images/create?fromImage=nope")
    assert (response.status, await response.json()) == (404, {"message": "pull access denied for nope"})


@pytest.mark.parametrize(
    ("error", "message"), [(NotFound("no layer"), "no layer"), (OSError("disk"), "internal error: OSError: disk")]
)
async def test_an_error_within_the_stream_is_told_in_it(
    client: ClientSession, engine: FakeEngine, error: Exception, message: str
) -> None:
    async def pull(report: Report) -> None:
        report(Progress(status="Pulling from library/busybox", id="latest"))
        raise error

    engine.images.pulling = pull
    assert (await lines(client))[1:] == [{"errorDetail": {"message": message}, "error": message}]


async def test_a_client_that_leaves_ends_the_pull(client: ClientSession, engine: FakeEngine) -> None:
    ended = asyncio.Event()

    async def pull(report: Report) -> None:
        report(Progress(status="Pulling"))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    engine.images.pulling = pull
    response = await client.post("/images/create?fromImage=busybox")
    response.close()
    await until(ended.is_set)


@pytest.mark.parametrize("encode", [base64.urlsafe_b64encode, base64.b64encode])
async def test_credentials_reach_the_registry(
    client: ClientSession, engine: FakeEngine, encode: Callable[[bytes], bytes]
) -> None:
    secret = json.dumps({"username": "me", "password": "??>>~~"}).encode()
    await client.post("/images/create?fromImage=x", headers={"X-Registry-Auth": encode(secret).decode()})
    auth = engine.images.pulled[3]
    assert isinstance(auth, Credentials)
    assert (auth.username, auth.password) == ("me", "??>>~~")


async def test_unreadable_credentials_are_none(client: ClientSession, engine: FakeEngine) -> None:
    await client.post("/images/create?fromImage=x", headers={"X-Registry-Auth": "!!!"})
    assert engine.images.pulled == ("x", "", "", None)


async def test_what_is_neither_pull_nor_import_is_refused(client: ClientSession) -> None:
    assert (await client.post("/images/create")).status == 400


async def test_the_list_shows_what_images_prints(client: ClientSession) -> None:
    [shown] = await (await client.get("/images/json?shared-size=1")).json()
    assert shown == {
        "Id": BUSYBOX,
        "ParentId": "",
        "RepoTags": ["busybox:latest"],
        "RepoDigests": [],
        "Created": 1_767_323_045,
        "Size": 4_000_000,
        "SharedSize": 7,
        "Labels": None,
        "Containers": -1,
        "Descriptor": {"mediaType": "manifest", "digest": "", "size": 0},
    }


async def test_inspect_has_the_whole_shape(client: ClientSession) -> None:
    shown = await (await client.get("/v1.43/images/busybox/json")).json()
    assert list(shown) == [
        "Id", "RepoTags", "RepoDigests", "Parent", "Comment", "Created", "Container", "ContainerConfig",
        "DockerVersion", "Author", "Config", "Architecture", "Os", "Size", "VirtualSize", "GraphDriver", "RootFS",
        "Metadata",
    ]  # fmt: skip
    assert shown["RootFS"] == {"Type": "layers", "Layers": ["sha256:" + "cd" * 32]}


async def test_the_container_of_an_image_is_for_old_clients(client: ClientSession) -> None:
    old = await (await client.get("/v1.44/images/busybox/json")).json()
    assert old["Container"] == "" and old["ContainerConfig"]["Cmd"] is None
    new = await (await client.get("/v1.45/images/busybox/json")).json()
    assert not {"Container", "ContainerConfig"} & set(new)


async def test_tag_and_remove_reach_the_engine(client: ClientSession, engine: FakeEngine) -> None:
    assert (await client.post("/images/busybox/tag?repo=a/b&tag=c")).status == 201
    response = await client.delete("/images/a/b:c?force=1")
    assert await response.json() == [{"Untagged": "busybox:latest"}, {"Deleted": BUSYBOX}]
    assert engine.calls == [("tag", "busybox", "a/b", "c"), ("rmi", "a/b:c", True, False)]


async def test_commit_hands_over_its_options(client: ClientSession, engine: FakeEngine) -> None:
    response = await client.post(
        "/commit?container=web&repo=r&tag=t&author=me&comment=c&changes=ENV a=b&changes=CMD x&pause=0",
        json={"User": "u"},
    )
    assert (response.status, await response.json()) == (201, {"Id": "sha256:" + "ef" * 32})
    options = engine.committed
    assert options is not None
    assert (options.repo, options.tag, options.author, options.comment) == ("r", "t", "me", "c")
    assert (options.changes, options.pause) == (["ENV a=b", "CMD x"], False)
    assert options.config is not None
    assert options.config.user == "u"


@pytest.mark.parametrize("body", [None, b"{}", b'{"Image": null}'])
async def test_commit_pauses_and_needs_no_body(client: ClientSession, engine: FakeEngine, body: bytes | None) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await client.post("/commit?container=web", data=body, headers=headers)).status == 201
    assert engine.committed is not None
    assert (engine.committed.pause, engine.committed.config) == (True, None)


async def test_login_answers_a_token(client: ClientSession, engine: FakeEngine) -> None:
    body = {"username": "me", "password": "secret", "email": "", "serveraddress": "localhost:5000"}
    response = await client.post("/auth", json=body)
    assert await response.json() == {"IdentityToken": "a-token", "Status": "Login Succeeded"}
    [(_, credentials)] = engine.calls
    assert isinstance(credentials, Credentials)
    assert (credentials.username, credentials.server_address) == ("me", "localhost:5000")


async def test_a_wrong_password_is_401(client: ClientSession, engine: FakeEngine) -> None:
    engine.recorder.failures["login"] = Unauthorized("unauthorized: authentication required")
    assert (await client.post("/auth", json={"username": "me"})).status == 401
