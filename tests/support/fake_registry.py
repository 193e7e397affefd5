"""A registry that misbehaves on command, or one that wants tokens: an aiohttp server in the test's loop.

    async with FakeRegistry() as fake:
        fake.add("app", "1.0", make_image([layer]))
        fake.faults[digest] = [Cut(after=1000), Cut(after=2000)]     # used up one per request
        ...pull f"{fake.host}/app:1.0"...

`FakeRegistry(tokens=Tokens(...))` answers 401 with a Bearer challenge, and hands out tokens on its own `/token`; with
`hides=True` it answers 404 instead wherever a token is missing.
"""

import asyncio
import base64
import contextlib
import json
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.support.registry import Image, digest_of


@dataclass(frozen=True)
class Cut:
    """Drop the connection after this many bytes of the answer's body."""

    after: int


@dataclass(frozen=True)
class Truncate:
    """Answer correctly, but with this many bytes less."""

    missing: int


@dataclass(frozen=True)
class Corrupt:
    """Answer with the right size and one wrong byte."""


@dataclass(frozen=True)
class Status:
    """Answer this status and body instead."""

    status: int
    body: str = ""
    pause: int = 0  # seconds to stay away, if it says so


@dataclass(frozen=True)
class IgnoreRange:
    """Answer a Range request with the whole blob, as simple servers do."""


@dataclass(frozen=True)
class Redirect:
    """Send the client elsewhere, as registries in front of an object store do."""

    url: str


@dataclass(frozen=True)
class Stall:
    """Send this many bytes of the answer's body, then nothing until `go_on`; `gone` tells that the client hung up."""

    after: int
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def hold(self, request: web.Request) -> None:
        self.reached.set()
        while not self.go_on.is_set() and not self.gone.is_set():
            if request.transport is None or request.transport.is_closing():
                self.gone.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.go_on.wait(), 0.01)


Fault = Cut | Truncate | Corrupt | Status | IgnoreRange | Redirect | Stall


