"""The engine as the services of BuildKit's protocol need it: `Backend`, a builder for the clients of the protocol."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from husk.builder.cache.prune import Item
from husk.builder.graph.graph import Definition
from husk.builder.graph.operations import Source
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.solve import BuildRequest
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.source_policy import DescribedImage
from husk.config import CacheRule
from husk.engine.model.filters import Filters
from husk.registry.manifest import Platform

if TYPE_CHECKING:
    from husk.builder.frontend.gateway import Bridge
    from husk.builder.solver.source_policy import Resolved, ResolvedFile


class FileStat(Struct, frozen=True, kw_only=True):
    """A file of a ref; `mode` has the kernel's bits, times are in nanoseconds."""

    path: str
    mode: int
    uid: int = 0
    gid: int = 0
    size: int = 0
    modified: int = 0
    link: str = ""
    major: int = 0
    minor: int = 0
    xattrs: Mapping[str, bytes] = {}


class BuildWorker(Struct, frozen=True, kw_only=True):
    """The worker of builds, as clients are told of it: the labels decide what they think it can do."""

    id: str
    labels: Mapping[str, str] = {}
    platforms: Sequence[Platform] = ()
    rules: Sequence[CacheRule] = ()


class Backend(Protocol):
    @property
    def sessions(self) -> Sessions: ...

    @property
    def kept_builds(self) -> KeptBuilds:
        """Builds that have ended, beyond the daemon."""
        ...

    async def build(self, request: BuildRequest, /) -> Mapping[str, str]:
        """Begin a job of that id, carry it to its end, and say what the exporters tell."""
        ...

    async def definition(self, data: bytes, /) -> Definition:
        """Read what a client or a frontend has encoded."""
        ...

    def offer_body(self, chunks: AsyncIterator[bytes], /) -> AbstractContextManager[str]:
        """An address under which builds find a context that comes with a request."""
        ...

    async def job(self, id: str, /) -> Job:
        """A job that is under way, or about to begin; NotFound."""
        ...

    async def resolve_image(
        self, job: Job, reference: str, platform: Platform | None, mode: str, shown_as: str, /
    ) -> DescribedImage:
        """Find the digest and the config of an image; `mode` is `default`, `pull` or `local`."""
        ...

    async def resolve_layout(
        self, job: Job, source: Source, platform: Platform | None, shown_as: str, /
    ) -> DescribedImage:
        """Find the digest and the config of an image in a client's OCI layout."""
        ...

    async def resolve_git(self, job: Job, source: Source, shown_as: str, /) -> "Resolved":
        """Find the commit that a name in a repository stands for now."""
        ...

    async def resolve_file(self, job: Job, source: Source, shown_as: str, /) -> "ResolvedFile":
        """Find the digest of the file that an address of the web has now."""
        ...

    async def read_file(self, ref: Ref, path: str, offset: int, length: int, /) -> bytes:
        """Some of a file, all of it if `length` is 0; NotFound."""
        ...

    async def read_directory(self, ref: Ref, path: str, pattern: str, /) -> Sequence[FileStat]:
        """List the files of a directory, only those whose names match if a pattern is given."""
        ...

    async def stat(self, ref: Ref, path: str, /) -> FileStat: ...

    def workers(self) -> Sequence[BuildWorker]: ...

    def serve_frontends(self, bridge: "Bridge", /) -> None:
        """Let `bridge` answer the calls of frontends that are images, from now on."""
        ...

    async def cached(self, filters: Filters, /) -> Sequence[Item]:
        """The records of the cache."""
        ...

    async def prune(self, filters: Filters, /, *, all: bool, keep: int) -> Sequence[Item]:
        """Remove records, until no more than `keep` bytes are left; those that went."""
        ...
