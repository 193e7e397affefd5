"""Lists of the contents of a result (SBOM): as one more step of the build a generator looks at it and writes them.

A generator is an image that keeps to BuildKit's protocol: it finds the result below BUILDKIT_SCAN_SOURCE, what else a
Dockerfile wants to have scanned below BUILDKIT_SCAN_SOURCE_EXTRAS, and writes in-toto statements (JSON files) into
BUILDKIT_SCAN_DESTINATION. Whom they say it about does not count: that is known
when the image is made.
"""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from husk.builder.attest.wanted import Sbom
from husk.builder.dockerfile.options import BaseImage
from husk.builder.graph.graph import Definition, Graph
from husk.builder.graph.operations import Exec, ExecMount, Operation, ProcessSpec, Source, TmpfsMount
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Predicate
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.solver.interfaces import Watcher
from husk.builder.solver.refs import Ref
from husk.builder.sources import given
from husk.builder.store.file_actions import NONE
from husk.engine.model.container_config import ContainerConfig
from husk.errors import HuskError, InvalidParameter
from husk.registry.manifest import Platform, host_platform
from husk.text.documents import MalformedDocument, decode

PREDICATE = "https://spdx.dev/Document"
SOURCE = "/run/src/core/sbom"
EXTRAS = "/run/src/extras"
DESTINATION = "/run/out/"
_CORE = "sbom"
_LARGEST = 64 << 20
_MOST = 64


class Entry(Protocol):
    @property
    def name(self) -> str: ...


class StackFiles(Protocol):
    """The files of stacks: `husk.builder.store.contexts`."""

    async def read(self, stack: str, path: str, most: int, /) -> bytes | None: ...

    async def look(self, stack: str, path: str, /, *, inside: bool = False) -> Sequence[Entry]: ...


class Images(Protocol):
    async def look_up(self, name: str, platform: Platform, pull: bool, watcher: Watcher, /) -> BaseImage: ...


class _Statement(Struct):
    predicate_type: str = msgspec.field(name="predicateType")
    predicate: msgspec.Raw


class Scanner:
    def __init__(self, images: Images, files: StackFiles) -> None:
        self._images = images
        self._files = files

    async def scan(self, job: Job, platform: str, ref: Ref, wanted: Sbom) -> list[Predicate]:
        """Run the generator on a ref, which is for this platform, and return its statements, the core one first."""
        image = await self._generator(job, wanted.generator)
        extras = {name: await one.stack() for name, one in job.scans.get(ref, {}).items()}
        scanned = job.definition(definition(platform, await ref.stack(), image, wanted, extras))
        stack = await scanned.stack()
        names = [entry.name for entry in await self._files.look(stack, "/", inside=True)] if stack else []
        if len(names) > _MOST:
            raise InvalidParameter(f"the generator {wanted.generator} has written more than {_MOST} files")
        names.sort(key=lambda name: (name.partition(".")[0] != _CORE, name))
        return [await self._statement(stack, name, wanted.generator) for name in names]

    async def _generator(self, job: Job, name: str) -> BaseImage:
        try:
            with ShownWork(Asker(job.log, job.session), f"resolve image config for docker-image://{name}") as watcher:
                name = await job.policy.admit_image(name, host_platform())
                return await self._images.look_up(name, host_platform(), False, watcher)
        except HuskError as error:
            raise error.within(f"the SBOM generator {name} cannot be had") from error.__cause__

    async def _statement(self, stack: str, name: str, generator: str) -> Predicate:
        data = await self._files.read(stack, f"/{name}", _LARGEST + 1)
        if data is None or len(data) > _LARGEST:
            raise InvalidParameter(f"the generator {generator} has written {name}, which is too large or no file")
        try:
            statement = decode(data, _Statement)
        except MalformedDocument as error:
            raise InvalidParameter(f"cannot decode in-toto statement {name} of {generator}: {error}") from None
        if statement.predicate_type != PREDICATE:
            raise InvalidParameter(
                f"bundle entry {statement.predicate_type} does not match required predicate type {PREDICATE}"
            )
        return Predicate(type=PREDICATE, path=name, body=bytes(statement.predicate))


def definition(
    platform: str, stack: str, image: BaseImage, wanted: Sbom, extras: Mapping[str, str] | None = None
) -> Definition:
    """The step that scans a stack: what is there, so that nothing is made again for it; `extras` by their names."""
    graph = Graph()
    name = f"docker-image://{image.reference}"
    inputs = [graph.add(Operation(Source(name), [], host_platform()), name=name)]
    if stack:
        inputs.append(graph.add(Operation(given.source_of(stack)), name=f"[{platform}] result"))
    mounts = [ExecMount(target=SOURCE, input=1 if stack else NONE, read_only=True)]
    for name, extra in (extras or {}).items():
        mounts.append(
            ExecMount(target=f"{EXTRAS}/{_CORE}-{name}", input=len(inputs) if extra else NONE, read_only=True)
        )
        if extra:
            edge = graph.add(Operation(given.source_of(extra)), name=f"[{platform}] {name}")
            inputs.append(edge)
    body = _process(image.document.config or ContainerConfig(), wanted, mounts, has_extras=bool(extras))
    made = graph.add(
        Operation(body, inputs, host_platform()),
        name=f"[{platform}] generating sbom using {wanted.generator}",
        ignore_cache=wanted.ignore_cache,
    )
    return Definition(graph, made)


def _process(config: ContainerConfig, wanted: Sbom, scanned: Sequence[ExecMount], *, has_extras: bool) -> Exec:
    args = [*(config.entrypoint or []), *(config.cmd or [])]
    if not args:
        raise InvalidParameter(f"scanner {wanted.generator} does not have cmd")
    extras = {"SOURCE_EXTRAS": EXTRAS} if has_extras else {}
    env = {"DESTINATION": DESTINATION, "SOURCE": SOURCE, **extras, **wanted.parameters}
    return Exec(
        process=ProcessSpec(
            args=args,
            env=[*config.env, *(f"BUILDKIT_SCAN_{name}={value}" for name, value in env.items())],
            cwd=posixpath.join("/", config.working_dir),
        ),
        mounts=[
            ExecMount(target="/", input=0),
            *scanned,
            ExecMount(target=DESTINATION, output=0),
            ExecMount(target="/tmp", kind=TmpfsMount()),
        ],
    )
