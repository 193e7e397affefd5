"""The jobs of workers for builds, each with all that its worker is told."""

import importlib
from typing import ClassVar, Literal, TypeAlias

from msgspec import field

from husk.storage.workers.jobs import WorkerJob
from husk.storage.workers.parts import Access, AheadPlan, Stack, UpperBlob


class DiffBlobsJob(WorkerJob, frozen=True, tag="diff-blobs"):
    """Write what upper directories of overlays change to empty files, as layers' tars. Answer: `Blobs`, in their order.

    No entry has a time after `latest`, in seconds.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.diff_blob"

    diffs: list[UpperBlob]
    latest: int | None = None


class FilesJob(WorkerJob, frozen=True, tag="files"):
    """Carry out file actions, which standard input has (msgpack), on the first of some file systems. Answer: `Done`.

    Inputs of actions are numbers of file systems. `root` is a directory to mount them on, `empty` one without files,
    `common` the one that all those of stacks are in: what is new is put there. `blob` is for its tar (`layer_tar`).
    If it begins with `lead`, somebody else writes it: then its headers are told instead. `blobs` is the directory of
    all blobs, where tars of former copies are.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.file_job"

    root: str
    empty: str
    stacks: list[Stack]
    common: str = ""
    blob: str = ""
    lead: bytes | None = None
    blobs: str = ""


DigestForm: TypeAlias = Literal["", "portable", "older"]


class DigestJob(WorkerJob, frozen=True, tag="digest"):
    """Compute digests of what selections, which standard input has (msgpack), choose. Answer: `Digests`.

    `table` is a file with what is known of the contents of files, if there is one. Digests of the forms "portable" and
    "older" are those that BuildKit computes; a table says then that the files came from a client.
    """

    worker: ClassVar[str] = "husk.builder.store.content_digest"

    root: str
    empty: str
    stack: Stack
    table: str = ""
    form: DigestForm = ""


class ReadJob(WorkerJob, frozen=True, tag="read"):
    """Read a regular file from `offset` on, at most so many bytes. Answer: `FileContent`."""

    worker: ClassVar[str] = "husk.builder.store.workers.tree_read"

    root: str
    empty: str
    stack: Stack
    path: str
    most: int
    offset: int = 0


class LookJob(WorkerJob, frozen=True, tag="look"):
    """Look at what a path names, or at all that a directory has in it. Answer: `Looked`."""

    worker: ClassVar[str] = "husk.builder.store.workers.tree_read"

    root: str
    empty: str
    stack: Stack
    path: str
    inside: bool = False


class DifferenceJob(WorkerJob, frozen=True, tag="difference"):
    """Make the third file system, which begins as the first, the same as the second. Answer: `Done`."""

    worker: ClassVar[str] = "husk.builder.store.workers.difference"

    root: str
    empty: str
    stacks: list[Stack]


class ContextJob(WorkerJob, frozen=True, tag="context"):
    """Unpack the context of a build, an archive on standard input, into a directory. Answer: `Done`.

    `limit` is how many bytes its files may have, 0 for any number.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.context"

    directory: str
    limit: int = 0


class GitJob(WorkerJob, frozen=True, tag="git"):
    """Ask a repository of git for its `names`; or, with a `commit`, have its files in `tree`.

    Answer: `FileContent` with lines of `git ls-remote`, or with the commit that was checked out: `commit` may be a tag.
    `view` is a directory to mount on, `work` one that goes afterwards. `reference` is what the commit was found by, if
    it is known, and `said` what commit the server says that the tag is. `limit` is how many bytes it may take,
    `memory` how many each process of git may have.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.git"

    view: str
    work: str
    access: Access
    names: list[str] = field(default_factory=list)
    tree: str = ""
    commit: str = ""
    reference: str = ""
    said: str = ""
    directory: str = ""  # only that of the repository
    keep: bool = False  # .git
    submodules: bool = True
    time_of_commit: bool = False
    limit: int = 0
    memory: int = 0


class ReceiveJob(WorkerJob, frozen=True, tag="receive"):
    """Make the directory `root` the same as a client's, with whom standard input and output speak. Answer: `Received`.

    The table `old` tells what `root` has, or is empty; it is removed first: from then on it is not true. The table
    `new` is written when all is well. With `ahead` the files are packed while they come, if that is worth it:
    then a second answer follows, `Packed`. `limit` is how many bytes more than before it may have, 0 for any number.
    """

    worker: ClassVar[str] = "husk.builder.store.sync.receive"

    root: str
    old: str
    new: str
    ahead: AheadPlan | None = None
    limit: int = 0


class SendJob(WorkerJob, frozen=True, tag="send"):
    """Send the directory `root` to a client, with whom standard input and output speak. Answer: `Sent`.

    `prefix` is the directory of the client's directory that all goes into; `mtime` the time of all files (nanoseconds).
    With `stacks` those are sent, and `root` is only where they are mounted: one by the name "", or each in a directory
    of its name.
    """

    worker: ClassVar[str] = "husk.builder.store.sync.send"

    root: str
    prefix: str
    mtime: int | None = None
    stacks: dict[str, Stack] = field(default_factory=dict)
    empty: str = ""


class StackTarJob(WorkerJob, frozen=True, tag="stack-tar"):
    """Write the files of stacks to standard output, as a tar. Answer: `Done`.

    Each is in a directory of its name, those of the name "" in none. No entry has a time after `latest`, in seconds.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.stack_tar"

    root: str
    empty: str
    stacks: dict[str, Stack]
    latest: int | None = None


class ListJob(WorkerJob, frozen=True, tag="list"):
    """Write a line of JSON to standard output for everything in a file system that is no directory: its path, and if
    `digests` are wanted that of a regular file. Answer: `Done`."""

    worker: ClassVar[str] = "husk.builder.store.workers.listing"

    root: str
    empty: str
    stack: Stack
    digests: bool = False


class ParseJob(WorkerJob, frozen=True, tag="parse"):
    """Answer questions (`frames`) that come on standard input, on standard output, with a module of a room above.

    `module` has a class `Answerer` (`parse`). Answer: none, but `Invalid` for what takes more than so many bytes of
    memory or seconds of a processor, and `Failed`.
    """

    worker: ClassVar[str] = "husk.builder.store.workers.parse"

    module: str
    memory: int
    seconds: int


# What such a worker needs it loads itself: it works for longer than that takes, and there are few of them.
_SELDOM = (GitJob,)


def warm_up() -> None:
    """Load what workers for builds need, in the process that forks them."""
    for job in WorkerJob.__subclasses__():
        if job not in _SELDOM:
            importlib.import_module(job.worker)
