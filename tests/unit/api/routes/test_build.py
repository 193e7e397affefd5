"""Builds over HTTP: what a client asks for, and how it hears of what happens."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from husk.builder.cache.prune import Item, PrunedCache
from husk.builder.graph.operations import StepLimits, StepUlimit
from husk.builder.protocol.history import BuildHistory
from husk.builder.protocol.messages.control import BuildHistoryRecord, BuildHistoryRequest
from husk.engine.model.image import Progress
from husk.errors import CommandFailed, InvalidParameter
from husk.registry.auth import Credentials
from tests.unit.api.fake_engine import FakeEngine
from tests.unit.builder.protocol.fake_builder import KeptInMemory

ITEM = Item(
    id="abc",
    parents=["p"],
    type="regular",
    description="mount / from exec make",
    in_use=False,
    shared=True,
    size=7,
    created=0,
    last_used=10**9,
    uses=2,
)


class Builder:
    """A builder that notes what it is asked for."""

    def __init__(self) -> None:
        self.request: Any = None
        self.context = b""
        self.credentials: Any = None
        self.fails: Exception | None = None
        self.pruned: Any = None
        self.kept = KeptInMemory()

    async def get(self) -> "Builder":
        return self

    async def build_upload(self, request: Any, chunks: Any, credentials: Any, report: Any, watcher: Any) -> Any:
        self.request, self.credentials = request, credentials
        self.context = b"".join([chunk async for chunk in chunks])
        report(Progress(stream="Step 1/1 : FROM busybox\n"))
        if self.fails:
            raise self.fails
        return SimpleNamespace(id="sha256:0123456789abcdef")

    async def build_remote(self, request: Any, url: str, credentials: Any, report: Any, watcher: Any) -> Any:
        self.context = url.encode()
        return SimpleNamespace(id="sha256:0123456789abcdef")

    async def cache(self) -> list[Item]:
        return [ITEM]

    async def prune(self, filters: Any, *, all: bool, keep: int) -> PrunedCache:
        self.pruned = (filters, all, keep)
        return PrunedCache(items=[ITEM], freed=7)


@pytest.fixture
def builder(engine: FakeEngine) -> Builder:
    found = Builder()
    engine.builder = found
    return found


async def records(builder: Builder) -> list[BuildHistoryRecord]:
    """Of the builds that the next daemon's history knows."""
    history = BuildHistory(builder.kept)
    await history.load()
    listened = history.listen(BuildHistoryRequest(early_exit=True))
    return [event.record async for event in listened if event.record]


async def test_builds_are_in_the_history(client: ClientSession, builder: Builder) -> None:
    await lines(client, 't=me/it:1&target=prod&buildargs={"A":"1"}', data=b"a tar")
    builder.fails = InvalidParameter("it cannot be")
    await lines(client, "dockerfile=other", data=b"a tar")
    good, bad = await records(builder)
    assert good.exporters[0].attrs == {"name": "me/it:1"} and good.error is None and good.completed_at
    assert good.frontend_attrs["build-arg:A"] == "1" and good.frontend_attrs["target"] == "prod"
    assert bad.error is not None and bad.error.message == "it cannot be"
    assert bad.frontend_attrs["filename"] == "other" and bad.ref != good.ref


async def lines(client: ClientSession, query: str = "", **request: Any) -> list[dict[str, Any]]:
    response = await client.post(f"/build?{query}", **request)
    assert response.status == 200, await response.text()
    return [json.loads(line) for line in (await response.text()).splitlines()]


async def test_a_build_ends_with_the_images_id(client: ClientSession, builder: Builder) -> None:
    told = await lines(client, "t=me/it:1&t=other", data=b"a tar")
    assert builder.context == b"a tar"
    assert told == [
        {"stream": "Step 1/1 : FROM busybox\n"},
        {"stream": "Successfully built 0123456789ab\n"},
        {"stream": "Successfully tagged me/it:1\n"},
        {"stream": "Successfully tagged other:latest\n"},
    ]


async def test_what_a_client_may_ask_for(client: ClientSession, builder: Builder) -> None:
    query = (
        "dockerfile=d/File&target=prod&nocache=1&pull=1&networkmode=none&shmsize=1000&cgroupparent=/x&memory=5&memswap=-1"
        '&buildargs={"A":"1","B":null}&labels={"x":"y"}&extrahosts=db:10.0.0.1&extrahosts=six=::1'
        '&ulimits=[{"Name":"nofile","Soft":1,"Hard":2}]&cpusetcpus=0&cachefrom=["a"]&platform=linux/arm64'
    )
    await lines(client, query, data=b"")
    request = builder.request
    options = request.options
    assert (request.dockerfile, request.pull, request.names) == ("d/File", True, [])
    assert (options.target, options.no_cache, options.network) == ("prod", True, "none")
    assert (options.build_args, options.labels) == ({"A": "1"}, {"x": "y"})
    assert options.extra_hosts == [("db", "10.0.0.1"), ("six", "::1")]
    assert options.ulimits == [StepUlimit("nofile", 1, 2)]
    assert options.limits == StepLimits(memory=5, memory_swap=-1, cpuset_cpus="0")
    assert str(options.platform).startswith("linux/arm64")
    assert request.cache_from == ["a"]


