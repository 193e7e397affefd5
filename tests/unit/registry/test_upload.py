"""Uploads to a registry that misbehaves: mounted, sent, taken up again, begun again, refused."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Self

import pytest
from aiohttp import web

from husk.errors import SystemFault
from husk.registry import reference
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.upload import PushTarget

DATA = bytes(range(256)) * 4096
DIGEST = "sha256:" + hashlib.sha256(DATA).hexdigest()


class Blob:
    """A source in pieces; with `known=False` its size and digest are known at its end only."""

    def __init__(self, known: bool = True) -> None:
        self.size = len(DATA) if known else -1
        self.digest = DIGEST if known else ""
        self.reads: list[int] = []

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        self.reads.append(offset)
        for at in range(offset, len(DATA), 65536):
            yield DATA[at : at + 65536]
        self.size, self.digest = len(DATA), DIGEST


class Sink:
    """A registry that takes uploads; `cuts` break off that many PATCH requests after so many bytes."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.uploads: dict[str, bytearray] = {}
        self.cuts: list[int] = []
        self.mountable: set[tuple[str, str]] = set()
        self.forgets = False
        self.refuses = 0
        self.elsewhere = ""
        self.patches = True
        self.largest = 1 << 30
        self.credentials: list[str] = []
        self.asked: list[str] = []
        self.tokens: list[str] | None = None
        self.token_error: tuple[int, object] | None = None
        self.host = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.host = f"127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.asked.append(f"{request.method} {path}")
        if path == "/token":
            assert self.tokens is not None
            if self.token_error:
                status, body = self.token_error
                return web.json_response(body, status=status)
            self.tokens.append(" ".join(request.query.getall("scope", [])))
            return web.json_response({"token": f"t{len(self.tokens)}"})
        if self.tokens is not None and "Authorization" not in request.headers:
            challenge = f'Bearer realm="http://{self.host}/token",service="s",scope="repository:app:pull"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        self.credentials.append(request.headers.get("Authorization", ""))
        if path == "/v2/":
            return web.Response()
        if self.elsewhere and request.method != "HEAD":
            # At once, without a look at the body: as a registry does that hands uploads to a store behind it.
            target = f"{self.elsewhere}{request.rel_url.raw_path_qs}"
            return web.Response(status=307, headers={"Location": target})
        if "/manifests/" in path:
            self.manifests[path.rpartition("/")[2]] = (request.content_type, await request.read())
            return web.Response(status=201)
        if request.method == "HEAD":
            return web.Response(status=200 if path.rpartition("/")[2] in self.blobs else 404)
        if self.refuses:
            return web.json_response({"errors": [{"code": "DENIED", "message": "no"}]}, status=self.refuses)
        return await self._upload(request)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if request.method == "POST":
            if (request.query.get("mount", ""), request.query.get("from", "")) in self.mountable:
                return web.Response(status=201)
            name = str(len(self.uploads))
            self.uploads[name] = bytearray()
            return web.Response(status=202, headers={"Location": f"/v2/app/blobs/uploads/{name}?state=a%2Fb"})
        name = path.rpartition("/")[2]
        if name not in self.uploads:
            return web.Response(status=404)
        assert request.query["state"] == "a/b", "the location was not kept as it was"
        upload = self.uploads[name]
        location = {"Location": f"http://{self.host}{path}?state=a%2Fb"}
        if request.method == "GET":
            return web.Response(status=204, headers={**location, "Range": f"0-{max(0, len(upload) - 1)}"})
        if request.method == "PATCH" and not self.patches:
            return web.Response(status=405)
        if (request.content_length or self.largest) > self.largest or (
            request.content_length is None and self.largest < len(DATA)
        ):
            return web.Response(status=413)
        if request.method == "PATCH":
            cut = self.cuts.pop(0) if self.cuts else None
            async for chunk in request.content.iter_any():
                upload += chunk
                if cut is not None and len(upload) >= cut:
                    assert request.transport is not None
                    request.transport.abort()
                    if self.forgets:
                        del self.uploads[name]
                    return web.Response()
            return web.Response(status=202, headers=location)
        upload += await request.read()
        digest = "sha256:" + hashlib.sha256(upload).hexdigest()
        if digest != request.query["digest"]:
            return web.json_response({"errors": [{"code": "DIGEST_INVALID", "message": "wrong"}]}, status=400)
        self.blobs[digest] = bytes(upload)
        return web.Response(status=201)


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    async with Sink() as sink:
        yield sink


@pytest.fixture
async def target(sink: Sink) -> AsyncIterator[PushTarget]:
    async with RegistryClient(backoff=0.001) as client:
        yield await client.target(reference.parse(f"{sink.host}/app:1"))


@pytest.mark.parametrize("known", [True, False])
async def test_a_blob_is_sent(sink: Sink, target: PushTarget, known: bool) -> None:
    told: list[int] = []
    assert not await target.has(DIGEST)
    assert await target.upload(Blob(known), on_progress=told.append) == ""
    assert sink.blobs == {DIGEST: DATA} and await target.has(DIGEST)
    assert told == sorted(told) and told[-1] == len(DATA)


@pytest.mark.parametrize("known", [True, False])
async def test_a_broken_upload_goes_on_where_it_stopped(sink: Sink, target: PushTarget, known: bool) -> None:
    sink.cuts = [300_000, 600_000]
    blob, retries = Blob(known), []
    await target.upload(blob, on_retry=lambda tries, seconds, why: retries.append(tries))
    assert sink.blobs == {DIGEST: DATA}
    assert retries == [1, 2] and len(sink.uploads) == 1
    assert blob.reads[0] == 0 and all(offset >= 300_000 for offset in blob.reads[1:])