@dataclass
class Tokens:
    """The users that may have tokens: with `username` unset everybody; `allowed=False` gives tokens that open
    nothing."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    allowed: bool = True
    valid: set[str] = field(default_factory=set)
    issued: list[str] = field(default_factory=list)


class FakeRegistry:
    """Serves what was added to it; `requests` remembers what was asked, as (method, path, headers)."""

    def __init__(self, *, tokens: Tokens | None = None, hides: bool = False) -> None:
        self.tokens = tokens
        self.hides = hides
        self.host = ""
        self.realm: str | None = None  # where tokens are said to be, if not here
        self.said_with_tokens: dict[str, object] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self._runner: web.AppRunner | None = None

    def add(self, name: str, tag: str, image: Image) -> None:
        self.add_manifest(name, tag, image.manifest, image.media_type)
        self.blobs.update(image.blobs)

    def add_manifest(self, name: str, tag: str, body: bytes, media_type: str) -> None:
        self.manifests[name, tag] = self.manifests[name, digest_of(body)] = (media_type, body)

    def asked(self, fragment: str) -> list[dict[str, str]]:
        """The headers of every request whose path contains `fragment`."""
        return [headers for _, path, headers in self.requests if fragment in path]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/v2/", self._ping)
        app.router.add_get("/v2/{name:.+}/tags/list", self._tags)
        app.router.add_get("/v2/{name:.+}/manifests/{reference}", self._manifest)
        app.router.add_get("/v2/{name:.+}/blobs/{digest}", self._blob)
        app.router.add_get("/elsewhere/{digest}", self._elsewhere)
        app.router.add_route("*", "/token", self._token)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.host = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _refusal(self, request: web.Request) -> web.Response | None:
        self.requests.append((request.method, request.raw_path, dict(request.headers)))
        if self.tokens is None:
            return None
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self.tokens.valid and (self.tokens.allowed or request.path == "/v2/"):
            return None
        if self.hides and request.path != "/v2/":
            return _problem(404, "NAME_UNKNOWN", "repository name not known to registry")
        realm = f"http://{self.host}/token" if self.realm is None else self.realm
        challenge = f'Bearer realm="{realm}",service="fake,registry"'
        if name := request.match_info.get("name"):
            challenge += f',scope="repository:{name}:pull"'
        if token in self.tokens.valid:
            challenge += ',error="insufficient_scope"'
        return _problem(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": challenge})

    async def _ping(self, request: web.Request) -> web.StreamResponse:
        return self._refusal(request) or web.json_response({})

    async def _tags(self, request: web.Request) -> web.StreamResponse:
        """Two tags at a time, as a registry with many does."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        name = request.match_info["name"]
        tags = sorted(tag for known, tag in self.manifests if known == name and ":" not in tag)
        if not tags:
            return _problem(404, "NAME_UNKNOWN", "repository name not known to registry")
        rest = [tag for tag in tags if tag > request.query.get("last", "")]
        link = f'</v2/{name}/tags/list?n=2&last={rest[1]}>; rel="next"' if len(rest) > 2 else ""
        return web.json_response({"name": name, "tags": rest[:2]}, headers={"Link": link} if link else {})

    async def _manifest(self, request: web.Request) -> web.StreamResponse:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        name, reference = request.match_info["name"], request.match_info["reference"]
        if (name, reference) not in self.manifests:
            if not any(known == name for known, _ in self.manifests):
                return _problem(404, "NAME_UNKNOWN", "repository name not known to registry")
            return _problem(404, "MANIFEST_UNKNOWN", "manifest unknown")
        media_type, body = self.manifests[name, reference]
        return await self._answer(request, reference, body, media_type)

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        digest = request.match_info["digest"]
        if digest not in self.blobs:
            return _problem(404, "BLOB_UNKNOWN", "blob unknown to registry")
        return await self._answer(request, digest, self.blobs[digest], "application/octet-stream")

    async def _elsewhere(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path, dict(request.headers)))
        return web.Response(body=self.blobs[request.match_info["digest"]])

    async def _answer(self, request: web.Request, key: str, body: bytes, media_type: str) -> web.StreamResponse:
        waiting = self.faults.get(key, [])
        fault = waiting.pop(0) if waiting else None
        if isinstance(fault, Status):
            headers = {"Retry-After": str(fault.pause)} if fault.pause else {}
            return web.Response(status=fault.status, text=fault.body, headers=headers)
        if isinstance(fault, Redirect):
            return web.Response(status=307, headers={"Location": fault.url})
        if isinstance(fault, Corrupt):
            body = bytes([body[0] ^ 1]) + body[1:]
        if isinstance(fault, Truncate):
            body = body[: len(body) - fault.missing]
        status, headers = 200, {"Content-Type": media_type}
        if (wanted := re.match(r"bytes=(\d+)-", request.headers.get("Range", ""))) and fault != IgnoreRange():
            start = int(wanted[1])
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(body) - 1}/{len(body)}"
            body = body[start:]
        response = web.StreamResponse(status=status, headers=headers | {"Content-Length": str(len(body))})
        await response.prepare(request)
        if isinstance(fault, Cut):
            await response.write(body[: fault.after])
            if request.transport is not None:
                request.transport.close()  # close() sends what was written before it hangs up
            return response
        if isinstance(fault, Stall):
            await response.write(body[: fault.after])
            await fault.hold(request)
            if fault.gone.is_set():
                return response
            body = body[fault.after :]
        await response.write(body)
        await response.write_eof()
        return response

    async def _token(self, request: web.Request) -> web.StreamResponse:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.requests.append((request.method, request.raw_path, dict(request.headers)))
        tokens = self.tokens
        if tokens is None:
            return web.Response(status=404)
        if request.method == "POST":
            if form.get("refresh_token") != tokens.identity_token or not tokens.identity_token:
                return _problem(401, "UNAUTHORIZED", "incorrect identity token")
        elif tokens.username and request.headers.get("Authorization") != _basic(tokens.username, tokens.password):
            return _problem(401, "UNAUTHORIZED", "incorrect username or password")
        token = f"token-{len(tokens.issued)}"
        tokens.issued.append(form.get("scope", request.query.get("scope", "")))
        tokens.valid.add(token)
        answer: dict[str, object] = {"access_token": token, "expires_in": 300}
        if request.query.get("offline_token") == "true" and tokens.identity_token:
            answer["refresh_token"] = tokens.identity_token
        return web.json_response(answer | self.said_with_tokens)


def _basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def _problem(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"errors": [{"code": code, "message": message, "detail": None}]}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)