async def test_a_quiet_build_says_the_id_alone(client: ClientSession, builder: Builder) -> None:
    assert (await lines(client, "q=1", data=b""))[-1] == {"stream": "sha256:0123456789abcdef\n"}


async def test_a_context_of_the_web(client: ClientSession, builder: Builder) -> None:
    await lines(client, "remote=https://example.com/x.tar")
    assert builder.context == b"https://example.com/x.tar"


async def test_a_command_that_failed_is_told_with_its_code(client: ClientSession, builder: Builder) -> None:
    builder.fails = CommandFailed("The command 'false' returned a non-zero code: 3", 3)
    told = await lines(client, data=b"")
    assert told[-1]["errorDetail"] == {"code": 3, "message": "The command 'false' returned a non-zero code: 3"}
    builder.fails = InvalidParameter("no such stage")
    assert (await lines(client, data=b""))[-1]["errorDetail"] == {"message": "no such stage"}


async def test_credentials_for_registries(client: ClientSession, builder: Builder) -> None:
    document = {"registry.example": {"username": "me", "password": "secret"}}
    header = base64.urlsafe_b64encode(json.dumps(document).encode()).decode()
    await lines(client, data=b"", headers={"X-Registry-Config": header})
    assert builder.credentials("registry.example") == Credentials(username="me", password="secret")
    assert builder.credentials("other.example") is None


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("version=3", 400),
        ('outputs=[{"Type":"local"}]', 400),
        ('version=2&outputs=[{"Type":"local"},{"Type":"tar"}]', 400),
        ("version=2&outputs=x", 400),
        ("squash=1", 400),
        ("buildargs=x", 400),
        ("labels=[]", 400),
        ("extrahosts=db", 400),
        ("memory=-1", 400),
        ("t=UPPER", 400),
        ("platform=a/b/c/d", 400),
        ("ulimits={}", 400),
    ],
)
async def test_what_cannot_be_is_refused(client: ClientSession, builder: Builder, query: str, status: int) -> None:
    assert (await client.post(f"/build?{query}", data=b"")).status == status
    assert builder.request is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("buildargs=x", "error reading build args: invalid character 'x' looking for beginning of value"),
        ("cachefrom=[", "error reading cache-from: unexpected EOF"),
        ("ulimits=x", "error reading ulimit settings: invalid character 'x' looking for beginning of value"),
        ("labels=x", "error reading labels: invalid character 'x' looking for beginning of value"),
    ],
)
async def test_what_is_no_json_is_refused_in_gos_words(client: ClientSession, query: str, message: str) -> None:
    answer = await client.post(f"/build?{query}", data=b"")
    assert (answer.status, (await answer.json())["message"]) == (400, message)


async def test_credentials_that_cannot_be_read(client: ClientSession, builder: Builder) -> None:
    assert (await client.post("/build", data=b"", headers={"X-Registry-Config": "!"})).status == 400


async def test_the_cache_is_shown(client: ClientSession, builder: Builder) -> None:
    shown = (await (await client.get("/v1.51/system/df?type=build-cache")).json())["BuildCache"]
    assert shown == [
        {
            "ID": "abc",
            "Parents": ["p"],
            "Type": "regular",
            "Description": "mount / from exec make",
            "InUse": False,
            "Shared": True,
            "Size": 7,
            "CreatedAt": "1970-01-01T00:00:00.000000000Z",
            "LastUsedAt": "1970-01-01T00:00:01.000000000Z",
            "UsageCount": 2,
        }
    ]
    sums = (await (await client.get("/v1.52/system/df?type=build-cache")).json())["BuildCacheUsage"]
    assert (sums["TotalCount"], sums["TotalSize"], sums["Reclaimable"]) == (1, 7, 0)


async def test_the_cache_is_pruned(client: ClientSession, builder: Builder) -> None:
    response = await client.post('/build/prune?all=1&keep-storage=5&filters={"id":["a"],"label":["x"]}')
    assert await response.json() == {"CachesDeleted": ["abc"], "SpaceReclaimed": 7}
    filters, all, keep = builder.pruned
    assert (filters.get("id"), "label" in filters, all, keep) == (["a"], False, True, 5)


async def test_cancelling_needs_an_id_and_one_that_nobody_has_is_no_error(client: ClientSession) -> None:
    assert (await client.post("/build/cancel")).status == 400
    assert (await client.post("/build/cancel?id=x")).status == 200
