"""The operations of the edge on builds: one method for each operation of the API."""

import asyncio
import fnmatch
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Protocol

from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.cache.cache import BuildCache
from husk.builder.cache.prune import CachePruner, Item, PrunedCache
from husk.builder.classic.build import DOCKERFILE, ClassicRequest, Report
from husk.builder.frontend import remote_context
from husk.builder.frontend.gateway import Bridge
from husk.builder.frontend.parts import FrontendParts
from husk.builder.graph.operations import Source
from husk.builder.graph.progress import Progress as WatchesBuild
from husk.builder.graph.progress import Status
from husk.builder.graph.schemes import redacted
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.kept_builds import KeptBuilds
from husk.builder.result_parts import ResultParts
from husk.builder.solve import BuildRequest
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.refs import Ref
from husk.builder.solver.sessions import Sessions
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.builder.sources.images import CredentialsFor
from husk.builder.sources.parts import SourceParts
from husk.builder.sources.request_bodies import RequestBodies
from husk.config import CacheRule, ContainerDefaults
from husk.engine.model.filters import NO_FILTERS, Filters
from husk.engine.model.image import Image, Progress
from husk.errors import HuskError, InvalidParameter, NotFound
from husk.registry.client import RegistryClient
from husk.registry.manifest import Platform, host_platform
from husk.storage.workers.answers import FoundFile as FoundFile
from husk.watch import Watch

log = logging.getLogger(__name__)

LARGEST_FILE = 64 << 20
# Seconds from a build's end until its cache is looked through: the next build may begin at once.
_PAUSE = 0.5


# No name of a file is longer, and what is made of one for its comparison is.
_LONGEST_PATTERN = 1024


class Contexts(Protocol):
    """Contexts that came as archives, and files of results: `husk.builder.store`."""

    async def unpack(self, chunks: AsyncIterator[bytes]) -> str: ...

    async def keep_file(
        self, name: str, chunks: AsyncIterator[bytes], *, mode: int, owner: tuple[int, int]
    ) -> tuple[str, str]: ...

    async def read(self, stack: str, path: str, most: int, offset: int = 0) -> bytes | None: ...

    async def look(self, stack: str, path: str, *, inside: bool = False) -> Sequence[FoundFile]: ...


class StepDefaults(Protocol):
    """Runs processes: `husk.builder.steps`."""

    def reload(self, defaults: ContainerDefaults) -> None: ...


class Rest(Protocol):
    """The work that waits until no builds come any more: `husk.runtime.rest`."""

    def worked(self) -> None: ...

    async def close(self) -> None: ...


class _Teller:
    """Tells a client without a session what a source says."""

    session = None

    def __init__(self, report: Report) -> None:
        self._report = report

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        self._report(Progress(stream=data.decode("utf-8", "replace")))

    def status(self, status: Status) -> None:
        pass


