"""Carries one operation out: the executor of the solver. What does the work is handed in, one part for each kind.

A kind of source is found by the scheme of its identifier: a new one is a class with `key` and `fetch`, and a line where
the parts are put together.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from husk.builder.graph import stacks
from husk.builder.graph.graph import LONGEST_NAME, Graph, Vertex
from husk.builder.graph.operations import CacheMount, Diff, Edge, Exec, Files, Merge, NestedBuild, Operation, Source
from husk.builder.solver.interfaces import Customer, Record, Watcher
from husk.builder.store.ahead import AheadTar, Below
from husk.builder.store.file_actions import NONE, FileAction, Selection
from husk.builder.store.workers.jobs import DigestForm
from husk.engine.images.make import MOST_LAYERS
from husk.errors import HuskError, InvalidParameter, NotImplementedYet
from husk.registry.manifest import Platform


class SourceKind(Protocol):
    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        """Return a key for the source as it is right now: whoever finds the same key again need not fetch it."""
        ...

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> "Fetched": ...


@runtime_checkable
class PortableSource(Protocol):
    """A kind of source that BuildKit, too, knows by a name."""

    async def portable_keys(self, source: Source, platform: Platform | None, watcher: Watcher) -> list[str]: ...


@runtime_checkable
class FollowedSource(Protocol):
    """A kind of source whose files can be packed while they come."""

    async def fetch_ahead(self, source: Source, watcher: Watcher, ahead: AheadTar) -> "Fetched": ...


class Fetched(Protocol):
    """A source that is here: its stack, and the diffs that were made for it."""

    @property
    def stack(self) -> str: ...

    @property
    def made(self) -> Sequence[str]: ...

    @property
    def type(self) -> str: ...

    @property
    def description(self) -> str: ...


class Trees(Protocol):
    """Works on the files of stacks: `husk.builder.store`."""

    async def apply(
        self,
        actions: Sequence[FileAction],
        inputs: Sequence[str],
        layered: bool = False,
        ahead: AheadTar | None = None,
    ) -> list[str]: ...

    def ahead(self, action: FileAction, below: Below) -> AheadTar: ...

    async def digest(self, stack: str, selections: Sequence[Selection], form: DigestForm = "") -> str: ...

    async def difference(self, lower: str, upper: str) -> str: ...


class StepRunner(Protocol):
    """Runs processes: `husk.builder.steps`."""

    def begin_anew(self, caches: Mapping[str, bool]) -> None: ...

    async def run(
        self,
        body: Exec,
        inputs: Sequence[str],
        watcher: Customer,
        platform: Platform | None,
        layered: bool = False,
        followed: bool = True,
    ) -> list[str]: ...


class FilesOfStacks(Protocol):
    async def read(self, stack: str, path: str, most: int) -> bytes | None: ...


class Definition(Protocol):
    """`results.Definition`."""

    @property
    def graph(self) -> Graph: ...

    @property
    def edge(self) -> Edge | None: ...


ReadDefinition = Callable[[bytes], Awaitable[Definition]]

# What a build within a build has among its inputs and attributes, by BuildKit's names.
DEFINITION = "buildkit.llb.definition"
DEFINITION_NAME = "llbbuild.filename"
LARGEST_DEFINITION = 16 << 20


class Execution:
    def __init__(
        self,
        sources: Mapping[str, SourceKind],
        trees: Trees,
        steps: StepRunner,
        files: FilesOfStacks,
        read_definition: ReadDefinition,
    ) -> None:
        self._sources = sources
        self._files = files
        self._read_definition = read_definition
        self._trees = trees
        self._steps = steps

    def begin_anew(self, vertices: Iterable[Vertex]) -> None:
        """Let those of these steps that are carried out without a cache begin with nothing in their cache mounts."""
        if caches := _caches_of(vertices):
            self._steps.begin_anew(caches)

    async def source_key(self, operation: Operation, watcher: Watcher) -> str:
        assert isinstance(operation.body, Source)
        try:
            return await self._kind(operation.body).key(operation.body, operation.platform, watcher)
        except HuskError as error:
            raise error.within("failed to load cache key") from error.__cause__

    async def run(self, vertex: Vertex, inputs: Sequence[str], watcher: Customer) -> Record:
        operation = vertex.operation
        for stack in inputs:
            _check_depth(stack)
        match operation.body:
            case Source():
                kind = self._kind(operation.body)
                if vertex.ahead is not None and isinstance(kind, FollowedSource):
                    fetched = await kind.fetch_ahead(operation.body, watcher, vertex.ahead)
                else:
                    fetched = await kind.fetch(operation.body, operation.platform, watcher)
                return Record(new_id(), [fetched.stack], list(fetched.made), fetched.description, fetched.type)
            case Exec():
                outputs = await self._steps.run(
                    operation.body, inputs, watcher, operation.platform, vertex.layered, vertex.followed
                )
            case Files():
                outputs = await self._trees.apply(operation.body.actions, inputs, vertex.layered, vertex.ahead)
            case Merge():
                outputs = [merged(inputs)]
                _check_depth(outputs[0])
            case Diff():
                outputs = [await self._difference(operation.body, inputs)]
            case NestedBuild():
                raise InvalidParameter("a build within a build is solved, not run")
        return Record(new_id(), outputs, _made(inputs, outputs), described(vertex))

    def ahead(self, action: FileAction, below: Below) -> AheadTar:
        return self._trees.ahead(action, below)

    async def definition(self, body: NestedBuild, inputs: Sequence[str]) -> tuple[Graph, Edge]:
        """Read the definition that a build within a build is to make, from a file of one of its inputs."""
        if body.builder != NONE:
            raise InvalidParameter("a build within a build is given by a definition, and by no other builder")
        number = body.inputs.get(DEFINITION, NONE)
        if not 0 <= number < len(inputs):
            raise InvalidParameter(f"no llb definition input {DEFINITION} found")
        path = body.attributes.get(DEFINITION_NAME) or DEFINITION
        data = await self._files.read(inputs[number], path, LARGEST_DEFINITION + 1)
        if data is None or len(data) > LARGEST_DEFINITION:
            reason = "is too large" if data else "is not there"
            raise InvalidParameter(f"the definition of a build within a build, {path}, {reason}")
        read = await self._read_definition(data)
        if read.edge is None:
            raise InvalidParameter(f"the definition of a build within a build, {path}, makes nothing")
        return read.graph, read.edge

    async def portable_source_keys(self, operation: Operation, watcher: Watcher) -> list[str]:
        assert isinstance(operation.body, Source)
        kind = self._kind(operation.body)
        if not isinstance(kind, PortableSource):
            return []
        return await kind.portable_keys(operation.body, operation.platform, watcher)

    async def portable_digests(self, output: str, selections: Sequence[Selection]) -> list[str]:
        digests = [await self._trees.digest(output, selections, "portable")]
        if any(one.wildcards or one.include or one.exclude for one in selections):
            digests.append(await self._trees.digest(output, selections, "older"))
        return digests

    async def content_digest(self, output: str, selections: Sequence[Selection]) -> str:
        try:
            return await self._trees.digest(output, selections)
        except HuskError as error:
            ref = output.rpartition(":")[2] or "scratch"
            what = f"failed to compute cache key: failed to calculate checksum of ref {ref}"
            raise error.within(what) from error.__cause__

    async def _difference(self, body: Diff, inputs: Sequence[str]) -> str:
        lower = inputs[body.lower] if body.lower != NONE else ""
        upper = inputs[body.upper] if body.upper != NONE else ""
        above = stacks.above(lower, upper)
        return above if above is not None else await self._trees.difference(lower, upper)

    def _kind(self, source: Source) -> SourceKind:
        scheme = source.identifier.partition("://")[0]
        if scheme not in self._sources:
            raise NotImplementedYet(f"sources of the kind {scheme} are not implemented by Husk yet")
        return self._sources[scheme]


def _check_depth(stack: str) -> None:
    """Refuse what could not be mounted: before that, each of thousands of operations would name thousands of layers."""
    if stack.count(" ") >= MOST_LAYERS:
        raise InvalidParameter(f"max depth exceeded: a file system of more than {MOST_LAYERS} layers")


def new_id() -> str:
    return secrets.token_hex(13)[:25]


def merged(inputs: Sequence[str]) -> str:
    """All on top of each other. What comes twice counts where it is uppermost: below that it is never seen."""
    all = [element for stack in inputs for element in stacks.elements(stack)]
    return " ".join(reversed(dict.fromkeys(reversed(all))))


def _made(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    known = {element for stack in inputs for element in stacks.elements(stack)}
    new = [element for stack in outputs for element in stacks.diffs_in(stack) if element not in known]
    return list(dict.fromkeys(new))


def described(vertex: Vertex) -> str:
    """Return the description that a list of the cache shows for the results of a vertex."""
    body = vertex.operation.body
    if isinstance(body, Exec):
        return ("mount / from exec " + " ".join(body.process.args))[:LONGEST_NAME]
    return vertex.name


def _caches_of(vertices: Iterable[Vertex]) -> dict[str, bool]:
    """The ids of their cache mounts, and whether these may begin with a first content."""
    found: dict[str, bool] = {}
    for vertex in vertices:
        if vertex.ignore_cache and isinstance(vertex.operation.body, Exec):
            for mount in vertex.operation.body.mounts:
                if isinstance(mount.kind, CacheMount):
                    found[mount.kind.id] = found.get(mount.kind.id, False) or mount.input != NONE
    return found
