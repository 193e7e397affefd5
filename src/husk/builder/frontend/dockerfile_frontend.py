"""The built-in frontend: a client's words and its context become refs, one for each platform.

    frontend = DockerfileFrontend(solver, files, images, layouts)
    result = await frontend.solve(attributes, asker)

The Dockerfile and `.dockerignore` are asked of the client first, then all images that stages begin with. Nothing else
is made: whoever needs a ref has it made.
"""

import asyncio
import json
import posixpath
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.dockerfile import contexts
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, NamedContext
from husk.builder.dockerfile.rules import Warning
from husk.builder.dockerfile.stages import SCRATCH
from husk.builder.frontend import remote_context
from husk.builder.frontend.options import FrontendOptions, read
from husk.builder.frontend.reading.dockerfiles import Dockerfiles, OpenDockerfile
from husk.builder.frontend.reading.messages import Context
from husk.builder.frontend.remote_context import Remote
from husk.builder.graph import schemes
from husk.builder.graph.graph import Graph, SourceFile, Vertex
from husk.builder.graph.operations import Edge, Operation, Source
from husk.builder.jobs import failure
from husk.builder.jobs.results import FrontendResult, PlatformResult
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.interfaces import Watcher
from husk.builder.solver.refs import Ref
from husk.builder.solver.solver import Solver
from husk.builder.solver.source_policy import DescribedImage
from husk.builder.sources import given
from husk.builder.sources.images import ImageSource
from husk.engine.images.make import read_config_aside
from husk.engine.model.image import ImageConfig
from husk.errors import HuskError, InvalidParameter
from husk.registry import reference as references
from husk.registry.manifest import Platform, host_platform
from husk.text.documents import MalformedDocument, decode

IGNORE_FILE = ".dockerignore"
# What clients may count on, by BuildKit's names.
CAPABILITIES = tuple(
    f"moby.buildkit.frontend.{name}" for name in ("inputs", "subrequests", "contexts", "gitquerystring")
)
LARGEST = 16 << 20
BUILD_DEFINITION = "[internal] load build definition"


class StackFiles(Protocol):
    """The files of stacks: `husk.builder.store`."""

    async def read(self, stack: str, path: str, most: int) -> bytes | None: ...


class Layouts(Protocol):
    """Images in OCI layouts of clients: `sources.layouts`."""

    async def describe_named(self, text: str, platform: Platform, watcher: Watcher, /) -> DescribedImage: ...


class DockerfileFrontend:
    def __init__(
        self,
        solver: Solver,
        files: StackFiles,
        images: ImageSource,
        layouts: Callable[[], Layouts],
        dockerfiles: Dockerfiles,
    ) -> None:
        """`dockerfiles` has them read elsewhere."""
        self._dockerfiles = dockerfiles
        self._solver = solver
        self._files = files
        self._images = images
        self._layouts = layouts

    async def solve(self, attributes: Mapping[str, str], asker: Asker) -> FrontendResult:
        self._dockerfiles.expect()
        wanted = read(attributes)
        remote = await remote_context.find(
            wanted, self._solver, self._files, asker.progress, asker.session, asker.policy
        )
        if remote and remote.dockerfile and not wanted.dockerfile_is_local:
            wanted = structs.replace(wanted, file_name=remote.dockerfile)
        loader = _Loader(self._solver, self._files, wanted, asker, remote)
        text, ignored = await loader.load()
        source = SourceFile(wanted.file_name, text, loaded=loader.loaded)
        try:
            async with self._dockerfiles.open(text, ignored) as file:
                return await self._read(file, source, wanted, attributes, asker, remote, loader)
        except DockerfileError as error:
            raise failure.of_dockerfile(error, source) from None

    async def _read(
        self,
        file: OpenDockerfile,
        source: SourceFile,
        wanted: FrontendOptions,
        attributes: Mapping[str, str],
        asker: Asker,
        remote: Remote | None,
        loader: "_Loader",
    ) -> FrontendResult:
        # Whoever has a command line is such a frontend itself, and asks us to be the one behind it.
        asked = None if "cmdline" in attributes else await file.syntax(wanted.options.build_args)
        if asked is not None and asked.syntax is not None:
            return FrontendResult([], False, source, [], syntax=asked.syntax)
        _check_capabilities(attributes)
        sources = _Sources(self._images, self._layouts, wanted, asker, file.patterns, remote, loader.ignored_in)
        context = await sources.main_context()
        if wanted.request:
            answer = await file.answer(wanted.request, wanted.options, context, sources, source)
            return FrontendResult([], False, source, [], answer=answer)
        built: list[PlatformResult] = []
        warnings: list[Warning] = []
        for_whom = (asker.progress, asker.session, asker.elsewhere, asker.granted, asker.policy)
        for platform in wanted.platforms or [host_platform()]:
            options = structs.replace(wanted.options, platform=platform, several_platforms=wanted.several_platforms)
            result = await file.convert(options, context, sources, source)
            refs = {
                name: Ref(self._solver, result.graph, edge, *for_whom)
                for name, edge in {"": result.root, **result.scans}.items()
            }
            built.append(PlatformResult(platform, refs.pop(""), result.image, refs))
            warnings += result.warnings
        notice = asked.notice if asked else ""
        warnings = list(dict.fromkeys(warnings))
        return FrontendResult(built, wanted.several_platforms, source, warnings, wanted.epoch, notice=notice)


