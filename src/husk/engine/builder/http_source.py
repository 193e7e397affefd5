"""Files of the web as sources of builds: `ADD https://…`. What an address has is asked with every build.

A file that was fetched is a record of the cache, known by the digest of its content. So a build that wants it by its
checksum fetches nothing, and one that finds the same content again makes nothing anew.
"""

import posixpath
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from husk.engine.builder import cache_keys
from husk.engine.builder.operations import Operation, Source
from husk.engine.builder.progress import Status
from husk.engine.builder.solver import Record, Watcher
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform

SCHEMES = ("http", "https")
_NAMELESS = "download"
_MODE = 0o600
_LONGEST_NAME = 200

Download = Callable[[str], AsyncGenerator[tuple[bytes, int], None]]


class Files(Protocol):
    """Makes stacks of single files: `husk.storage.contexts`."""

    async def keep_file(
        self, name: str, chunks: AsyncIterator[bytes], *, mode: int, owner: tuple[int, int]
    ) -> tuple[str, str]: ...


class FetchedFile(Struct, frozen=True):
    stack: str
    description: str
    made: list[str] = []
    type: str = "regular"


class Kept(Protocol):
    """The cache of builds."""

    async def find(self, key: str, /) -> Record | None: ...

    async def remember(self, keys: Sequence[str], record: Record, /) -> None: ...

    async def forget(self, stack: str, /) -> None: ...


class HttpSource:
    def __init__(self, download: Download, files: Files, cache: Kept) -> None:
        self._download = download
        self._files = files
        self._cache = cache

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        """The file is fetched for it, unless its checksum is known: from then on the solver finds it in the cache."""
        checksum = source.attributes.get("http.checksum", "")
        known = await self._cache.find(_known_as(source, checksum)) if checksum else None
        if known is None:
            digest, known = await self._keep(source, watcher)
        else:
            digest = checksum
        key = _known_as(source, digest)
        await self._cache.remember([cache_keys.by_definition(Operation(source, [], platform), [key])], known)
        return key

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedFile:
        """For a build that wants nothing from the cache."""
        _, record = await self._keep(source, watcher)
        return FetchedFile(record.outputs[0], record.description)

    async def _keep(self, source: Source, watcher: Watcher) -> tuple[str, Record]:
        """Fetch a file and keep it, unless the same is kept already; its digest."""
        mode, owner = _mode(source), (_number(source, "http.uid"), _number(source, "http.gid"))
        chunks = self._chunks(source.identifier, watcher)
        element, digest = await self._files.keep_file(name_of(source), chunks, mode=mode, owner=owner)
        checksum = source.attributes.get("http.checksum", "")
        known = await self._cache.find(_known_as(source, digest))
        if known is not None or checksum not in ("", digest):
            await self._cache.forget(element)
        if checksum not in ("", digest):
            raise InvalidParameter(f"digest mismatch {digest}: {checksum}")
        if known is None:
            description = f"http url {source.identifier}"
            known = Record(secrets.token_hex(13)[:25], [element], [element], description)
            await self._cache.remember([_known_as(source, digest)], known)
        return digest, known

    async def _chunks(self, url: str, watcher: Watcher) -> AsyncIterator[bytes]:
        received = 0
        async with aclosing(self._download(url)) as download:
            async for chunk, total in download:
                received += len(chunk)
                watcher.status(Status(id="downloading", current=received, total=total))
                yield chunk
        watcher.status(Status(id="downloading", current=received, total=received, done=True))


def name_of(source: Source) -> str:
    """What the file is called: as the client says, else as the address does."""
    name = source.attributes.get("http.filename", "") or posixpath.basename(urlsplit(source.identifier).path)
    if "/" in name or "\0" in name or name in (".", "..") or len(name) > _LONGEST_NAME:
        raise InvalidParameter(f"invalid name of a file: {name!r}")
    return name or _NAMELESS


def _known_as(source: Source, digest: str) -> str:
    """All that makes one file different from another."""
    owner = f"{source.attributes.get('http.uid', '')}:{source.attributes.get('http.gid', '')}"
    return f"http {digest} {name_of(source)} {source.attributes.get('http.perm', '')} {owner}"


def _mode(source: Source) -> int:
    text = source.attributes.get("http.perm", "")
    try:
        return int(text, 8) & 0o7777 if text else _MODE
    except ValueError:
        raise InvalidParameter(f"invalid mode of a file: {text!r}") from None


def _number(source: Source, name: str) -> int:
    text = source.attributes.get(name, "")
    try:
        return int(text or "0")
    except ValueError:
        raise InvalidParameter(f"invalid {name}: {text!r}") from None
