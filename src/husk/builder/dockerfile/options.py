"""The options of a client for the build of a Dockerfile, and the questions of the frontend to the engine."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, field

from husk.builder.graph.operations import Source, StepLimits, StepUlimit
from husk.engine.model.clock import shortest_rfc3339
from husk.engine.model.image import ImageConfig
from husk.registry.manifest import Platform, host_platform
from husk.text.dockerignore import Ignore


class Options(Struct, frozen=True, kw_only=True):
    target: str = ""
    build_args: dict[str, str] = {}
    labels: dict[str, str] = {}
    platform: Platform = field(default_factory=host_platform)
    build_platform: Platform = field(default_factory=host_platform)
    several_platforms: bool = False  # then every step is shown with its own
    no_cache: bool = False
    no_cache_stages: list[str] = []
    network: str = ""
    hostname: str = ""
    extra_hosts: list[tuple[str, str]] = []
    shm_size: int = 0
    ulimits: list[StepUlimit] = []
    cgroup_parent: str = ""
    limits: StepLimits = StepLimits()
    cache_namespace: str = ""
    ignore: Ignore | None = None  # .dockerignore, for a warning
    check: str | None = None  # which checks count, whatever the file says
    all_stages: bool = False  # look at those, too, that the target does not need
    epoch: int | None = None  # SOURCE_DATE_EPOCH, in nanoseconds
    classic: bool = False  # by the rules of dockerd's classic builder, which BuildKit has dropped

    @property
    def created(self) -> str:
        """The time when the image is said to be made, in RFC 3339; empty where nobody gave one."""
        return shortest_rfc3339(self.epoch) if self.epoch is not None else ""


class BaseImage(Struct, frozen=True):
    """An image that a build begins with or copies from, by the digest that its name stands for now."""

    reference: str
    document: ImageConfig
    id: str = ""  # of one that is here


class NamedContext(Struct, frozen=True):
    """A context that a client gave a name to (`--build-context`): it stands for the stage or image of that name."""

    source: Source | None  # None: nothing is in it
    document: ImageConfig | None = None
    ignored: bytes = b""  # its own file that tells what is left out, as it was sent


class RemoteContext(Struct, frozen=True):
    """A build context that is no directory of the client's.

    An archive in the source is unpacked if one is named; of all that, one directory may be the context.
    """

    source: Source
    name: str = ""  # as it is shown
    archive: str = ""
    directory: str = ""


class StageQuestion(Struct, frozen=True):
    """A question about a stage: for a context that was given one of these names, or else an image, if it has one."""

    contexts: list[str]
    image: str
    platform: Platform


class StageAnswer(Struct, frozen=True):
    """The answer to a question about a stage: an image, a context, or neither; or the reason why it is not known."""

    image: BaseImage | None = None
    context: NamedContext | None = None
    name: str = ""  # which of the names it has, if it is a context
    error: str = ""


class Sources(Protocol):
    async def look_up(self, wanted: Sequence[StageQuestion]) -> Sequence[StageAnswer]:
        """Find what is not in the file; the answers are in the order of the questions."""
        ...

    def main_context(self, paths: list[str]) -> Source | RemoteContext:
        """The build context; only these paths of it are needed, or all of it if there are none."""
        ...
