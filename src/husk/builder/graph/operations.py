"""The operations that a build is made of, in BuildKit's terms (LLB): sources, processes, files, merges, differences.

An operation takes file systems (its inputs), and gives some. It says what is to be done and nothing about who asked for
it or how it is shown: two builds that want the same have the same operation, with the same digest. What is shown, and
where in a Dockerfile it comes from, is beside it, in `graph.Vertex`.

Paths are absolute in the file system that they belong to. An input is named by its place among the inputs, `NONE` where
there is none.
"""

import hashlib
import re
from typing import Literal

import msgspec
from msgspec import Struct

from husk.builder.store.file_actions import NONE, FileAction
from husk.registry.manifest import Platform
from husk.text.encoded import encoded

Sharing = Literal["shared", "private", "locked"]
Network = Literal["sandbox", "host", "none"]

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_texts = msgspec.json.Encoder()
# As JSON has it: behind any number of backslashes that stand for one each.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class Edge(Struct, frozen=True):
    """One output of an operation."""

    digest: str
    output: int = 0


# --- sources ---------------------------------------------------------------------------------------------------------


class Source(Struct, frozen=True, tag="source"):
    """`docker-image://…`, `local://…`, `git://…`, `https://…`, `oci-layout://…`, with what else that kind takes."""

    identifier: str
    attributes: dict[str, str] = {}


# --- processes -------------------------------------------------------------------------------------------------------


class StepUlimit(Struct, frozen=True):
    name: str
    soft: int
    hard: int


class StepLimits(Struct, frozen=True, kw_only=True):
    """Limits of processes, by the words of `docker build`; 0 and empty for no limit. BuildKit knows none of them."""

    memory: int = 0  # bytes
    memory_swap: int = 0  # with the memory; -1 for as much as there is
    cpu_shares: int = 0
    cpu_period: int = 0  # microseconds
    cpu_quota: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    shm_size: int = 0
    network: str = ""  # the network to be on, instead of the default bridge
    security: list[str] = []  # as `docker run --security-opt`


class ProcessSpec(Struct, frozen=True, kw_only=True):
    args: list[str]
    env: list[str] = []
    cwd: str = "/"
    user: str = ""
    hostname: str = ""
    extra_hosts: list[tuple[str, str]] = []
    ulimits: list[StepUlimit] = []
    cgroup_parent: str = ""
    proxy: dict[str, str] = {}  # not part of the cache key
    limits: StepLimits = StepLimits()  # not part of the cache key
    valid_exit_codes: list[int] = []
    remove_stubs: bool = False  # of mounts: files and directories that were made to mount on; they are never left here


class CacheMount(Struct, frozen=True, tag="cache"):
    id: str
    sharing: Sharing = "shared"


class TmpfsMount(Struct, frozen=True, tag="tmpfs"):
    size: int = 0


class SecretMount(Struct, frozen=True, tag="secret"):
    id: str
    uid: int = 0
    gid: int = 0
    mode: int = 0o400
    optional: bool = False


class SshMount(Struct, frozen=True, tag="ssh"):
    id: str
    uid: int = 0
    gid: int = 0
    mode: int = 0o600
    optional: bool = False


class BindMount(Struct, frozen=True, tag="bind"):
    pass


class ExecMount(Struct, frozen=True, kw_only=True):
    target: str
    kind: BindMount | CacheMount | TmpfsMount | SecretMount | SshMount = BindMount()
    input: int = NONE
    selector: str = ""  # a path in the input
    output: int = NONE
    read_only: bool = False


class SecretVariable(Struct, frozen=True):
    """An environment variable with the value of a secret."""

    id: str
    name: str
    optional: bool = False


class Exec(Struct, frozen=True, kw_only=True, tag="exec"):
    """Run a process. Its first mount is its root."""

    process: ProcessSpec
    mounts: list[ExecMount]
    network: Network = "sandbox"
    insecure: bool = False
    secret_env: list[SecretVariable] = []


# --- files -----------------------------------------------------------------------------------------------------------


class Files(Struct, frozen=True, tag="files"):
    actions: list[FileAction]


# --- file systems from file systems ----------------------------------------------------------------------------------


class Merge(Struct, frozen=True, tag="merge"):
    """All inputs on top of each other."""


class Diff(Struct, frozen=True, tag="diff"):
    """The files that are in the upper input and not in the lower."""

    lower: int
    upper: int


class NestedBuild(Struct, frozen=True, tag="build"):
    """A build within a build: its definition is a file of an input, or given by a frontend's attributes."""

    builder: int
    inputs: dict[str, int] = {}
    attributes: dict[str, str] = {}


Body = Source | Exec | Files | Merge | Diff | NestedBuild


class Operation(Struct, frozen=True):
    body: Body
    inputs: list[Edge] = []
    platform: Platform | None = None


def has_nul(thing: Struct) -> bool:
    """Return True if a text of the thing has a NUL, with which nothing of a system has a name; bytes may have any."""
    text = encoded(_texts, thing)
    return b"\\u0000" in text and _NUL.search(text) is not None


def digest_of(operation: Operation) -> str:
    return "sha256:" + hashlib.sha256(encoded(_encoder, operation)).hexdigest()
