"""Files of the web as sources of builds: `ADD https://…`, and contexts that lie there or come from a client's input.

What an address has is asked with every build. A file that was fetched is a record of the cache, known by the digest of
its content. So a build that wants it by its checksum fetches nothing, one whose server says that the file is still the
same fetches nothing either, and one that finds the same content again makes nothing anew.
"""

import posixpath
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import SplitResult

from msgspec import Struct

from husk.builder.graph import cache_keys
from husk.builder.graph.operations import Operation, Source
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Record, Watcher
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import ResolvedFile
from husk.builder.sources.per_build import PerBuild
from husk.builder.sources.request_bodies import RequestBodies
from husk.builder.sources.seen_files import SeenFiles
from husk.errors import InvalidParameter, NotFound, NotImplementedYet
from husk.registry.manifest import Platform
from husk.registry.web import seconds_of
from husk.text.urls import split_url
from husk.version import __version__

# What a client has under a URL of this host, it gives us over its session.
OF_CLIENT = "buildkit-session"
_NAMELESS = "download"
_MODE = 0o600
_LONGEST_NAME = 200
_LARGEST_HEADER = 16 << 10
_OWN_HEADERS = ("accept", "user-agent")
_SIGNATURES = ("http.sig.pubkey", "http.sig.signature")


USER_AGENT = f"buildkit/v0.25 husk/{__version__}"


class WebFile(Protocol):
    """`husk.registry.web`."""

    @property
    def unchanged(self) -> bool: ...

    @property
    def size(self) -> int: ...

    @property
    def etag(self) -> str: ...

    @property
    def modified(self) -> str: ...

    @property
    def name(self) -> str: ...

    def chunks(self) -> AsyncIterator[bytes]: ...


Open = Callable[[str, Mapping[str, str]], AbstractAsyncContextManager[WebFile]]


class FileKeeper(Protocol):
    """Makes stacks of single files: `husk.builder.store.contexts`."""

    async def keep_file(
        self, name: str, chunks: AsyncIterator[bytes], *, mode: int, owner: tuple[int, int], time: int
    ) -> tuple[str, str]: ...


class FetchedFile(Struct, frozen=True):
    stack: str
    description: str
    made: list[str] = []
    type: str = "regular"


class BuildCache(Protocol):
    """The cache of builds."""

    async def find(self, key: str, /) -> Record | None: ...

    async def remember(self, keys: Sequence[str], record: Record, /) -> None: ...

    async def forget(self, stack: str, /) -> None: ...


class HttpSource:
    def __init__(
        self,
        open: Open,
        files: FileKeeper,
        cache: BuildCache,
        bodies: RequestBodies | None = None,
        seen: SeenFiles | None = None,
    ) -> None:
        """`bodies` are contexts that come with requests, by addresses of their own; `seen` outlives the daemon."""
        self._open = open
        self._files = files
        self._cache = cache
        self._bodies = bodies or RequestBodies()
        # What servers have said of files, to ask them whether it is still so.
        self._seen = seen or SeenFiles()
        self._once: PerBuild[ResolvedFile] = PerBuild()

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        """The file is fetched for it, unless it is known: from then on the solver finds it in the cache."""
        found, record = await self.have(source, watcher)
        key = _known_as(source, found)
        await self._cache.remember([cache_keys.by_definition(Operation(source, [], platform), [key])], record)
        return key

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedFile:
        """For a build that wants nothing from the cache."""
        _, record = await self.have(source, watcher)
        return FetchedFile(record.outputs[0], record.description)

    async def have(self, source: Source, watcher: Watcher) -> tuple[ResolvedFile, Record]:
        """Return the state of the source right now, and the record of the file itself."""
        if any(source.attributes.get(name) for name in _SIGNATURES):
            raise NotImplementedYet("signatures of files of the web are not checked by Husk yet")
        checksum = source.attributes.get("http.checksum", "")
        if checksum:
            wanted = ResolvedFile(checksum, name_of(source))
            if record := await self._cache.find(_known_as(source, wanted)):
                return wanted, record
        found, record = await self._had(source, watcher) or await self._ask(source, watcher)
        self._once.keep(watcher.session, _asked(source), found)
        if checksum not in ("", found.digest):
            raise InvalidParameter(f"digest mismatch for {source.identifier}: {found.digest} (expected: {checksum})")
        return (ResolvedFile(checksum, found.name) if checksum else found), record

    async def _had(self, source: Source, watcher: Watcher) -> tuple[ResolvedFile, Record] | None:
        """Return the file that this build has asked for before; None if there is none, or it is not here any more."""
        found = self._once.get(watcher.session, _asked(source))
        record = await self._cache.find(_known_as(source, found)) if found else None
        return (found, record) if found and record else None

    async def _ask(self, source: Source, watcher: Watcher) -> tuple[ResolvedFile, Record]:
        if _is_of_client(source):
            return await self._keep(source, SessionFile(source, watcher.session), watcher)
        body = self._bodies.get(source.identifier)
        seen = (body.made if body else self._seen).get(_asked(source))
        record = await self._cache.find(_known_as(source, seen)) if seen else None
        if body:
            if seen and record:
                return seen, record
            found, record = await self._keep(source, body, watcher)
            body.made[_asked(source)] = found
            return found, record
        headers = await _headers(source, watcher.session) | (_conditions(seen) if seen and record else {})
        async with self._open(source.identifier, headers) as file:
            if seen and record and (file.unchanged or (seen.etag and file.etag == seen.etag)):
                return seen, record
            if file.unchanged:
                raise InvalidParameter(f"{source.identifier} is said to be unchanged, and was never here")
            return await self._keep(source, file, watcher)

    async def _keep(self, source: Source, file: WebFile, watcher: Watcher) -> tuple[ResolvedFile, Record]:
        """Keep a file, unless the same is kept already."""
        name, modified = name_of(source, file.name), file.modified
        element, digest = await self._files.keep_file(
            name,
            _told(file, watcher),
            mode=_mode(source),
            owner=(_number(source, "http.uid"), _number(source, "http.gid")),
            time=seconds_of(modified),
        )
        found = ResolvedFile(digest, name, modified, file.etag)
        record = await self._cache.find(_known_as(source, found))
        wrong = source.attributes.get("http.checksum", "") not in ("", digest)
        if record is not None or wrong:
            await self._cache.forget(element)
        if record is None:
            description = f"http url {source.identifier}"
            record = Record(secrets.token_hex(13)[:25], [element], [element], description)
            if wrong:
                return found, record
            # By its checksum it is found whatever its time is.
            await self._cache.remember(
                [_known_as(source, found), _known_as(source, ResolvedFile(digest, name))], record
            )
        if found.etag or found.modified:
            await self._seen.keep(_asked(source), found)
        return found, record


