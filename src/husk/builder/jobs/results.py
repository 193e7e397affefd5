"""The question of a client to a build (`Question`), and its answer (`Result`): refs, and what is known of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from husk.builder.dockerfile.questions import Answer
from husk.builder.dockerfile.rules import Warning
from husk.builder.dockerfile.syntax import Syntax
from husk.builder.graph.graph import Definition, SourceFile
from husk.builder.solver.refs import Ref
from husk.builder.solver.source_rules import Policy
from husk.engine.model.image import ImageConfig
from husk.registry.manifest import Descriptor, Platform

DOCKERFILE = "dockerfile.v0"
GATEWAY = "gateway.v0"
CONFIG = "containerimage.config"
PLATFORMS = "refs.platforms"
EPOCH = "source.date.epoch"


class Question(Struct, frozen=True, kw_only=True):
    """A request of a client to have something solved: a definition, or what a frontend makes of attributes."""

    definition: Definition | None = None
    frontend: str = ""
    attributes: Mapping[str, str] = {}
    inputs: Mapping[str, Definition] = {}
    evaluate: bool = False
    source_policies: Sequence[Policy] = ()  # of the frontend that asks, besides those of the client


Completed = Callable[[list[Descriptor]], bytes]


class Predicate(Struct, frozen=True, kw_only=True):
    """A claim about an image, without its name: the exporter makes a statement of it when it knows the digest.

    `inline_only`: it is for an image that goes to a registry or into an archive, and nothing to be asked for alone.
    `completed` is its body with the layers of the image, as they go out.
    """

    type: str
    path: str = ""  # of the file that says it, where it is one
    body: bytes  # JSON
    inline_only: bool = False
    completed: Completed | None = None


InlineCache = Callable[[str, Sequence[Descriptor]], Awaitable[bytes | None]]
"""The cache that goes into an image's configuration: for a platform, by its id, and the layers as they go out."""


class Result(Struct, kw_only=True):
    """Refs by the platforms that they are for, or one ref; and what is known of them.

    `predicates` are by the ids of platforms, as `refs.platforms` in the metadata has them.
    """

    ref: Ref | None = None
    refs: dict[str, Ref] = {}
    metadata: dict[str, bytes] = {}
    predicates: dict[str, list[Predicate]] = {}
    inline_cache: InlineCache | None = None

    @property
    def all(self) -> list[Ref]:
        return [*([self.ref] if self.ref else []), *self.refs.values()]


class PlatformResult(Struct, frozen=True):
    """One platform's result."""

    platform: Platform
    ref: Ref
    image: ImageConfig
    scans: dict[str, Ref] = {}  # what an SBOM is to tell of besides


class FrontendResult(Struct, frozen=True):
    built: list[PlatformResult]
    several_platforms: bool
    source: SourceFile
    warnings: list[Warning]
    epoch: int | None = None
    answer: Answer | None = None  # to a question about the Dockerfile: then nothing is built
    syntax: Syntax | None = None  # another frontend that is to read the file
    notice: str = ""  # a warning about the file as a whole


def result_of(made: FrontendResult) -> Result:
    """A Dockerfile's result in the words that exporters and clients know."""
    if made.answer is not None:
        return Result(metadata=dict(made.answer))
    platforms = [_described(built.platform) for built in made.built]
    metadata = {PLATFORMS: msgspec.json.encode({"Platforms": platforms})}
    if made.epoch is not None:
        metadata[EPOCH] = str(made.epoch).encode()
    if not made.several_platforms:
        (built,) = made.built
        metadata[CONFIG] = msgspec.json.encode(built.image)
        return Result(ref=built.ref, metadata=metadata)
    refs = {}
    for built in made.built:
        refs[str(built.platform)] = built.ref
        metadata[f"{CONFIG}/{built.platform}"] = msgspec.json.encode(built.image)
    return Result(refs=refs, metadata=metadata)


def _described(platform: Platform) -> dict[str, object]:
    described = {"architecture": platform.architecture, "os": platform.os}
    if platform.variant:
        described["variant"] = platform.variant
    return {"ID": str(platform), "Platform": described}
