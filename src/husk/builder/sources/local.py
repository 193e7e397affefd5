"""Directories of a client as sources of builds: `local://context`, and which files of it are wanted.

Whose directory it is, the attribute `local.session` says, else it is that of the client who waits for the build. What a
directory contains is only known when it is here, so its key is that of the session: a build asks once.
"""

import hashlib
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

import msgspec
from msgspec import Struct

from husk.builder.graph import schemes
from husk.builder.graph.operations import Source
from husk.builder.graph.progress import Status
from husk.builder.solver.interfaces import Watcher
from husk.builder.solver.sessions import LocalDirectory, Session, Sessions
from husk.builder.store.ahead import AheadTar
from husk.builder.store.sync.exchange import SyncChannel
from husk.errors import InvalidParameter, NotImplementedYet, Unavailable
from husk.registry.manifest import Platform
from husk.text.documents import MalformedDocument, decode

_PATTERNS = {"include": "local.includepattern", "exclude": "local.excludepatterns", "follow": "local.followpaths"}
# How many bytes more are worth telling.
_STEP = 1 << 20


class Mirrors(Protocol):
    """The directories of clients that are kept here: `husk.builder.store.sync.mirrors`."""

    async def sync(
        self,
        key: str,
        channel: SyncChannel,
        take: Callable[[str], Awaitable[bool]],
        progress: Callable[[int], None] | None = None,
        ahead: AheadTar | None = None,
        anew: bool = False,
    ) -> str: ...


class FetchedDirectory(Struct, frozen=True):
    stack: str
    made: list[str]
    description: str
    type: str = "source.local"


class LocalSource:
    """`take` asks the cache for a diff that it may no longer need; it is to `release` those that nobody gets."""

    def __init__(
        self,
        mirrors: Mirrors,
        sessions: Sessions,
        take: Callable[[str], Awaitable[bool]],
        release: Callable[[Collection[str]], Awaitable[None]],
    ) -> None:
        self._release = release
        self._mirrors = mirrors
        self._sessions = sessions
        self._take = take

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        session = await self._session(source, watcher)
        wanted = msgspec.json.encode([session.id, directory_of(source)])
        return f"session:{name_of(source)}:{hashlib.sha256(wanted).hexdigest()}"

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedDirectory:
        return await self.fetch_ahead(source, watcher, None)

    async def fetch_ahead(self, source: Source, watcher: Watcher, ahead: AheadTar | None) -> FetchedDirectory:
        name, directory = name_of(source), directory_of(source)
        if source.attributes.get("local.metadatatransfer") in ("1", "true"):
            raise NotImplementedYet(f"the metadata of {name} alone cannot be transferred by Husk yet")
        session = await self._session(source, watcher)
        told = _Transfer(name, watcher)
        element = ""
        try:
            async with session.sync(directory) as channel:
                # Then nothing is compared with what was sent before.
                anew = source.attributes.get("local.differ") == "none"
                key = mirror_key(source, session)
                element = await self._mirrors.sync(key, channel, self._take, told.progress, ahead, anew)
        except BaseException:
            if element:  # all has come, and nobody waits for it any more
                await self._release([element])
            raise
        told.end()
        return FetchedDirectory(element, [element], f"local source for {name}")

    async def _session(self, source: Source, watcher: Watcher) -> Session:
        if id := source.attributes.get("local.session", ""):
            try:
                return await self._sessions.get(id)
            except Unavailable:
                if watcher.session is None:
                    raise
        if watcher.session is None:
            raise InvalidParameter("could not access local files without session")
        return watcher.session


class _Transfer:
    """The progress of one directory in a build's terms."""

    def __init__(self, name: str, watcher: Watcher) -> None:
        self._id = f"transferring {name}:"
        self._watcher = watcher
        self._total = 0
        self._told = 0
        self._tell(done=False)

    def progress(self, total: int) -> None:
        self._total = total
        if total - self._told >= _STEP:
            self._tell(done=False)

    def end(self) -> None:
        self._tell(done=True)

    def _tell(self, *, done: bool) -> None:
        self._told = self._total
        self._watcher.status(Status(id=self._id, current=self._total, total=0, done=done))


def name_of(source: Source) -> str:
    """The client's name for the directory. A session's id with something before a colon has its own directories."""
    name = source.identifier.removeprefix(f"{schemes.LOCAL}://")
    prefix, _, rest = source.attributes.get("local.session", "").partition(":")
    return f"{prefix}-{name}" if rest else name


def directory_of(source: Source) -> LocalDirectory:
    patterns = {field: _patterns(source.attributes.get(name, ""), name) for field, name in _PATTERNS.items()}
    return LocalDirectory(name=name_of(source), **patterns)


def mirror_key(source: Source, session: Session) -> str:
    """Directories with the same key have mostly the same files."""
    return f"{name_of(source)}:{source.attributes.get('local.sharedkeyhint', '')}:{session.shared_key}"


def _patterns(text: str, name: str) -> list[str]:
    if not text:
        return []
    try:
        return decode(text, list[str] | None) or []
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid value for {name}: {error}") from None
