"""Uploads of blobs and manifests to a registry.

    target = await client.target(ref, auth)
    if not await target.has(digest):
        await target.upload(source, mount_from=("team/base",))
    await target.put_manifest("1.0", body, media_type)

A blob that another repository of the same registry has is mounted from there. Everything else is sent in one PATCH, as
docker does, because that is what every registry has been tested with; a connection that breaks is taken up where the
registry says that it stopped, and a registry that has forgotten the upload gets it from the beginning. One that takes
no PATCH at all gets the blob with the PUT that ends an upload; one to which the request is too large (proxies limit it)
gets it in chunks.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol
from urllib.parse import quote

from husk.errors import HuskError, SystemFault
from husk.registry.auth import Credentials
from husk.registry.failures import push_error
from husk.registry.headers import resolve_location
from husk.registry.reference import Reference
from husk.registry.session import RegistryRefused, RegistrySession
from husk.registry.transport import Body, Interrupted, MakeBody, Unreachable

_TRIES = 5
CHUNK = 16 << 20
_NO_PATCH = (405, 501)
_TOO_LARGE = 413
_OCTETS = {"Content-Type": "application/octet-stream"}

OnRetry = Callable[[int, float, str], None]
OnProgress = Callable[[int], None]
Pause = Callable[[int, Exception, OnRetry | None], Awaitable[None]]


class BlobSource(Protocol):
    """A blob to send. Size and digest may be unknown (-1, "") until it was read to its end for the first time."""

    size: int
    digest: str

    def read(self, offset: int) -> AsyncGenerator[bytes, None]: ...


class PushTarget:
    """One repository of a registry to push to; safe to use for several blobs at once."""

    def __init__(
        self,
        session: RegistrySession,
        base: str,
        ref: Reference,
        who: Credentials,
        pause: Pause,
        chunk: int = CHUNK,
    ) -> None:
        self._chunk = chunk
        self._session = session
        self._base = base
        self._ref = ref
        self._who = who
        self._pause = pause
        self._scope = f"repository:{ref.path}:pull,push"
        self._way = "stream"

    async def has(self, digest: str) -> bool:
        """Tell if the repository has this blob; False too if that cannot be known: then the upload will tell why."""
        try:
            async with self._session.open(
                "HEAD", self._url(f"blobs/{digest}"), base=self._base, scope=self._scope, who=self._who, accepted=(200,)
            ):
                return True
        except (RegistryRefused, Unreachable):
            return False

    async def upload(
        self,
        source: BlobSource,
        *,
        mount_from: Sequence[str] = (),
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> str:
        """Bring a blob into the repository; the repository that it was mounted from, "" if it was sent."""
        for repository in mount_from:
            if source.digest and await self._mount(source.digest, repository):
                return repository
        location, failed = "", 0
        while True:
            try:
                await self._send(source, location, on_progress)
                return ""
            except _Stopped as stopped:
                location, error = stopped.location, stopped.error
            except (Unreachable, Interrupted, RegistryRefused) as refused:
                location, error = "", refused
            if isinstance(error, RegistryRefused) and (other := self._way_around(error.refusal.status)):
                self._way, location = other, ""
                continue
            if isinstance(error, RegistryRefused) and not error.refusal.transient:
                if error.refusal.status not in (404, 416) or failed:
                    raise push_error(error.refusal) from error
                location = ""
            failed += 1
            if failed >= _TRIES:
                if isinstance(error, RegistryRefused):
                    raise push_error(error.refusal) from error
                raise SystemFault(f"upload failed after attempts={failed}: {error}") from error
            await self._pause(failed, error, on_retry)

    async def put_manifest(self, reference: str, body: bytes, media_type: str, on_retry: OnRetry | None = None) -> None:
        """Store a manifest under a tag or digest."""
        failed = 0
        while True:
            try:
                await self._exchange(
                    "PUT", self._url(f"manifests/{reference}"), {"Content-Type": media_type}, lambda: body, (200, 201)
                )
                return
            except (Unreachable, Interrupted, RegistryRefused) as error:
                failed += 1
                if isinstance(error, RegistryRefused) and not error.refusal.transient:
                    raise push_error(error.refusal) from error
                if failed >= _TRIES:
                    raise SystemFault(str(error)) from error
                await self._pause(failed, error, on_retry)

    async def _mount(self, digest: str, repository: str) -> bool:
        query = f"?mount={quote(digest, safe='')}&from={quote(repository, safe='')}"
        scope = f"{self._scope} repository:{repository}:pull"
        try:
            async with self._session.open(
                "POST", self._url("blobs/uploads/") + query, base=self._base, scope=scope, who=self._who,
                headers={"Content-Length": "0"}, accepted=(201,),
            ):  # fmt: skip
                return True
        except (RegistryRefused, HuskError):
            return False  # not there, not allowed, or not offered: the blob is sent instead

    async def _send(self, source: BlobSource, location: str, on_progress: OnProgress | None) -> None:
        """One try: begin or go on, send the rest, finish."""
        begun = location
        offset = await self._reached(location) if location else 0
        if 0 <= source.size < offset:
            offset = 0  # what it has is something else
        if not offset:
            begun = await self._exchange("POST", self._url("blobs/uploads/"), {"Content-Length": "0"}, None, (202,))
        try:
            if self._way == "whole":
                if not source.digest:
                    await _read_through(source)
                headers = {"Content-Length": str(source.size)} | _OCTETS
                await self._finish(source, begun, headers, lambda: _body(source, 0, on_progress))
                return
            if self._way == "chunks":
                begun = await self._patch_chunks(source, begun, offset, on_progress)
            elif offset != source.size or not source.digest:
                begun = await self._patch(source, begun, offset, on_progress)
            await self._finish(source, begun, {"Content-Length": "0"} | _OCTETS, None)
        except (Unreachable, Interrupted, RegistryRefused) as error:
            raise _Stopped(begun, error) from error

    def _way_around(self, status: int) -> str:
        """Name another way to send a blob to a registry that refuses the one tried; nothing if none is left."""
        if status in _NO_PATCH and self._way != "whole":
            return "whole"
        return "chunks" if status == _TOO_LARGE and self._way == "stream" else ""

    async def _finish(self, source: BlobSource, location: str, headers: dict[str, str], body: MakeBody | None) -> None:
        """End an upload; the registry compares what it has with the digest."""
        target = location + ("&" if "?" in location else "?") + f"digest={quote(source.digest, safe='')}"
        await self._exchange("PUT", target, headers, body, (201, 202, 204))

    async def _patch_chunks(
        self, source: BlobSource, location: str, offset: int, on_progress: OnProgress | None
    ) -> str:
        """Send in pieces of one size, each a request of its own."""
        buffer, sent = bytearray(), offset

        async def send(chunk: bytes) -> None:
            nonlocal location, sent
            headers = {"Content-Length": str(len(chunk)), "Content-Range": f"{sent}-{sent + len(chunk) - 1}"}
            location = await self._exchange("PATCH", location, headers | _OCTETS, lambda: chunk, (202, 204))
            sent += len(chunk)
            if on_progress is not None:
                on_progress(sent)

        try:
            async with aclosing(source.read(offset)) as pieces:
                async for piece in pieces:
                    buffer += piece
                    while len(buffer) >= self._chunk:
                        await send(bytes(buffer[: self._chunk]))
                        del buffer[: self._chunk]
            if buffer:
                await send(bytes(buffer))
        except (Unreachable, Interrupted, RegistryRefused) as error:
            raise _Stopped(location, error) from error
        return location

    async def _patch(self, source: BlobSource, location: str, offset: int, on_progress: OnProgress | None) -> str:
        headers = dict(_OCTETS)
        if source.size >= 0:
            headers["Content-Length"] = str(source.size - offset)
            if offset:
                headers["Content-Range"] = f"{offset}-{source.size - 1}"
        return await self._exchange("PATCH", location, headers, lambda: _body(source, offset, on_progress), (202, 204))

    async def _reached(self, location: str) -> int:
        """Ask how many bytes of the upload at `location` the registry has; 0 when the upload must begin again."""
        try:
            async with self._session.open(
                "GET", location, base=self._base, scope=self._scope, who=self._who, accepted=(204, 200)
            ) as response:
                found = re.fullmatch(r"(?:bytes=)?0-(\d{1,18})", response.headers.get("Range", ""))
                # `0-0` is what registries say of an empty upload as well as of one with a single byte.
                return int(found[1]) + 1 if found and int(found[1]) else 0
        except (RegistryRefused, Unreachable):
            return 0

    async def _exchange(
        self, method: str, url: str, headers: dict[str, str], body: MakeBody | None, accepted: tuple[int, ...]
    ) -> str:
        """Send; where the registry says to go on."""
        async with self._session.open(
            method, url, base=self._base, scope=self._scope, who=self._who, headers=headers, body=body,
            accepted=accepted,
        ) as response:  # fmt: skip
            return resolve_location(str(response.url), response.headers.get("Location", ""))

    def _url(self, target: str) -> str:
        return f"{self._base}/v2/{self._ref.path}/{target}"


class _Stopped(Exception):
    """An upload that has begun at `location` got no further."""

    def __init__(self, location: str, error: Unreachable | Interrupted | RegistryRefused) -> None:
        super().__init__(str(error))
        self.location = location
        self.error = error


async def _read_through(source: BlobSource) -> None:
    """Learn a blob's digest and size, which are told by its end."""
    async with aclosing(source.read(0)) as pieces:
        async for _ in pieces:
            pass


def _body(source: BlobSource, offset: int, on_progress: OnProgress | None) -> Body:
    async def pieces() -> AsyncIterator[bytes]:
        sent = offset
        async with aclosing(source.read(offset)) as chunks:
            async for chunk in chunks:
                yield chunk
                sent += len(chunk)
                if on_progress is not None:
                    on_progress(sent)

    return pieces()
