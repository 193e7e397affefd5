"""The instructions of a Dockerfile as types: what was written, before any variable is expanded.

Texts in which variables are expanded when the instruction is carried out are marked so at their field.
"""

from msgspec import Struct

from husk.builder.dockerfile.lines import Heredoc, Pair
from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.run_mounts import RunMount


class Origin(Struct, frozen=True):
    """The keyword and line of an instruction as written, and their place in the file."""

    keyword: str  # as written: `run`, `RUN`
    code: str  # the line, continuations joined
    span: Span
    comments: list[str] = []  # right above it


class Instruction(Struct, frozen=True):
    origin: Origin


class CommandLine(Struct, frozen=True):
    """A command line: a list of words, or one text for the shell; its heredocs are files for it."""

    words: list[str]
    for_shell: bool
    heredocs: list[Heredoc] = []


class Arg(Struct, frozen=True):
    name: str
    default: str | None = None  # expanded
    description: str = ""


class ArgInstruction(Instruction, frozen=True, kw_only=True):
    args: list[Arg]


class Env(Instruction, frozen=True, kw_only=True):
    pairs: list[Pair]  # names and values expanded


class Label(Instruction, frozen=True, kw_only=True):
    pairs: list[Pair]  # names and values expanded


class Maintainer(Instruction, frozen=True, kw_only=True):
    name: str


class CopiedFiles(Struct, frozen=True):
    """The operands of COPY and ADD: paths (expanded), texts that stand in the file, and the destination (expanded)."""

    paths: list[str]
    heredocs: list[Heredoc]
    destination: str


class Copy(Instruction, frozen=True, kw_only=True):
    files: CopiedFiles
    source: str = ""  # --from: a stage, a context or an image
    chown: str = ""  # expanded
    chmod: str = ""  # expanded
    link: bool = False
    parents: bool = False
    excludes: list[str] = []  # expanded


class Add(Instruction, frozen=True, kw_only=True):
    files: CopiedFiles
    chown: str = ""  # expanded
    chmod: str = ""  # expanded
    link: bool = False
    excludes: list[str] = []  # expanded
    checksum: str = ""  # expanded
    keep_git_dir: bool | None = None
    unpack: bool | None = None


class Run(Instruction, frozen=True, kw_only=True):
    command: CommandLine
    mounts: list[RunMount] = []
    network: str = "default"
    security: str = "sandbox"
    flags: frozenset[str] = frozenset()


class Cmd(Instruction, frozen=True, kw_only=True):
    command: CommandLine


class Entrypoint(Instruction, frozen=True, kw_only=True):
    command: CommandLine


class Shell(Instruction, frozen=True, kw_only=True):
    words: list[str]


class Workdir(Instruction, frozen=True, kw_only=True):
    path: str  # expanded


class User(Instruction, frozen=True, kw_only=True):
    name: str  # expanded


class Volume(Instruction, frozen=True, kw_only=True):
    paths: list[str]  # expanded


class Expose(Instruction, frozen=True, kw_only=True):
    ports: list[str]  # each expanded, to several words perhaps


class StopSignal(Instruction, frozen=True, kw_only=True):
    signal: str  # expanded


class HealthCheck(Instruction, frozen=True, kw_only=True):
    """Times in nanoseconds, zero where nothing was said."""

    test: list[str]
    interval: int = 0
    timeout: int = 0
    start_period: int = 0
    start_interval: int = 0
    retries: int = 0


class OnBuild(Instruction, frozen=True, kw_only=True):
    trigger: str  # the instruction, with the text of its heredocs


class From(Instruction, frozen=True, kw_only=True):
    base: str  # expanded by the global arguments
    name: str = ""
    platform: str = ""  # expanded by the global arguments
    description: str = ""
    as_keyword: str = ""  # as written


class Stage(Struct, frozen=True):
    begin: From
    instructions: list[Instruction]

    @property
    def name(self) -> str:
        return self.begin.name
