"""`POST /build`: a context and a Dockerfile in one request, an image in our store.

context → Dockerfile → graph (`reading`) → solver → image (`exporters/layers`)
"""

import asyncio
import contextlib
import posixpath
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from msgspec import Struct, structs

from husk.aio.tasks import Tasks
from husk.builder.classic.history_cache import HistoryCache
from husk.builder.classic.progress import ClassicProgress
from husk.builder.classic.seen_steps import SeenSteps
from husk.builder.dockerfile.converted import Converted, ShownStep
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, NamedContext, Options
from husk.builder.exporters.layers import ImageExporter
from husk.builder.frontend.options import epoch_of
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.frontend.reading.messages import Context, Outlined
from husk.builder.graph import stacks
from husk.builder.graph.graph import SourceFile
from husk.builder.graph.operations import Edge
from husk.builder.graph.progress import Both
from husk.builder.graph.progress import Progress as WatchesBuild
from husk.builder.solver import entitlements
from husk.builder.solver.solver import Solver
from husk.builder.sources import given
from husk.builder.sources.images import CredentialsFor, ImageSource
from husk.builder.steps.plan import StepFailed
from husk.builder.store.file_actions import NONE, FileAction, Remove
from husk.engine.model.clock import now_ns, shortest_rfc3339
from husk.engine.model.image import HistoryEntry, Image, ImageConfig, Progress
from husk.errors import CommandFailed, HuskError, InvalidParameter
from husk.registry.manifest import Platform
from husk.registry.reference import Reference

DOCKERFILE = "Dockerfile"
IGNORE_FILE = ".dockerignore"
LARGEST_DOCKERFILE = 16 << 20
# Of what a quiet build would have said as much is kept, and told when it fails.
MOST_KEPT_BACK = 4 << 20
# Arguments that mean something to the builder itself.
_OWN_ARGUMENTS = re.compile(r"(?i:(https?|ftp|no|all)_proxy)|BUILDKIT_\w+|SOURCE_DATE_EPOCH")
_MISSING = '": not found'
_NO_DIRECTORY = ": not a directory"
_BEFORE_REASON = re.compile(
    r"^(failed to compute cache key: |failed to calculate checksum of ref \S+: |failed to load cache key: )+"
)

Report = Callable[[Progress], None]


class ClassicRequest(Struct, frozen=True, kw_only=True):
    dockerfile: str = DOCKERFILE
    options: Options
    names: list[Reference] = []
    pull: bool = False
    quiet: bool = False
    arguments: list[str] = []  # the names of all that were given, with a value or without
    removes: bool = True  # the containers of steps are told to be gone
    removes_failed: bool = False  # and so is that of one that fails
    cache_from: list[str] = []  # images whose layers may serve as a cache
    squash: bool = False  # all that is added to the base is one layer


class Contexts(Protocol):
    """The files of contexts: `husk.builder.store.contexts`."""

    async def read(self, stack: str, path: str, most: int) -> bytes | None: ...

    async def read_several(self, stack: str, paths: Sequence[str], most: int) -> list[bytes | None]: ...


class Trees(Protocol):
    """Works on the files of stacks: `husk.builder.store.trees`."""

    async def apply(self, actions: Sequence[FileAction], inputs: Sequence[str]) -> list[str]: ...

    async def difference(self, lower: str, upper: str) -> str: ...


