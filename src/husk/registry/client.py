"""The client that gets manifests and blobs out of a registry, and logs in there.

    async with RegistryClient(insecure=(), mirrors=(), user_agent="husk/0.1") as client:
        ref = reference.parse("localhost:5000/app").tagged()
        fetched = await client.manifest(ref)
        manifest = parse_manifest(fetched.body, fetched.descriptor.media_type)

A broken connection, a busy registry (429) and a failing one (5xx) are tried again with growing pauses, refusals never;
where nobody can be told of a pause, a busy registry is a refusal.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from husk.config import NO_PROXIES, Proxies
from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault, Unauthorized
from husk.registry.auth import NOBODY, Authorizer, Credentials
from husk.registry.failures import blob_error, manifest_error, phrase
from husk.registry.headers import readable
from husk.registry.manifest import INDEX_TYPES, MANIFEST_TYPES, Descriptor, refuse_schema1
from husk.registry.reference import DOCKER_HUB, Reference, validate_digest, validate_domain
from husk.registry.search import SearchResult, search
from husk.registry.session import RegistryRefused, RegistrySession
from husk.registry.transport import (
    Interrupted,
    Transport,
    Unreachable,
    broken_connection,
    describe,
    pieces_of,
    read_limited,
)
from husk.registry.upload import CHUNK, PushTarget
from husk.registry.web import WebFile, open_file
from husk.text.documents import MalformedDocument, decode
from husk.text.urls import split_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse

T = TypeVar("T")
OnRetry = Callable[[int, float, str], None]
"""Called before each pause: how many tries failed, the seconds until the next, and why."""

HUB_HOST = "registry-1.docker.io"
LARGEST_MANIFEST = 4 * 1024 * 1024
LARGEST_BYTES = 8 * 1024 * 1024
_MOST_PAGES = 1000
_LARGEST_LIST = 16 * 1024 * 1024
_BLOB_TRIES = 5
_MANIFEST_TRIES = 3
_LONGEST_PAUSE = 30.0
_LONGEST_SILENCE = 5.0
_TOO_MANY = 429
_ACCEPT = ", ".join((*MANIFEST_TYPES, *INDEX_TYPES))

log = logging.getLogger(__name__)


class FetchedManifest(msgspec.Struct, frozen=True):
    """A manifest exactly as the registry keeps it, with the digest that was computed from it."""

    descriptor: Descriptor
    body: bytes


class _Endpoint(msgspec.Struct, frozen=True):
    """One place that may have the content: a registry's address, or a mirror's whole URL."""

    host: str
    url: str = ""


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class _Page(msgspec.Struct, frozen=True):
    """A part of a repository's tags, and the query for the part after it."""

    tags: list[str]
    next: str
    size: int


def _mirrors(urls: Sequence[str]) -> tuple[_Endpoint, ...]:
    return tuple(_Endpoint("", url.rstrip("/")) for url in urls)