async def _told(file: WebFile, watcher: Watcher) -> AsyncIterator[bytes]:
    received = 0
    async for chunk in file.chunks():
        received += len(chunk)
        watcher.status(Status(id="downloading", current=received, total=file.size))
        yield chunk
    watcher.status(Status(id="downloading", current=received, total=received, done=True))


class SessionFile:
    """A file that a client offers over its session, as if it were a file of the web."""

    unchanged = False
    size = 0
    etag = modified = name = ""

    def __init__(self, source: Source, session: Session | None) -> None:
        if session is None:
            raise InvalidParameter(f"{source.identifier} belongs to a client, and there is none")
        self._url = source.identifier
        self._session = session

    async def chunks(self) -> AsyncIterator[bytes]:
        async with self._session.upload(self._url) as chunks:
            async for chunk in chunks:
                yield chunk


def _is_of_client(source: Source) -> bool:
    return _address(source).netloc == OF_CLIENT


def _address(source: Source) -> SplitResult:
    try:
        return split_url(source.identifier)
    except ValueError as error:
        raise InvalidParameter(f"{source.identifier[:200]!r} is no address: {str(error).lower()}") from None


# --- what servers are told -------------------------------------------------------------------------------------------


async def _headers(source: Source, session: Session | None) -> dict[str, str]:
    said = {name: source.attributes.get(f"http.header.{name}", "") for name in _OWN_HEADERS}
    # Servers know BuildKit.
    headers = {"user-agent": USER_AGENT}
    headers |= {name: value for name, value in said.items() if value and value.isprintable()}
    if authorization := await _authorization(source, session):
        headers["authorization"] = authorization
    return headers


async def _authorization(source: Source, session: Session | None) -> str:
    """The secret that the source names; else one that the client has for this host."""
    if name := source.attributes.get("http.authheadersecret", ""):
        if session is None:
            raise InvalidParameter(f"failed to retrieve HTTP auth secret {name}: there is no client")
        return _header(name, await session.secret(name))
    host = _address(source).hostname or ""
    for name, prefix in ((f"HTTP_AUTH_TOKEN_{host}", "Bearer "), (f"HTTP_AUTH_HEADER_{host}", "")):
        try:
            if session:
                return prefix + _header(name, await session.secret(name))
        except NotFound:
            continue
    return ""


def _header(name: str, secret: bytes) -> str:
    value = secret.decode("latin-1").strip()
    if len(value) > _LARGEST_HEADER or not value.isprintable():
        raise InvalidParameter(f"the secret {name} cannot be a header of HTTP")
    return value


def _conditions(seen: ResolvedFile) -> dict[str, str]:
    if seen.etag:
        return {"if-none-match": seen.etag}
    return {"if-modified-since": seen.modified} if seen.modified else {}


# --- what makes one file different from another ----------------------------------------------------------------------


def name_of(source: Source, said: str = "") -> str:
    """Choose the name of a file: the client's, else the server's, else the address's. InvalidParameter if invalid."""
    url = posixpath.basename(_address(source).path)
    name = source.attributes.get("http.filename", "") or said or url
    if "/" in name or "\0" in name or name in (".", "..") or len(name.encode()) > _LONGEST_NAME:
        raise InvalidParameter(f"invalid name of a file: {name!r}")
    return name or _NAMELESS


def _asked(source: Source) -> str:
    said = sorted((name, value) for name, value in source.attributes.items() if name != "http.checksum")
    return f"{source.identifier} {said}"


def _known_as(source: Source, found: ResolvedFile) -> str:
    owner = f"{source.attributes.get('http.uid', '')}:{source.attributes.get('http.gid', '')}"
    return f"http {found.digest} {found.name} {source.attributes.get('http.perm', '')} {owner} {found.modified}".strip()


def _mode(source: Source) -> int:
    text = source.attributes.get("http.perm", "")
    try:
        return int(text, 8 if text.startswith("0") else 10) & 0o7777 if text else _MODE
    except ValueError:
        raise InvalidParameter(f"invalid mode of a file: {text!r}") from None


def _number(source: Source, name: str) -> int:
    text = source.attributes.get(name, "")
    try:
        return int(text or "0")
    except ValueError:
        raise InvalidParameter(f"invalid {name}: {text!r}") from None