class ClassicBuilder:
    def __init__(
        self,
        solver: Solver,
        contexts: Contexts,
        images: ImageSource,
        exporter: ImageExporter,
        trees: Trees,
        dockerfiles: Dockerfiles,
        seen: SeenSteps,
    ) -> None:
        """`dockerfiles` has them read elsewhere, `seen` knows which instructions were carried out before."""
        self._dockerfiles = dockerfiles
        self._seen = seen
        self._solver = solver
        self._tasks = Tasks()
        self._contexts = contexts
        self._images = images
        self._exporter = exporter
        self._trees = trees

    async def build(
        self,
        request: ClassicRequest,
        context: str,
        credentials: CredentialsFor,
        report: Report,
        watcher: WatchesBuild | None = None,
    ) -> Image:
        """`context` is a stack, which belongs to whoever calls. The `watcher` is told of every vertex."""
        path = posixpath.normpath("/" + request.dockerfile).lstrip("/")
        found, patterns = await self._contexts.read_several(context, (path, IGNORE_FILE), LARGEST_DOCKERFILE)
        text = await self._text(context, path, found)
        epoch = epoch_of(request.options.build_args)
        options = structs.replace(request.options, epoch=None if epoch is None else epoch * 10**9, classic=True)
        told = _Quiet(report) if request.quiet else report
        try:
            async with contextlib.AsyncExitStack() as stack:
                file = await stack.enter_async_context(self._dockerfiles.open(text, patterns or b""))
                try:
                    going = await file.leaves_out([IGNORE_FILE, path])
                    context = await stack.enter_async_context(self._without(context, going))
                    outline = await file.outline(options.target)
                    progress = self._begin(outline, request, told)
                    sources = _Sources(self._images, request, credentials, told)
                    whole = Context(given.source_of(context))
                    result = await file.convert(options, whole, sources, SourceFile(path, text))
                except DockerfileError as error:
                    raise InvalidParameter(str(error)) from error
                known = await sources.cached_images()
                parent = sources.parent_of(result.image)
                image = await self._make(result, request, epoch, progress, known, watcher, parent)
                _warn_of_arguments([*outline.args, *(arg.name for arg in result.args)], request, told)
                return image
        except HuskError:
            if isinstance(told, _Quiet):
                told.tell()
            raise

    def _begin(self, outline: Outlined, request: ClassicRequest, report: Report) -> ClassicProgress:
        progress = ClassicProgress(
            outline.count + len(request.options.labels),
            report,
            self._seen,
            now_ns,
            asyncio.get_running_loop().call_soon,
            no_cache=request.options.no_cache,
            removes=request.removes or request.removes_failed,
            removes_failed=request.removes_failed,
        )
        progress.begin(outline.first)
        return progress

    async def _make(
        self,
        result: Converted,
        request: ClassicRequest,
        epoch: int | None,
        progress: ClassicProgress,
        known: Sequence[ImageConfig],
        watcher: WatchesBuild | None,
        parent: str,
    ) -> Image:
        ends = [edge for edge in (result.root, *_ends(result.steps)) if edge]
        await progress.expect(result.steps, result.graph.needed_for(*ends))
        document = result.image
        try:
            if not ends:
                return await self._exported(progress, "", document, request, parent, epoch)
            build = await self._solver.solve(
                result.graph,
                ends[0],
                progress if watcher is None else Both(progress, watcher),
                elsewhere=self._from_images(result, known),
                granted=_granted(request),
                to_layers=epoch is None,
                also=ends[1:],
            )
            try:
                assert build.record
                stack = build.record.outputs[ends[0].output] if result.root else ""
                async with self._squashed(stack, document, request.squash, epoch) as (whole, squashed):
                    return await self._exported(progress, whole, squashed, request, parent, epoch)
            finally:
                await build.close()
        except HuskError as error:
            await progress.caught_up()
            raise _in_dockers_words(error, progress.tell_failure()) from error
        finally:
            await self._seen.keep(progress.seen, progress.images)

    async def _exported(
        self,
        progress: ClassicProgress,
        stack: str,
        document: ImageConfig,
        request: ClassicRequest,
        parent: str,
        epoch: int | None,
    ) -> Image:
        if not stack and not document.history:
            raise InvalidParameter("No image was generated. Is your Dockerfile empty?")
        await progress.caught_up()
        if not stack and not document.created and progress.made is not None:
            document = structs.replace(document, created=shortest_rfc3339(progress.made))
        names = request.names
        image = await self._exporter.export(stack, document, names, parent=parent, epoch=epoch, clamp=epoch)
        progress.finish(image.id)
        return image

    @contextlib.asynccontextmanager
    async def _squashed(
        self, stack: str, image: ImageConfig, wanted: bool, epoch: int | None
    ) -> AsyncIterator[tuple[str, ImageConfig]]:
        """The stack with one layer above those of the base, and the image whose history tells so."""
        count = len(image.rootfs.diff_ids) if image.rootfs else 0
        elements = stacks.elements(stack)
        if not wanted or len(elements) <= count + 1:
            yield stack, image
            return
        base = " ".join(elements[:count])
        one = await self._trees.difference(base, stack)
        try:
            made = shortest_rfc3339(now_ns() if epoch is None else epoch * 10**9)
            yield (
                stacks.joined(base, one),
                structs.replace(image, history=_squashed_history(image.history, count, made)),
            )
        finally:
            await self._tasks.to_its_end(self._solver.cache.forget(one), "forget what was squashed")

    def _from_images(self, result: Converted, known: Sequence[ImageConfig]) -> HistoryCache | None:
        if not known or result.root is None:
            return None
        cache = HistoryCache(self._solver.executor, self._solver.cache.is_whole)
        cache.prepare(result.graph, result.root, result.image, known)
        return cache

    async def _text(self, context: str, path: str, data: bytes | None) -> bytes:
        if data is None and path == DOCKERFILE:
            data = await self._contexts.read(context, DOCKERFILE.lower(), LARGEST_DOCKERFILE)
        if data is None:
            raise InvalidParameter(f"Cannot locate specified Dockerfile: {path}")
        if not data:
            raise InvalidParameter(f"the Dockerfile ({path}) cannot be empty")
        return data

    @contextlib.asynccontextmanager
    async def _without(self, context: str, going: Sequence[str]) -> AsyncIterator[str]:
        """The client leaves out what is ignored, but for what we need to read: that is left out here."""
        if not going:
            yield context
            return
        (left,) = await self._trees.apply(_removals(going), [context])
        try:
            yield left
        finally:
            forgetting = self._solver.cache.forget(stacks.above(context, left) or "")
            await self._tasks.to_its_end(forgetting, "forget a context without what is ignored")