class RegistryClient:
    """Talks to any number of registries; safe to use from many tasks at once."""

    def __init__(
        self,
        insecure: Sequence[str] = (),
        mirrors: Sequence[str] = (),
        user_agent: str = "husk",
        backoff: float = 1.0,
        proxies: Proxies = NO_PROXIES,
        attempts: int = _BLOB_TRIES,
        largest_list: int = _LARGEST_LIST,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._largest_list = largest_list
        self._sleep = sleep
        self._own = user_agent, backoff, proxies
        self._transport = Transport(user_agent, insecure, proxies=proxies, mirrors=mirrors)
        self._attempts = attempts
        self._authorizer = Authorizer(self._transport)
        self._session = RegistrySession(self._transport, self._authorizer)
        self._mirrors = _mirrors(mirrors)
        self._backoff = backoff

    def configure(self, insecure: Sequence[str], mirrors: Sequence[str], attempts: int = _BLOB_TRIES) -> None:
        """Take over changed settings; requests under way end as they began."""
        self._attempts = attempts
        self._transport.configure(insecure, mirrors)
        self._mirrors = _mirrors(mirrors)

    def insecurely(self, host: str) -> "RegistryClient":
        """A client of its own for somebody who wants one registry without verified TLS; to be closed."""
        user_agent, backoff, proxies = self._own
        return RegistryClient((host,), (), user_agent, backoff, proxies, self._attempts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def manifest(self, ref: Reference, auth: Credentials | None = None) -> FetchedManifest:
        """The manifest or index that `ref` names, by its digest if it has one, else by its tag."""
        target = f"manifests/{ref.digest or ref.tagged().tag}"
        return await self._anywhere(ref, lambda endpoint: self._retrying(self._manifest, ref, endpoint, target, auth))

    async def _manifest(
        self, ref: Reference, endpoint: _Endpoint, target: str, auth: Credentials | None
    ) -> FetchedManifest:
        try:
            async with self._open(endpoint, ref, target, auth, {"Accept": _ACCEPT}) as response:
                body = await read_limited(response, LARGEST_MANIFEST)
        except RegistryRefused as error:
            if error.refusal.transient:
                raise
            raise manifest_error(error.refusal, ref) from error
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        media_type = readable(response.content_type)
        refuse_schema1(media_type)
        said = readable(response.headers.get("Docker-Content-Digest", ""))
        expected = ref.digest or (said if said.startswith("sha256:") else digest)
        if digest != expected:
            raise SystemFault(f"manifest verification failed for digest {expected}")
        return FetchedManifest(Descriptor(media_type=media_type, digest=digest, size=len(body)), body)

    async def tags(self, ref: Reference, auth: Credentials | None = None) -> list[str]:
        """All tags of the repository."""
        found: dict[str, None] = {}
        size, query, asked = 0, "", set[str]()
        while query not in asked and len(asked) < _MOST_PAGES:
            asked.add(query)
            page = await self._page_of_tags(ref, f"tags/list{query}", auth)
            size += page.size
            if size > self._largest_list:
                limit = f"{self._largest_list} bytes"
                raise SystemFault(f"the list of tags of {ref.familiar_name} is larger than {limit}")
            found.update(dict.fromkeys(page.tags))
            if not page.next:
                break
            query = f"?{page.next}"
        return list(found)

    async def _page_of_tags(self, ref: Reference, target: str, auth: Credentials | None) -> "_Page":
        return await self._anywhere(ref, lambda endpoint: self._retrying(self._tags, ref, endpoint, target, auth))

    async def _tags(self, ref: Reference, endpoint: _Endpoint, target: str, auth: Credentials | None) -> "_Page":
        try:
            async with self._open(endpoint, ref, target, auth, {}) as response:
                body = await read_limited(response, LARGEST_MANIFEST)
        except RegistryRefused as error:
            if error.refusal.transient:
                raise
            raise manifest_error(error.refusal, ref) from error
        try:
            listed = decode(body, _Tags)
        except MalformedDocument as error:
            raise SystemFault(f"error unmarshalling content: not a list of tags: {error}") from error
        try:
            following = response.links.get("next")
            link = following.get("url") if following is not None else None
            return _Page(listed.tags or [], split_url(str(link or "")).query, len(body))
        except ValueError as error:
            raise SystemFault(f"failed to parse Link header: {error}") from error

    async def blob_bytes(self, ref: Reference, descriptor: Descriptor, auth: Credentials | None = None) -> bytes:
        """A small blob (an image's configuration) as a whole, verified."""
        try:
            if descriptor.size > LARGEST_BYTES:
                raise SystemFault(f"{descriptor.digest} has {descriptor.size} bytes, more than {LARGEST_BYTES}")
            async with aclosing(self.blob(ref, descriptor, auth)) as chunks:
                body = b"".join([chunk async for chunk in chunks])
            if "sha256:" + hashlib.sha256(body).hexdigest() != descriptor.digest:
                raise SystemFault(f"image config verification failed for digest {descriptor.digest}")
        except HuskError as error:
            kind = NotFound if isinstance(error, NotFound) else SystemFault
            raise kind(f"error pulling image configuration: {error.message}") from error
        return body

    async def blob(
        self,
        ref: Reference,
        descriptor: Descriptor,
        auth: Credentials | None = None,
        on_retry: OnRetry | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The blob in chunks of at most 1 MiB, exactly `descriptor.size` bytes; the consumer verifies the digest.

        Iterate inside `contextlib.aclosing`, so that the connection is given back when the consumer stops early.
        """
        target = f"blobs/{validate_digest(descriptor.digest)}"
        offset, failed = 0, 0
        while True:
            begin = offset
            try:
                async with self._open_anywhere(ref, target, auth, offset) as response:
                    async for chunk in _body_from(response, offset):
                        offset += len(chunk)
                        if offset > descriptor.size:
                            raise _wrong_layer(descriptor)
                        yield chunk
                if offset == descriptor.size:
                    return
                raise _wrong_layer(descriptor)  # complete by HTTP's own count, and yet short: trying again is no use
            except (Unreachable, Interrupted, RegistryRefused) as error:
                if isinstance(error, RegistryRefused) and not error.refusal.transient:
                    short = error.refusal.status == 416  # the blob ends before the byte that is still missing
                    raise _wrong_layer(descriptor) if short else blob_error(error.refusal, ref) from error
                if offset == descriptor.size:
                    return
                failed = 1 if offset > begin else failed + 1
                if failed >= self._attempts or (on_retry is None and _is_long(error)):
                    raise SystemFault(f"download failed after attempts={failed}: {error}") from error
                await self._pause(failed, error, on_retry)

    async def target(self, ref: Reference, auth: Credentials | None = None, chunk: int = CHUNK) -> PushTarget:
        """The repository of `ref`, to push to. Mirrors are for pulling only. A registry that takes little at once gets
        chunks."""
        host = self._endpoints(ref)[-1].host
        base = await self._transport.locate(host)
        try:
            await self._session.ping(base)  # one that cannot be reached is reported at once, not after many tries
        except Unreachable:
            self._transport.forget(host)
            raise
        return PushTarget(self._session, base, ref, auth or NOBODY, self._pause, chunk)

    async def search(self, term: str, limit: int, auth: Credentials | None = None) -> list[SearchResult]:
        """Repositories that fit `term`, which may begin with a registry's address."""
        return await search(self._transport, term, limit, auth)

    async def download(self, url: str) -> AsyncGenerator[tuple[bytes, int], None]:
        """Any file of the web in chunks, each with the whole size (0 if unknown); iterate inside `aclosing`."""
        async with open_file(self._transport, url) as file:
            async for chunk in file.chunks():
                yield chunk, file.size

    def file(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[WebFile]:
        """Any file of the web, and what is said of it."""
        return open_file(self._transport, url, headers)

    async def login(self, credentials: Credentials) -> str:
        """Check credentials at the registry they are for; the identity token it gave for later use, or ""."""
        base = await self._transport.locate(_login_host(credentials.server_address))
        url, identity = f"{base}/v2/", ""
        status, challenges = await self._session.ping(base)
        if status == 401:
            header, _, identity = await self._authorizer.answer(base, "", credentials, challenges, url, offline=True)
            async with self._transport.send("GET", url, {"Authorization": header} if header else {}) as response:
                status = response.status
        if status != 200:
            kind = Unauthorized if status in (401, 403) else SystemFault
            raise kind(f"login attempt to {url} failed with status: {status} {phrase(status)}")
        return identity

    def _endpoints(self, ref: Reference) -> tuple[_Endpoint, ...]:
        if ref.domain == DOCKER_HUB:
            return (*self._mirrors, _Endpoint(HUB_HOST))
        return (_Endpoint(ref.domain),)

    async def _anywhere(self, ref: Reference, fetch: Callable[[_Endpoint], Awaitable[T]]) -> T:
        """Return what `fetch` gets from the first endpoint that has it: mirrors may fail, the registry decides."""
        *mirrors, registry = self._endpoints(ref)
        for mirror in mirrors:
            try:
                return await fetch(mirror)
            except (HuskError, RegistryRefused) as error:
                log.warning("mirror %s cannot serve %s: %s", mirror.url, ref.familiar, error)
        return await fetch(registry)

    @asynccontextmanager
    async def _open_anywhere(
        self, ref: Reference, target: str, auth: Credentials | None, offset: int
    ) -> AsyncIterator["ClientResponse"]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        async with AsyncExitStack() as stack:
            yield await self._anywhere(
                ref, lambda endpoint: stack.enter_async_context(self._open(endpoint, ref, target, auth, headers))
            )

    @asynccontextmanager
    async def _open(
        self, endpoint: _Endpoint, ref: Reference, target: str, auth: Credentials | None, headers: dict[str, str]
    ) -> AsyncIterator["ClientResponse"]:
        """A successful answer for `target` of the repository, authorized if the registry asks for that."""
        base = endpoint.url or await self._transport.locate(endpoint.host)
        # Credentials belong to the registry that the image is named after, not to the mirrors in front of it.
        who = NOBODY if endpoint.url or auth is None else auth
        url, scope = f"{base}/v2/{ref.path}/{target}", f"repository:{ref.path}:pull"
        try:
            async with self._session.open("GET", url, base=base, scope=scope, who=who, headers=headers) as response:
                yield response
        except Unreachable:
            self._transport.forget(endpoint.host)
            raise

    async def _retrying(
        self,
        fetch: Callable[[Reference, _Endpoint, str, Credentials | None], Awaitable[T]],
        ref: Reference,
        endpoint: _Endpoint,
        target: str,
        auth: Credentials | None,
    ) -> T:
        """`fetch` again while the registry stumbles; one that cannot be reached at all, or that wants to be left alone
        for longer than whoever waits should hear nothing, is reported at once, as dockerd does."""
        failed = 0
        while True:
            try:
                return await fetch(ref, endpoint, target, auth)
            except (Interrupted, RegistryRefused) as error:
                failed += 1
                if failed >= _MANIFEST_TRIES or _is_long(error):
                    raise SystemFault(str(error)) from error
                await self._pause(failed, error, None)

    async def _pause(self, failed: int, error: Exception, on_retry: OnRetry | None) -> None:
        asked = error.pause if isinstance(error, RegistryRefused) else 0.0
        seconds = min(max(self._backoff * 2 ** (failed - 1), asked), _LONGEST_PAUSE)
        log.info("retrying in %.1f seconds after: %s", seconds, error)
        if on_retry is not None:
            on_retry(failed, seconds, str(error))
        await self._sleep(seconds)


async def _body_from(response: "ClientResponse", offset: int) -> AsyncIterator[bytes]:
    """The body's bytes from `offset` of the blob on, also if the registry ignored the Range and sent all of it."""
    skip = offset
    if response.status == 206:
        said = response.headers.get("Content-Range", "")
        found = re.match(r"bytes (\d{1,18})-", said)
        if found is None or int(found[1]) > offset:
            raise Interrupted(f"registry sent {readable(said)!r} for bytes from {offset}")
        skip = offset - int(found[1])
    measured = "Content-Length" in response.headers or "chunked" in response.headers.get("Transfer-Encoding", "")
    try:
        async for chunk in pieces_of(response):
            if skip < len(chunk):
                yield chunk[skip:] if skip else chunk
            skip = max(0, skip - len(chunk))
    except broken_connection() as error:
        raise Interrupted(describe(error, str(response.url))) from error
    if not measured:
        raise Interrupted("unexpected EOF")  # an end that cannot be told from a broken connection


def _is_long(error: Exception) -> bool:
    """Tell if a registry wants a pause of which somebody should be told."""
    return isinstance(error, RegistryRefused) and (error.refusal.status == _TOO_MANY or error.pause > _LONGEST_SILENCE)


def _wrong_layer(descriptor: Descriptor) -> SystemFault:
    return SystemFault(f"filesystem layer verification failed for digest {descriptor.digest}")


def _login_host(address: str) -> str:
    """The registry that a login's server address means; Docker Hub's goes by several names."""
    host = re.sub(r"^https?://", "", address).partition("/")[0]
    if host in ("", DOCKER_HUB, "index.docker.io", HUB_HOST):
        return HUB_HOST
    try:
        return validate_domain(host)
    except InvalidParameter as error:
        raise InvalidParameter(f"unable to parse server address: {error.message}") from error
