"""The jobs of workers, each with all that its worker is told."""

from typing import Literal, TypeAlias

from msgspec import field

from husk.storage.workers.parts import Access, AheadPlan, Bind, Stack, UpperBlob, WorkerMessage


class UnpackJob(WorkerMessage, frozen=True, tag="unpack"):
    """Make a layer of standard input: the blob in an empty file that is there, its files in `directory`.

    Answer: `UnpackedLayer`. `digest` is what it must have, if that is known; `limit`: most bytes of it, 0 for any.
    """

    directory: str
    blob: str
    digest: str = ""
    limit: int = 0


class DiffJob(WorkerMessage, frozen=True, tag="diff"):
    """Write what an overlay's upper directory changes to standard output, as a layer's tar. Answer: `Done`."""

    upper: str


class DiffBlobsJob(WorkerMessage, frozen=True, tag="diff-blobs"):
    """Write what upper directories of overlays change to empty files, as layers' tars. Answer: `Blobs`, in their order.

    No entry has a time after `latest`, in seconds.
    """

    diffs: list[UpperBlob]
    latest: int | None = None


class PackJob(WorkerMessage, frozen=True, tag="pack"):
    """Write what a path of a container names to standard output, as a tar. Answers: `FileStatus`, then `Done`.

    Without a path it is the whole root, without a name for itself, and there is no status. `as_answer`: standard output
    is the socket of a client, who gets the tar as the chunks of an answer once a byte on standard input says so.
    """

    root: str
    binds: list[Bind]
    path: str
    only_status: bool = False
    as_answer: bool = False


class PutJob(WorkerMessage, frozen=True, tag="put"):
    """Unpack the archive on standard input into the directory `path` of a container. Answer: `Done`.

    `owner` (user, group) replaces the archive's owners; `keep_kinds` refuses a file in a directory's place. `as_body`:
    standard input is the socket of a client, with the body of a request; without a `length` it is in chunks.
    """

    root: str
    binds: list[Bind]
    path: str
    readonly_root: bool = False
    keep_kinds: bool = False
    owner: tuple[int, int] | None = None
    as_body: bool = False
    length: int | None = None


class FilesJob(WorkerMessage, frozen=True, tag="files"):
    """Carry out file actions, which standard input has (msgpack), on the first of some file systems. Answer: `Done`.

    Inputs of actions are numbers of file systems. `root` is a directory to mount them on, `empty` one without files,
    `common` the one that all those of stacks are in: what is new is put there. `blob` is for its tar (`layer_tar`).
    If it begins with `lead`, somebody else writes it: then its headers are told instead. `blobs` is the directory of
    all blobs, where tars of former copies are.
    """

    root: str
    empty: str
    stacks: list[Stack]
    common: str = ""
    blob: str = ""
    lead: bytes | None = None
    blobs: str = ""


DigestForm: TypeAlias = Literal["", "portable", "older"]


class DigestJob(WorkerMessage, frozen=True, tag="digest"):
    """Compute digests of what selections, which standard input has (msgpack), choose. Answer: `Digests`.

    `table` is a file with what is known of the contents of files, if there is one. Digests of the forms "portable" and
    "older" are those that BuildKit computes; a table says then that the files came from a client.
    """

    root: str
    empty: str
    stack: Stack
    table: str = ""
    form: DigestForm = ""


class ReadJob(WorkerMessage, frozen=True, tag="read"):
    """Read a regular file from `offset` on, at most so many bytes. Answer: `FileContent`."""

    root: str
    empty: str
    stack: Stack
    path: str
    most: int
    offset: int = 0


class LookJob(WorkerMessage, frozen=True, tag="look"):
    """Look at what a path names, or at all that a directory has in it. Answer: `Looked`."""

    root: str
    empty: str
    stack: Stack
    path: str
    inside: bool = False


class DifferenceJob(WorkerMessage, frozen=True, tag="difference"):
    """Make the third file system, which begins as the first, the same as the second. Answer: `Done`."""

    root: str
    empty: str
    stacks: list[Stack]


class ContextJob(WorkerMessage, frozen=True, tag="context"):
    """Unpack the context of a build, an archive on standard input, into a directory. Answer: `Done`.

    `limit` is how many bytes its files may have, 0 for any number.
    """

    directory: str
    limit: int = 0


class GitJob(WorkerMessage, frozen=True, tag="git"):
    """Ask a repository of git for its `names`; or, with a `commit`, have its files in `tree`.

    Answer: `FileContent` with lines of `git ls-remote`, or with the commit that was checked out: `commit` may be a tag.
    `view` is a directory to mount on, `work` one that goes afterwards. `reference` is what the commit was found by, if
    it is known, and `said` what commit the server says that the tag is. `limit` is how many bytes it may take,
    `memory` how many each process of git may have.
    """

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


class ReceiveJob(WorkerMessage, frozen=True, tag="receive"):
    """Make the directory `root` the same as a client's, with whom standard input and output speak. Answer: `Received`.

    The table `old` tells what `root` has, or is empty; it is removed first: from then on it is not true. The table
    `new` is written when all is well. With `ahead` the files are packed while they come, if that is worth it:
    then a second answer follows, `Packed`. `limit` is how many bytes more than before it may have, 0 for any number.
    """

    root: str
    old: str
    new: str
    ahead: AheadPlan | None = None
    limit: int = 0


class SendJob(WorkerMessage, frozen=True, tag="send"):
    """Send the directory `root` to a client, with whom standard input and output speak. Answer: `Sent`.

    `prefix` is the directory of the client's directory that all goes into; `mtime` the time of all files (nanoseconds).
    With `stacks` those are sent, and `root` is only where they are mounted: one by the name "", or each in a directory
    of its name.
    """

    root: str
    prefix: str
    mtime: int | None = None
    stacks: dict[str, Stack] = field(default_factory=dict)
    empty: str = ""


class StackTarJob(WorkerMessage, frozen=True, tag="stack-tar"):
    """Write the files of stacks to standard output, as a tar. Answer: `Done`.

    Each is in a directory of its name, those of the name "" in none. No entry has a time after `latest`, in seconds.
    """

    root: str
    empty: str
    stacks: dict[str, Stack]
    latest: int | None = None


class ListJob(WorkerMessage, frozen=True, tag="list"):
    """Write a line of JSON to standard output for everything in a file system that is no directory: its path, and if
    `digests` are wanted that of a regular file. Answer: `Done`."""

    root: str
    empty: str
    stack: Stack
    digests: bool = False


class ParseJob(WorkerMessage, frozen=True, tag="parse"):
    """Answer questions (`frames`) that come on standard input, on standard output, with a module of a room above.

    `module` has a class `Answerer` (`parse`). Answer: none, but `Invalid` for what takes more than so many bytes of
    memory or seconds of a processor, and `Failed`.
    """

    module: str
    memory: int
    seconds: int


TreeJob: TypeAlias = FilesJob | DigestJob | ReadJob | LookJob | DifferenceJob | ContextJob
"""What is done to the files of builds."""
StreamJob: TypeAlias = ReceiveJob | SendJob | StackTarJob | ListJob | ParseJob
Job: TypeAlias = UnpackJob | DiffJob | DiffBlobsJob | TreeJob | PackJob | PutJob | GitJob | StreamJob
