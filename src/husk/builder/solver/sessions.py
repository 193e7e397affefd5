"""The questions of a build to the client that started it, for files, secrets, keys, logins; and what it sends back.

A client that builds keeps a session open beside its requests. The builder knows it by the protocol `Session`; how a
question gets to the client is the edge's business. `Sessions` has all that are open, by id:

    session = await sessions.get(id)
    password = await session.secret("npm")

A client that does not have what it is asked for is NotFound; one that has gone is Unavailable.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from husk.builder.solver.source_policy import Decision, Inquiry, SourceFacts
from husk.builder.store.sync.exchange import SyncChannel
from husk.errors import Conflict, Unavailable
from husk.registry.auth import Credentials
from husk.registry.manifest import Platform

# What BuildKit takes of a secret.
LARGEST_SECRET = 500 * 1024
# A build may be asked for before the session that it names has come.
_PATIENCE = 10.0


class LocalDirectory(Struct, frozen=True, kw_only=True):
    """A directory of the client's, by the name that it has for it, and which files of it are wanted."""

    name: str
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    follow: Sequence[str] = ()  # links in the way of these are wanted with what they lead to


class TokenRequest(Struct, frozen=True, kw_only=True):
    """The token that a registry's challenge asks for."""

    host: str
    realm: str
    service: str = ""
    scopes: Sequence[str] = ()


class SessionToken(Struct, frozen=True):
    token: str
    expires_in: int = 60  # seconds
    issued_at: int = 0  # seconds since 1970; 0: now

    def __repr__(self) -> str:
        return f"Token(expires_in={self.expires_in})"


class ContentStore(Protocol):
    """Blobs of a client, by digest: an OCI layout on its disk. What was read is not compared with its digest."""

    async def size(self, digest: str, /) -> int:
        """Return the size of a blob in bytes; NotFound."""
        ...

    def read(self, digest: str, /, offset: int = 0) -> AsyncIterator[bytes]:
        """A blob from `offset` on; NotFound."""
        ...

    async def write(self, digest: str, size: int, chunks: AsyncIterator[bytes], /) -> bool:
        """Give the client a blob; False if it has it already, and then nothing is taken of `chunks`."""
        ...


class Session(Protocol):
    """One client that is there."""

    @property
    def id(self) -> str: ...

    @property
    def shared_key(self) -> str:
        """The same for all sessions whose directories of one name are the same ones."""
        ...

    async def secret(self, id: str, /) -> bytes:
        """A secret's value, at most LARGEST_SECRET bytes."""
        ...

    async def check_agent(self, id: str, /) -> None:
        """NotFound if the client forwards no SSH agent of this id ("default" if the build names none)."""
        ...

    async def forward_agent(self, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, /) -> None:
        """Connect one peer with the client's SSH agent until either hangs up; closes `writer`. Never fails."""
        ...

    async def credentials(self, host: str, /) -> Credentials:
        """Ask for the client's login at a registry, nobody's if it has none; Docker Hub is `registry-1.docker.io`."""
        ...

    async def token(self, request: TokenRequest, /) -> SessionToken | None:
        """A registry's token, got by the client so that its password stays there; None if it leaves that to us."""
        ...

    def sync(self, directory: LocalDirectory, /) -> AbstractAsyncContextManager[SyncChannel]:
        """The client's end of a file sync: packets of fsutil's, the client being the sender."""
        ...

    def send_directory(self, exporter: int, /) -> AbstractAsyncContextManager[SyncChannel]:
        """The client's end of a file sync the other way: it writes what we send into an exporter's directory."""
        ...

    async def send_file(self, exporter: int, chunks: AsyncIterator[bytes], metadata: Mapping[str, str], /) -> bool:
        """Send a file (a tar) to an exporter's destination; False if the client has it already and wants none."""
        ...

    def content(self, store: str, /) -> ContentStore:
        """A store of blobs that the client offers by this name; NotFound if it offers none."""
        ...

    async def check_policy(self, facts: SourceFacts, platform: Platform | None, /) -> Decision | Inquiry:
        """Ask the client's policy about a source: it decides, or wants to know more."""
        ...

    def upload(self, url: str, /) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read the file that a client offers under a URL of its own: a context that came on its standard input."""
        ...


class Sessions:
    """The sessions that are open."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._changed = asyncio.Condition()

    async def add(self, session: Session) -> None:
        async with self._changed:
            if session.id in self._open:
                raise Conflict(f"session {session.id} already exists")
            self._open[session.id] = session
            self._changed.notify_all()

    def remove(self, session: Session) -> None:
        """Remove a session that is open here. May be called at any time, any number of times."""
        if self._open.get(session.id) is session:
            del self._open[session.id]

    async def get(self, id: str, *, patience: float = _PATIENCE) -> Session:
        """A session, which may still be on its way. What is before a colon in the id names a directory."""
        prefix, _, rest = id.partition(":")
        id = rest or prefix
        try:
            async with asyncio.timeout(patience), self._changed:
                await self._changed.wait_for(lambda: id in self._open)
                return self._open[id]
        except TimeoutError:
            raise Unavailable(f"no active session for {id}: the client that started the build has gone") from None