def _check_capabilities(attributes: Mapping[str, str]) -> None:
    """MissingCapability if the client needs something that this frontend does not know."""
    for name in attributes.get("frontend.caps", "").split(","):
        if (name := name.partition("+")[0].strip()) and name not in CAPABILITIES:
            raise failure.MissingCapability(name)


class _Loader:
    """Reads what must be known before anything can be planned."""

    def __init__(
        self, solver: Solver, files: StackFiles, wanted: FrontendOptions, asker: Asker, remote: Remote | None
    ) -> None:
        self._solver = solver
        self._files = files
        self._wanted = wanted
        self._asker = asker
        self._remote = remote
        self.loaded: list[Operation] = []  # how the Dockerfile came

    async def load(self) -> tuple[bytes, bytes]:
        """The Dockerfile, and the file that tells what is ignored: both are asked for at once."""
        tasks = Tasks()
        try:
            # In this order, which is the one that clients show.
            loading = tasks.spawn(self._definition(), "load a Dockerfile", awaited=True)
            ignoring = tasks.spawn(self._ignore_file(), f"load {IGNORE_FILE}", awaited=True) if self._asks else None
            try:
                text, ignored = await loading
            except HuskError:
                if ignoring is not None:
                    await asyncio.wait([ignoring])  # whoever follows the build sees how it ends
                raise
            if not text:
                raise InvalidParameter("the Dockerfile cannot be empty")
            if self._remote:
                ignored = b""  # what is ignored is what a client does not send
            elif ignored is None:
                ignored = await (ignoring or self._ignore_file())
            elif ignoring is not None:
                await asyncio.wait([ignoring])  # the Dockerfile has one of its own, so that this one does not count
        finally:
            await tasks.cancel_all()
        return text, ignored

    @property
    def _asks(self) -> bool:
        """True if `.dockerignore` is a client's, who need only send it. Others are made for it, so it is known first
        whether it is wanted at all."""
        return self._remote is None and self._wanted.context_name not in self._asker.inputs

    async def _definition(self) -> tuple[bytes, bytes | None]:
        """The Dockerfile, and the file beside it that tells what is ignored, if there is one."""
        path = self._wanted.file_name
        own_ignore = f"{path}.{IGNORE_FILE.lstrip('.')}"
        other = posixpath.join(posixpath.dirname(path), posixpath.basename(path).lower())
        names = list(dict.fromkeys([path, own_ignore, other]))
        definition = await self._take(
            self._wanted.dockerfile_name,
            names,
            self._wanted.dockerfile_name,
            f"{BUILD_DEFINITION} from {path}",
        )
        if definition.edge is not None and definition not in self._asker.inputs.values():
            self.loaded = _without_session(definition.graph.needed_for(definition.edge))
        try:
            stack = await definition.stack()
            text, ignored = await asyncio.gather(
                self._files.read(stack, path, LARGEST), self._files.read(stack, own_ignore, LARGEST)
            )
            if text is None:
                text = await self._files.read(stack, other, LARGEST)
            if text is None:
                raise InvalidParameter(f"failed to read dockerfile: open {path}: no such file or directory")
            return text, ignored
        finally:
            await definition.close()

    async def _ignore_file(self) -> bytes:
        name = self._wanted.context_name
        ref = await self._take(name, [IGNORE_FILE], f"{name}-{IGNORE_FILE}", f"[internal] load {IGNORE_FILE}")
        try:
            return await self._files.read(await ref.stack(), IGNORE_FILE, LARGEST) or b""
        finally:
            await ref.close()

    async def ignored_in(self, name: str, shown: str) -> bytes:
        """The file that tells what is ignored of another of the client's directories."""
        ref = self._local(name, [IGNORE_FILE], f"{name}-{IGNORE_FILE}", shown)
        try:
            return await self._files.read(await ref.stack(), IGNORE_FILE, LARGEST) or b""
        finally:
            await ref.close()

    async def _take(self, name: str, paths: Sequence[str], hint: str, shown: str) -> Ref:
        """Files of one of the client's directories, or those of a context that is elsewhere."""
        if name in self._asker.inputs:
            return self._asker.inputs[name]
        if self._remote and not self._wanted.dockerfile_is_local:
            graph = Graph()
            edge = contexts.add(graph, self._remote.context)
            return self._ref(graph, edge)
        return self._local(name, paths, hint, shown)

    def _local(self, name: str, paths: Sequence[str], hint: str, shown: str) -> Ref:
        graph = Graph()
        attributes = {
            "local.followpaths": json.dumps(list(paths)),
            "local.sharedkeyhint": hint,
            "local.differ": "none",
            **_session_of(name, self._wanted, self._asker),
        }
        edge = graph.add(Operation(Source(f"local://{name}", attributes)), name=shown)
        return self._ref(graph, edge)

    def _ref(self, graph: Graph, edge: Edge) -> Ref:
        asker = self._asker
        return Ref(self._solver, graph, edge, asker.progress, asker.session, policy=asker.policy)