class _Quiet:
    """Keeps back what a build says, and tells it if that is wanted after all."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._kept: list[Progress] = []
        self._length = 0

    def __call__(self, progress: Progress) -> None:
        if progress.stream and self._length < MOST_KEPT_BACK:
            self._length += len(progress.stream)
            self._kept.append(progress)

    def tell(self) -> None:
        kept, self._kept = self._kept, []
        for progress in kept:
            self._report(progress)


def _ends(steps: Sequence[ShownStep]) -> list[Edge]:
    """Return the ends of all stages, and the places for volumes, which are made besides the image."""
    found = []
    for step, behind in zip(steps, [*steps[1:], None], strict=True):
        if behind is None or behind.stage != step.stage:
            found.append(step.result)
        if step.keyword == "VOLUME":
            found += [Edge(digest) for digest in step.vertices]
    return list(dict.fromkeys(edge for edge in found if edge))


def _warn_of_arguments(used: Sequence[str], request: ClassicRequest, report: Report) -> None:
    unused = sorted(set(request.arguments).difference(used))
    if unused := [name for name in unused if not _OWN_ARGUMENTS.fullmatch(name)]:
        report(Progress(stream=f"[Warning] One or more build-args [{' '.join(unused)}] were not consumed\n"))


def _in_dockers_words(error: HuskError, step: ShownStep | None) -> HuskError:
    if isinstance(error, StepFailed):
        told = f"The command '{error.command}' returned a non-zero code: {error.exit_code}"
        return CommandFailed(told, error.exit_code)
    keyword = step.keyword if step else ""
    reason = _BEFORE_REASON.sub("", error.message)
    missing = _named(reason, '"', _MISSING)
    if keyword in ("COPY", "ADD"):
        if missing is not None:
            place = "file not found in build context or excluded by .dockerignore: "
            before = place if step and step.from_context else ""
            reason = f"{before}stat {missing.removeprefix('/')}: file does not exist"
        elif reason.endswith(" not found"):
            reason = "no source files were specified"
        return InvalidParameter(f"{keyword} failed: {reason}")
    if keyword in ("VOLUME", "RUN") and (file := _named(reason, "mkdir ", _NO_DIRECTORY)):
        return InvalidParameter(f"cannot mount volume over existing file, file exists {file}")
    return error


def _named(reason: str, before: str, after: str) -> str | None:
    """The name that stands between two words at the end of a message; it may have either of them in it."""
    _, found, name = reason.removesuffix(after).partition(before)
    return name if found and reason.endswith(after) else None


def _granted(request: ClassicRequest) -> list[str]:
    """Grant the host's network to a client that asks for it for all steps; this API can allow nothing else."""
    return [entitlements.HOST_NETWORK] if request.options.network == "host" else []


def _squashed_history(history: Sequence[HistoryEntry], count: int, made: str) -> list[HistoryEntry]:
    """Steps that made layers above the first ones make none now: one more step makes the layer of them all.

    Nobody else knows when that layer was made: it is the only one whose step has its time here."""
    steps = []
    for step in history:
        steps.append(step if count or step.empty_layer else structs.replace(step, empty_layer=True))
        count -= bool(count and not step.empty_layer)
    return [*steps, HistoryEntry(created=made, comment="squashed")]


def _removals(paths: Sequence[str]) -> list[FileAction]:
    """Each removal begins with what the one before has left."""
    return [
        FileAction(
            action=Remove(path="/" + path, may_be_missing=True),
            input=number,
            output=0 if number + 1 == len(paths) else NONE,
        )
        for number, path in enumerate(paths)
    ]


def _begins_with(image: ImageConfig, base: ImageConfig) -> bool:
    """Return True if an image whose own layers are not there yet has a base's layers, and its steps before others."""
    count = len(base.history)
    return image.rootfs == base.rootfs and len(image.history) > count and image.history[:count] == base.history


class _Sources:
    """The images that the Dockerfile asks for while it is converted."""

    def __init__(
        self,
        images: ImageSource,
        request: ClassicRequest,
        credentials: CredentialsFor,
        report: Report,
    ) -> None:
        self._images = images
        self._request = request
        self._credentials = credentials
        self._report = report
        self._known: dict[tuple[str, str], BaseImage] = {}

    async def image(self, name: str, platform: Platform) -> BaseImage:
        if (found := self._known.get((name, str(platform)))) is None:
            found = await self._images.resolve(name, platform, self._request.pull, self._credentials, self._report)
            self._known[name, str(platform)] = found
        return found

    def parent_of(self, image: ImageConfig) -> str:
        """The id of the image that this one was made from: the one with all of its layers and its first steps."""
        bases = [base for base in self._known.values() if _begins_with(image, base.document)]
        return max(bases, key=lambda base: len(base.document.history)).id if bases else ""

    async def cached_images(self) -> list[ImageConfig]:
        """Those that may serve as a cache. One that is not here is not fetched for it."""
        found = []
        for name in self._request.cache_from:
            image = await self._images.find(name, self._request.options.platform)
            if image is not None:
                found.append(image)
        return found

    async def named_context(self, name: str, platform: Platform) -> NamedContext | None:
        return None