async def test_an_upload_that_the_registry_forgot_begins_again(sink: Sink, target: PushTarget) -> None:
    sink.cuts, sink.forgets = [300_000], True
    blob = Blob()
    await target.upload(blob)
    assert sink.blobs == {DIGEST: DATA} and blob.reads == [0, 0]


async def test_a_registry_that_always_breaks_off(sink: Sink, target: PushTarget) -> None:
    sink.cuts = [1] * 10
    with pytest.raises(SystemFault, match="upload failed after attempts=5"):
        await target.upload(Blob())


async def test_a_blob_of_another_repository_is_mounted(sink: Sink, target: PushTarget) -> None:
    sink.mountable = {(DIGEST, "team/base")}
    assert await target.upload(Blob(), mount_from=["other", "team/base"]) == "team/base"
    assert not sink.blobs
    assert await target.upload(Blob(), mount_from=["other"]) == "", "one that cannot be mounted is sent"
    assert sink.blobs == {DIGEST: DATA}


async def test_a_refusal_is_told_in_its_words_and_not_repeated(sink: Sink, target: PushTarget) -> None:
    sink.refuses = 403
    with pytest.raises(SystemFault, match="denied: no"):
        await target.upload(Blob())
    assert len([asked for asked in sink.asked if asked.startswith("POST")]) == 1


@pytest.mark.parametrize(
    ("status", "body", "message", "tries"),
    [
        (401, {"errors": [{"Code": "UNAUTHORIZED", "message": "a message"}]}, "unauthorized: a message", 1),
        (401, {"error": "unauthorized"}, "unauthorized: authentication required", 1),
        (429, {"errors": [{"code": "TOOMANYREQUESTS", "message": "out"}]}, "toomanyrequests: out", 5),
    ],
)
async def test_the_error_of_a_token_service_is_told_alone(
    sink: Sink, target: PushTarget, status: int, body: object, message: str, tries: int
) -> None:
    sink.tokens, sink.token_error = [], (status, body)
    assert not await target.has(DIGEST)
    retries: list[int] = []
    with pytest.raises(SystemFault) as caught:
        await target.upload(Blob(), on_retry=lambda tries, seconds, why: retries.append(tries))
    assert caught.value.message == message and len(retries) == tries - 1


async def test_a_manifest(sink: Sink, target: PushTarget) -> None:
    await target.put_manifest("1", b"{}", "application/x")
    assert sink.manifests == {"1": ("application/x", b"{}")}


async def test_one_token_for_pulling_and_pushing_serves_the_whole_push(sink: Sink) -> None:
    sink.tokens = []
    async with RegistryClient(backoff=0.001) as client:
        target = await client.target(reference.parse(f"{sink.host}/app:1"), Credentials("me", "secret"))
        assert not await target.has(DIGEST)
        await target.upload(Blob())
        await target.put_manifest("1", b"{}", "application/x")
        assert sink.tokens == ["repository:app:pull,push"]
        await target.upload(Blob(), mount_from=["base"])
        assert sink.tokens[1:] == ["repository:app:pull,push repository:base:pull"]


@pytest.mark.parametrize("known", [True, False])
async def test_uploads_follow_a_redirect_without_credentials(sink: Sink, known: bool) -> None:
    async with Sink() as behind:
        sink.elsewhere, sink.tokens = f"http://{behind.host}", []
        async with RegistryClient(backoff=0.01) as client:
            target = await client.target(reference.parse(f"{sink.host}/app"), Credentials(username="me", password="x"))
            await target.upload(Blob(known))
            await target.put_manifest("1", b"{}", "application/x-manifest")
        assert (behind.blobs, behind.manifests) == ({DIGEST: DATA}, {"1": ("application/x-manifest", b"{}")})
        assert any(sink.credentials) and not any(behind.credentials)


@pytest.mark.parametrize("known", [True, False])
async def test_a_registry_without_patch_gets_the_blob_at_the_end(sink: Sink, target: PushTarget, known: bool) -> None:
    sink.patches = False
    told: list[int] = []
    await target.upload(Blob(known), on_progress=told.append)
    assert (sink.blobs, told[-1]) == ({DIGEST: DATA}, len(DATA))


@pytest.mark.parametrize("known", [True, False])
async def test_a_registry_that_takes_little_at_once_gets_chunks(sink: Sink, known: bool) -> None:
    async with RegistryClient(backoff=0.001) as client:
        target = await client.target(reference.parse(f"{sink.host}/app:1"), chunk=300_000)
        sink.largest = 300_000
        await target.upload(Blob(known))
        assert sink.blobs == {DIGEST: DATA}
        sink.blobs.clear()
        sink.cuts = [100_000]
        await target.upload(Blob(known))
        assert sink.blobs == {DIGEST: DATA}, "a chunk that broke off is taken up where it stopped"


async def test_redirects_in_a_circle_end(sink: Sink, target: PushTarget) -> None:
    sink.elsewhere = f"http://{sink.host}"
    with pytest.raises(SystemFault, match="stopped after 10 redirects"):
        await target.put_manifest("1", b"{}", "application/x-manifest")


async def test_several_blobs_at_once(sink: Sink, target: PushTarget) -> None:
    await asyncio.gather(*(target.upload(Blob()) for _ in range(4)))
    assert sink.blobs == {DIGEST: DATA} and len(sink.uploads) == 4