def _without_session(vertices: Sequence[Vertex]) -> list[Operation]:
    """Return the operations as others than the client may see them: whose directories they are is not for others."""
    graph = Graph()
    places: dict[str, Edge] = {}
    for vertex in vertices:
        operation, body = vertex.operation, vertex.operation.body
        if isinstance(body, Source):
            body = schemes.shown(body)
        inputs = [structs.replace(places[edge.digest], output=edge.output) for edge in operation.inputs]
        places[vertex.digest] = graph.add(structs.replace(operation, body=body, inputs=inputs))
    return [vertex.operation for vertex in graph]


class _Sources:
    """The images and contexts that a Dockerfile asks for while it is converted."""

    def __init__(
        self,
        images: ImageSource,
        layouts: Callable[[], Layouts],
        wanted: FrontendOptions,
        asker: Asker,
        patterns: Sequence[str],
        remote: Remote | None,
        ignored_in: Callable[[str, str], Awaitable[bytes]],
    ) -> None:
        """`ignored_in` reads what tells the ignored files of a client's directory, and is shown while it does."""
        self._images = images
        self._layouts = layouts
        self._ignored_in = ignored_in
        self._wanted = wanted
        self._asker = asker
        self._patterns = list(patterns)
        self._remote = remote
        self._known: dict[tuple[str, str], BaseImage] = {}
        self._ignored: dict[str, bytes] = {}
        # Stages ask at the same time; each image is looked up once.
        self._asking: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def image(self, name: str, platform: Platform) -> BaseImage:
        key = (name, str(platform))
        async with self._asking[key]:
            if (found := self._known.get(key)) is None:
                found = self._known[key] = await self._look_up(name, platform)
        return found

    async def _look_up(self, name: str, platform: Platform) -> BaseImage:
        reference = references.parse(name).tagged()
        try:
            with ShownWork(self._asker, f"[internal] load metadata for {reference}") as watcher:
                mode = "pull" if self._wanted.pull else "default"
                name = await self._asker.policy.admit_image(name, platform, mode)
                return await self._images.look_up(name, platform, self._wanted.pull, watcher)
        except HuskError as error:
            raise error.within(f"failed to resolve source metadata for {reference}") from error.__cause__

    async def named_context(self, name: str, platform: Platform) -> NamedContext | None:
        familiar = _familiar(name)
        for key in (f"{familiar}::{platform}", familiar, name):
            if key in self._wanted.named_contexts:
                return await self._context(key, self._wanted.named_contexts[key], platform)
        return None

    async def _ignored_of(self, name: str, shown: str) -> bytes:
        """Each directory is asked once, however many stages and platforms begin with it."""
        async with self._asking[name, ""]:
            if (found := self._ignored.get(name)) is None:
                found = self._ignored[name] = await self._ignored_in(name, shown)
        return found

    async def _context(self, key: str, text: str, platform: Platform) -> NamedContext:
        kind, _, rest = text.partition(":")
        match kind:
            case "docker-image":
                if rest.removeprefix("//") == SCRATCH:
                    return NamedContext(None)
                base = await self.image(rest.removeprefix("//"), platform)
                return NamedContext(Source(f"docker-image://{base.reference}"), base.document)
            case "local":
                name = rest.removeprefix("//")
                ignored = await self._ignored_of(name, f"[context {key}] load {IGNORE_FILE}")
                return NamedContext(self._local(name), ignored=ignored)
            case "input":
                ref = self._asker.inputs.get(rest)
                if ref is None:
                    raise InvalidParameter(f"invalid input {rest} for {key}")
                image = await _image_of(self._wanted.input_metadata.get(rest, ""), rest)
                return NamedContext(given.source_of(await ref.stack()), image)
            case _ if source := remote_context.named(text):
                return NamedContext(source)
            case "oci-layout":
                with ShownWork(self._asker, f"[context {key}] load metadata for {rest}") as watcher:
                    found = await self._layouts().describe_named(rest, platform, watcher)
                return NamedContext(Source(f"docker-image://{found.reference}"), await read_config_aside(found.config))
            case _:
                raise InvalidParameter(f"unsupported context source {kind} for {key}")

    async def main_context(self) -> Context:
        if self._remote:
            return Context(remote=self._remote.context)
        if ref := self._asker.inputs.get(self._wanted.context_name):
            return Context(given.source_of(await ref.stack()))
        return Context(self._local(self._wanted.context_name, self._patterns), narrowed=True)

    def _local(self, name: str, excluded: Sequence[str] = ()) -> Source:
        attributes = {"local.sharedkeyhint": name, **_session_of(name, self._wanted, self._asker)}
        if excluded:
            attributes["local.excludepatterns"] = json.dumps(list(excluded))
        return Source(f"local://{name}", attributes)


def _session_of(name: str, wanted: FrontendOptions, asker: Asker) -> dict[str, str]:
    own = asker.session.id if asker.session else ""
    id = wanted.local_sessions.get(name, own)
    return {"local.session": id} if id else {}


async def _image_of(text: str, name: str) -> ImageConfig | None:
    """The image that another build has made of an input, as its client tells it."""
    if not text:
        return None
    try:
        document = decode(text, dict[str, bytes]).get("containerimage.config", b"")
    except MalformedDocument as error:
        raise InvalidParameter(f"invalid metadata of the input {name}: {error}") from None
    return await read_config_aside(document) if document else None


def _familiar(name: str) -> str:
    """The name that a client gave to a context, as it is compared: `alpine` for `docker.io/library/alpine:latest`."""
    try:
        return references.parse(name).familiar.removesuffix(":latest")
    except HuskError:
        return name
