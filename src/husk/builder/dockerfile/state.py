"""A stage while it is carried out: the file system so far, the variables, and the image that it will be."""

import contextlib
import posixpath
from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from husk.builder.dockerfile.checks import Checks
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.history import COMMENT
from husk.builder.dockerfile.instructions import Instruction, Origin
from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.stages import StagePlan
from husk.builder.dockerfile.words import Expanded, UnexpandedWord, WordRules, expand
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Edge, Files, Operation
from husk.builder.store.file_actions import NONE, FileAction, MakeDirectory, MakeFile
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryEntry, ImageConfig, RootFS
from husk.registry.manifest import Platform

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_SHELL = ["/bin/sh", "-c"]
# Of an image's configuration, as registries take and give it.
LARGEST_IMAGE = 8 << 20
INLINE = "[internal] preparing inline document"


class StageState(Struct, eq=False):
    plan: StagePlan
    root: Edge | None  # None: nothing is in it
    platform: Platform
    image: ImageConfig
    rules: WordRules
    created: str = ""
    shows_platform: bool = False
    ignore_cache: bool = False
    env: dict[str, str] = {}
    args: list[tuple[str, str]] = []  # build arguments, for the history
    checks: Checks = field(default_factory=Checks)
    origin: Origin | None = None  # of the instruction that is carried out
    directory_was_set: bool = False  # by this file
    total: int = 0  # steps that are counted in names
    number: int = 0
    own_cmd: bool = False
    remembered: int = 0  # letters of its history
    places: dict[str, int] = {}  # of variables in the image's environment, once one is set

    @property
    def config(self) -> ContainerConfig:
        assert self.image.config is not None
        return self.image.config

    def configure(self, **fields: object) -> None:
        """Give the image another configuration."""
        self.image.config = msgspec.structs.replace(self.config, **fields)

    @property
    def directory(self) -> str:
        return "/" + posixpath.normpath("/" + self.config.working_dir).lstrip("/")

    @property
    def shell(self) -> list[str]:
        return self.config.shell or DEFAULT_SHELL

    def expand(self, text: str) -> Expanded:
        try:
            found = expand(text, self.env, self.rules)
        except UnexpandedWord as error:
            self._warn_of(error.missing)
            raise
        self._warn_of(found.missing)
        return found

    def _warn_of(self, missing: frozenset[str]) -> None:
        if self.origin and (undefined := missing - {name for name, _ in self.args}):
            self.checks.undefined(self.origin, undefined, self.env)

    def text(self, text: str) -> str:
        return self.expand(text).text

    def environment(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.env.items()]

    def remember(self, created_by: str, *, layer: bool = False) -> None:
        self.remembered += len(created_by)
        if self.remembered > LARGEST_IMAGE:
            raise too_large()
        self.image.history.append(
            HistoryEntry(created=self.created, created_by=created_by, comment=COMMENT, empty_layer=not layer)
        )

    def set_env(self, name: str, value: str) -> None:
        """Of the image and of what runs from now on."""
        self.env[name] = value
        entries = self.config.env
        if not self.places:
            for place, entry in enumerate(entries):
                self.places.setdefault(entry.partition("=")[0], place)
        place = self.places.setdefault(name, len(entries))
        entries[place : place + 1] = [f"{name}={value}"]

    def step_name(self, text: str, *, from_trigger: bool = False) -> str:
        """`[build 2/5] RUN make`: each call counts."""
        if not self.total:
            return text
        self.number += 1
        platform = f"{self.platform} " if self.shows_platform else ""
        stage = f"{self.plan.name} " if self.plan.name else ""
        place = f"{self.number:{len(str(self.total))}d}/{self.total}"
        return f"[{platform}{stage}{place}] {'ONBUILD ' if from_trigger else ''}{text}"


def too_large() -> DockerfileError:
    return DockerfileError(f"the configuration of the image would have more than {LARGEST_IMAGE >> 20} MiB")


def locations(span: Span) -> list[Location]:
    return [Location(0, span.start, span.end)]


def inline_file(graph: Graph, state: StageState, of: Instruction, name: str, text: str, *, mode: int) -> Edge:
    """A file system with one file in it: a text that stands in the Dockerfile."""
    make = MakeFile(path="/" + name, mode=mode, data=text.encode("utf-8", "surrogateescape"))
    operation = Operation(Files([FileAction(action=make, output=0)]), [], state.platform)
    return graph.add(operation, name=INLINE, locations=locations(of.origin.span))


def shown(code: str, variables: Mapping[str, str], rules: WordRules) -> str:
    """An instruction as it is shown: its keyword in capitals, its variables expanded where that makes sense."""
    with contextlib.suppress(DockerfileError):
        code = expand(code, variables, rules).text
    keyword, blank, rest = code.partition(" ")
    return keyword.upper() + blank + rest


def copy_of(document: ImageConfig) -> ImageConfig:
    """An image of its own to change: nothing in it is shared."""
    copy: ImageConfig = msgspec.convert(msgspec.to_builtins(document), ImageConfig)
    copy.config = copy.config or ContainerConfig()
    return copy


def empty_image(platform: Platform) -> ImageConfig:
    return ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        variant=platform.variant,
        os_version=platform.os_version,
        config=ContainerConfig(env=[f"PATH={DEFAULT_PATH}"], working_dir="/"),
        rootfs=RootFS(),
        history=[],
    )


def prepared_volumes(graph: Graph, state: StageState, span: Span) -> tuple[Edge | None, list[str]]:
    """Add a directory for each volume of a stage: the classic builder lets steps write there, in vain.

    Returns the file system, and the paths; outer ones come first.
    """
    paths = sorted({posixpath.normpath("/" + path.lstrip("/")) for path in state.config.volumes or ()} - {"/"})
    if not paths:
        return state.root, []
    actions = []
    for number, path in enumerate(paths):
        before = (0 if state.root else NONE) if number == 0 else len([state.root] if state.root else []) + number - 1
        made = MakeDirectory(path=path, mode=0o755, make_parents=True)
        actions.append(FileAction(action=made, input=before, output=0 if number + 1 == len(paths) else NONE))
    operation = Operation(Files(actions), [state.root] if state.root else [], state.platform)
    return graph.add(operation, name=f"[internal] volumes {' '.join(paths)}", locations=locations(span)), paths