class Builder:
    def __init__(
        self,
        *,
        kept: KeptBuilds,
        sessions: Sessions,
        cache: BuildCache,
        pruner: CachePruner,
        contexts: Contexts,
        sources: SourceParts,
        steps: StepDefaults,
        frontend: FrontendParts,
        results: ResultParts,
        registry: RegistryClient,
        rules: Sequence[CacheRule],
        platforms: Callable[[], list[Platform]],
        rest: Rest,
        watch: Watch | None = None,
    ) -> None:
        """`rules` say what of the cache goes after a build, `platforms` what steps can be run for."""
        self.definitions = frontend.definitions
        self.jobs = frontend.jobs
        self.kept = kept
        self.sessions = sessions
        self._solves = results.solves
        self._cache = cache
        self._pruner = pruner
        self._contexts = contexts
        self._sources = sources
        self._frontend = frontend
        self._results = results
        self._steps = steps
        self._registry = registry
        self.rules = rules
        self.platforms = platforms
        self._rest = rest
        self._watch = watch or Watch()
        self._tasks = Tasks()
        self._collecting = Tasks()
        self._parts = AsyncExitStack()

    @property
    def bodies(self) -> RequestBodies:
        """The bodies of requests, as a source of builds."""
        return self._sources.bodies

    def understand(self, bridge: Bridge) -> None:
        """Let `bridge` answer the calls of frontends that are images."""
        self._frontend.understand(bridge)

    def owns(self, parts: AsyncExitStack) -> None:
        """Take parts that are closed together with the builder."""
        self._parts = parts

    def reload(self, defaults: ContainerDefaults) -> None:
        """Steps from now on get these."""
        self._steps.reload(defaults)

    async def close(self) -> None:
        await self._rest.close()
        await self._collecting.cancel_all()
        await self._tasks.join()
        await self._parts.aclose()

    async def solve(self, request: BuildRequest) -> dict[str, str]:
        """A build by BuildKit's protocol."""
        try:
            with self._watch.action("build"):
                return await self._solves.solve(request)
        finally:
            self.collect_soon()

    async def build_upload(
        self,
        request: ClassicRequest,
        chunks: AsyncIterator[bytes],
        credentials: CredentialsFor,
        report: Report,
        watcher: WatchesBuild | None = None,
    ) -> Image:
        """Build from a context that comes as an archive."""
        async with self._context(chunks) as context:
            return await self._build(request, context, credentials, report, watcher)

    async def _build(
        self,
        request: ClassicRequest,
        context: str,
        credentials: CredentialsFor,
        report: Report,
        watcher: WatchesBuild | None,
    ) -> Image:
        with self._watch.action("build"):
            return await self._results.classic.build(request, context, credentials, report, watcher)

    async def build_remote(
        self,
        request: ClassicRequest,
        url: str,
        credentials: CredentialsFor,
        report: Report,
        watcher: WatchesBuild | None = None,
    ) -> Image:
        """Build from a context that is a repository of git, or on the web: an archive, or a Dockerfile alone."""
        if source := remote_context.git_context(url):
            async with self._repository(source, report) as context:
                return await self._build(request, context, credentials, report, watcher)
        if not url.startswith(("http://", "https://")):
            raise InvalidParameter(f"remoteURL ({url[:200]}) could not be recognized as URL")
        async with aclosing(self._download(url, report)) as chunks:
            head = await _head(chunks)
            if remote_context.is_archive(head):
                return await self.build_upload(request, _chained(head, chunks), credentials, report, watcher)

            context, _ = await self._contexts.keep_file(DOCKERFILE, _chained(head, chunks), mode=0o600, owner=(0, 0))
            async with self._given(context):
                request = structs.replace(request, dockerfile=DOCKERFILE)
                return await self._build(request, context, credentials, report, watcher)

    async def _download(self, url: str, report: Report) -> AsyncGenerator[bytes, None]:
        received = 0
        try:
            async with aclosing(self._registry.download(url)) as download:
                async for chunk, total in download:
                    received += len(chunk)
                    report(Progress(status="Downloading build context", current=received, total=total))
                    yield chunk
        except HuskError as error:
            raise error.within(f"error downloading remote context {redacted(url)}") from error.__cause__

    @asynccontextmanager
    async def _repository(self, source: Source, report: Report) -> AsyncIterator[str]:
        """The files of a repository, which the cache keeps meanwhile."""
        record = await self._sources.git.have(source, _Teller(report))
        self._cache.hold(record)
        try:
            yield record.outputs[0]
        finally:
            self._cache.release(record)
            self.collect_soon()

    @asynccontextmanager
    async def _context(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """A context lives as long as its build; what was made of it has keys by content."""
        async with self._given(await self._contexts.unpack(chunks)) as context:
            yield context

    @asynccontextmanager
    async def _given(self, context: str) -> AsyncIterator[str]:
        try:
            yield context
        finally:
            # Who waits for the image does not wait for this.
            self._tasks.spawn(self._cache.forget(context), "forget a context")
            self.collect_soon()

    # --- what a client asks in the middle of a build -----------------------------------------------------------------

    async def resolve_image(
        self, job: Job, name: str, platform: Platform | None, *, pull: bool, shown_as: str
    ) -> DescribedImage:
        asker = Asker(job.log, job.session)
        with ShownWork(asker, shown_as or f"[internal] load metadata for {name}") as watcher:
            return await self._sources.images.describe(name, platform or host_platform(), pull, watcher)

    async def resolve_layout(
        self, job: Job, source: Source, platform: Platform | None, shown_as: str
    ) -> DescribedImage:
        with ShownWork(Asker(job.log, job.session), shown_as or f"[internal] resolve {source.identifier}") as watcher:
            return await self._sources.layouts.resolve(source, platform, watcher)

    async def resolve_git(self, job: Job, source: Source, shown_as: str) -> Resolved:
        with ShownWork(Asker(job.log, job.session), shown_as or f"[internal] resolve {source.identifier}") as watcher:
            return await self._sources.git.resolve(source, watcher)

    async def resolve_file(self, job: Job, source: Source, shown_as: str) -> ResolvedFile:
        with ShownWork(Asker(job.log, job.session), shown_as or f"[internal] resolve {source.identifier}") as watcher:
            return (await self._sources.web.have(source, watcher))[0]

    async def read_file(self, ref: Ref, path: str, offset: int = 0, length: int = 0) -> bytes:
        """Some of a file, all of it without a length."""
        data = await self._contexts.read(await ref.stack(), path, length or LARGEST_FILE, offset)
        if data is None:
            raise NotFound(f"{path}: no such file or directory")
        return data

    async def stat(self, ref: Ref, path: str) -> FoundFile:
        """Return the entry that a path of a result leads to."""
        (entry,) = await self._contexts.look(await ref.stack(), path)
        return entry

    async def entries(self, ref: Ref, path: str, pattern: str = "") -> Sequence[FoundFile]:
        """List a directory of a result: the entries with names that match. InvalidParameter for too long a pattern."""
        if len(pattern) > _LONGEST_PATTERN:
            raise InvalidParameter(f"a pattern of more than {_LONGEST_PATTERN} letters")
        entries = await self._contexts.look(await ref.stack(), path, inside=True)
        return await asyncio.to_thread(_matching, entries, pattern) if pattern else entries

    # --- the cache ---------------------------------------------------------------------------------------------------

    async def items(self, filters: Filters = NO_FILTERS) -> list[Item]:
        return await self._pruner.items(filters)

    def cache_usage(self) -> tuple[int, int]:
        """Count the records of the cache, and their bytes; what cache mounts hold is not counted."""
        return self._cache.count, self._cache.total()

    async def prune(self, filters: Filters, *, all: bool, keep: int) -> PrunedCache:
        return await self._tasks.to_its_end(self._pruner.prune(filters, all=all, keep=keep), "prune builds")

    def collect_soon(self) -> None:
        """Remove in the background what is too much by the rules, and give memory back once no more builds come."""
        self._rest.worked()
        if self.rules and not self._collecting.count:
            self._collecting.spawn(self._collect(), "collect builds")

    async def _collect(self) -> None:
        await asyncio.sleep(_PAUSE)
        pruned = await self._pruner.collect(self.rules)
        if pruned.items:
            log.info("the cache of builds was too large: %d records went, %d bytes", len(pruned.items), pruned.freed)


async def _head(chunks: AsyncIterator[bytes], size: int = 1024) -> bytes:
    """As much as tells what it is, and what came with it."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head) >= size:
            break
    return head


async def _chained(head: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for chunk in chunks:
        yield chunk


def _matching(entries: Sequence[FoundFile], pattern: str) -> list[FoundFile]:
    return [entry for entry in entries if fnmatch.fnmatchcase(entry.name, pattern)]
