"""The parts that jobs and answers of workers are made of."""

import msgspec

# The first byte of an `AheadPlan`'s file says that the rest of it is what the tar begins with.
MARK = b"\n"


class WorkerMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message, or a part of one, on which the two sides agree: unknown fields are refused."""


class Bind(WorkerMessage, frozen=True):
    """Something of the host that a container has mounted."""

    source: str
    target: str
    readonly: bool


class Memory(WorkerMessage, frozen=True):
    """The places of a container's tmpfs, and its process, which alone has them: 0 for one that does not run."""

    places: list[str]
    process: int = 0


NO_MEMORY = Memory([])


class Stack(WorkerMessage, frozen=True):
    """A file system of a build: the directories of an overlay, topmost first. Without `upper` it is read alone.

    A `plain` one is a single directory that looks the same without overlayfs: no whiteouts, no attributes of it. If
    it came by a sync, its `table` tells of its files.
    """

    lower: list[str]
    upper: str = ""
    work: str = ""
    plain: bool = False
    table: str = ""


class Blob(WorkerMessage, frozen=True):
    digest: str
    size: int


class AheadPlan(WorkerMessage, frozen=True):
    """The file that a layer's tar is packed into while its files still come (`husk.builder.store.ahead`); `time` is
    that of the top directory, in nanoseconds."""

    path: str
    time: int


class UpperBlob(WorkerMessage, frozen=True):
    """An overlay's upper directory, and the empty file that its tar goes to."""

    upper: str
    blob: str


class Access(WorkerMessage, frozen=True):
    """The way to a repository of git: its address, and who we are there.

    `header` is for addresses that begin with `scope`. `agent` is the name of a socket in the job's `work` directory,
    with an SSH agent behind it. `environment` has the host's proxies.
    """

    remote: str
    header: str = ""
    scope: str = ""
    agent: str = ""
    known_hosts: str = ""
    environment: dict[str, str] = {}
