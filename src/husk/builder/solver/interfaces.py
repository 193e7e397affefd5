"""The interfaces of the solver: records, the cache, whoever carries operations out, clients."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.graph.graph import Graph, Vertex
from husk.builder.graph.operations import Edge, NestedBuild, Operation
from husk.builder.graph.progress import Progress, Status
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import FREE, SourcePolicy
from husk.builder.store.ahead import AheadTar, Below
from husk.builder.store.file_actions import FileAction, Selection


class Record(Struct, frozen=True):
    """A result that is there: its outputs are named by whoever made them, and so is what was made anew for it.

    One that is `absent` is known to exist, elsewhere or once: it tells what others are made from. `times` (nanoseconds)
    say when what was fetched for it was made, where that was not now.
    """

    id: str
    outputs: list[str]
    made: list[str] = []
    description: str = ""
    type: str = "regular"
    absent: bool = False
    times: dict[str, int] = {}


class CacheSource(Struct, frozen=True):
    """A cache that is elsewhere, as a client names it."""

    kind: str
    attributes: Mapping[str, str] = {}


class Cache(Protocol):
    """A memory of records by keys. A record that is held is not thrown away."""

    async def find(self, key: str) -> Record | None: ...

    def know(self, key: str) -> Record | None:
        """Also one that is not here."""
        ...

    def is_whole(self, record: Record) -> bool: ...

    async def remember(self, keys: Sequence[str], record: Record) -> None: ...

    async def release_unnamed(self, elements: Collection[str]) -> None:
        """Let go of those of what an operation has made that are in no record."""
        ...

    async def forget(self, stack: str) -> None:
        """Forget what was made for one build alone, with the records that it is in."""
        ...

    def hold(self, record: Record) -> None: ...

    def release(self, record: Record) -> None: ...

    def save_uses(self, records: Sequence[Record]) -> None:
        """Remember beyond this daemon when these were used."""
        ...


class Watcher(Protocol):
    """Takes what an operation says while it runs, and asks on behalf of those who wait for it."""

    @property
    def session(self) -> Session | None: ...

    def log(self, data: bytes, *, stderr: bool = False) -> None: ...

    def status(self, status: Status) -> None: ...


class Customer(Watcher, Protocol):
    """A watcher for whom something is done, with what its user allows (`entitlements`)."""

    @property
    def granted(self) -> Collection[str]: ...


class Executor(Protocol):
    """The part that carries operations out."""

    def begin_anew(self, vertices: Iterable[Vertex]) -> None:
        """A build of these begins: what steps keep beside the cache is not for those that are made without one."""
        ...

    async def source_key(self, operation: Operation, watcher: Watcher) -> str:
        """Ask for a source's state right now: an image's digest, a commit, the digest of a context that was sent."""
        ...

    async def run(self, vertex: Vertex, inputs: Sequence[str], watcher: Customer) -> Record:
        """Make the outputs of an operation; leave nothing behind if it fails or is cancelled."""
        ...

    async def content_digest(self, output: str, selections: Sequence[Selection]) -> str:
        """The digest of files in an output."""
        ...

    def ahead(self, action: FileAction, below: Below) -> AheadTar:
        """For a copy that waits for a source: its layer may be packed while the source comes."""
        ...

    async def definition(self, body: NestedBuild, inputs: Sequence[str]) -> tuple[Graph, Edge]:
        """Read what a build within a build is to make: a graph and an edge of it."""
        ...


class PortableExecutor(Protocol):
    """The same two in the terms of caches that others write and read, too."""

    async def portable_source_keys(self, operation: Operation, watcher: Watcher) -> list[str]:
        """By which digests a source is known; none if it has no name beyond this build."""
        ...

    async def portable_digests(self, output: str, selections: Sequence[Selection]) -> list[str]:
        """The digests by which these files are known; any of them will do."""
        ...


class Elsewhere(Protocol):
    """Caches that are not ours, as one build knows them: `husk.builder.remote_cache`."""

    async def find(
        self, vertex: Vertex, records: Sequence[Record], key: str, known: Record | None, watcher: Watcher
    ) -> Record | None:
        """Find the record of a vertex elsewhere, perhaps only the fact that it exists; inputs are asked for first."""
        ...

    async def fetch(self, record: Record, watcher: Watcher) -> bool:
        """Bring its layers here; False if they cannot be had."""
        ...

    async def close(self) -> None: ...


class Client(Struct, frozen=True, eq=False):
    """The client of a build: whoever watches it, the session to ask, the caches that may help, what its steps may
    ask for, and the sources that it may have."""

    progress: Progress
    session: Session | None = None
    elsewhere: Elsewhere | None = None
    granted: Collection[str] = ()
    policy: SourcePolicy = FREE
