"""What workers are told, and what they answer.

A job goes to its worker as one message of a socket; answers come back on a pipe, one after the other. Both are JSON,
each on a line of its own, and decoded into the types below: a field that is missing, unknown or of another type is
refused. JSON and not msgpack: the name of a file need not be UTF-8, and what Python makes of such a name (a lone
surrogate) passes as JSON's escape.
"""

import json
from typing import Literal, TypeAlias

import msgspec

# What fits into one message of a socket, whose buffer holds 208 KiB where nobody has changed that.
LARGEST_JOB = 192 << 10
_LONGEST_MESSAGE = 8192
# The first byte of an `AheadPlan`'s file says that the rest of it is what the tar begins with.
MARK = b"\n"


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the two sides agree on."""


class Bind(_Message, frozen=True):
    """Something of the host that a container has mounted."""

    source: str
    target: str
    readonly: bool


class Stack(_Message, frozen=True):
    """A file system of a build: the directories of an overlay, topmost first. Without `upper` it is read alone.

    A `plain` one is a single directory that looks the same without overlayfs: no whiteouts, no attributes of it.
    """

    lower: list[str]
    upper: str = ""
    work: str = ""
    plain: bool = False


class Blob(_Message, frozen=True):
    digest: str
    size: int


class AheadPlan(_Message, frozen=True):
    """What a layer's tar is packed into while its files still come (`husk.storage.ahead`); `time` is that of the top
    directory, in nanoseconds."""

    path: str
    time: int


# --- jobs


class UnpackJob(_Message, frozen=True, tag="unpack"):
    """Make a layer of standard input: the blob in an empty file that is there, its files in `directory`.

    Answer: `UnpackedLayer`. `digest` is what it must have, if that is known; `limit`: most bytes of it, 0 for any.
    """

    directory: str
    blob: str
    digest: str = ""
    limit: int = 0


class DiffJob(_Message, frozen=True, tag="diff"):
    """Write what an overlay's upper directory changes to standard output, as a layer's tar. Answer: `Done`."""

    upper: str


class UpperBlob(_Message, frozen=True):
    """An overlay's upper directory, and the empty file that its tar goes to."""

    upper: str
    blob: str


class DiffBlobsJob(_Message, frozen=True, tag="diff-blobs"):
    """Write what upper directories of overlays change to empty files, as layers' tars. Answer: `Blobs`, in their order.

    No entry has a time after `latest`, in seconds.
    """

    diffs: list[UpperBlob]
    latest: int | None = None


class PackJob(_Message, frozen=True, tag="pack"):
    """Write what a path of a container names to standard output, as a tar. Answers: `FileStatus`, then `Done`.

    Without a path it is the whole root, without a name for itself, and there is no status. `as_answer`: standard output
    is the socket of a client, who gets the tar as the chunks of an answer once a byte on standard input says so.
    """

    root: str
    binds: list[Bind]
    path: str
    only_status: bool = False
    as_answer: bool = False


class PutJob(_Message, frozen=True, tag="put"):
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


class FilesJob(_Message, frozen=True, tag="files"):
    """Carry out file actions, which standard input has (msgpack), on the first of some file systems. Answer: `Done`.

    Inputs of actions are numbers of file systems. `root` is a directory to mount them on, `empty` one without files,
    `common` the one that all those of stacks are in: what is new is put there. `blob` is for its tar (`layer_tar`).
    If it begins with `lead`, somebody else writes it: then its headers are told instead.
    """

    root: str
    empty: str
    stacks: list[Stack]
    common: str = ""
    blob: str = ""
    lead: bytes | None = None


DigestForm: TypeAlias = Literal["", "portable", "older"]


class DigestJob(_Message, frozen=True, tag="digest"):
    """Compute digests of what selections, which standard input has (msgpack), choose. Answer: `Digests`.

    `table` is a file with what is known of the contents of files, if there is one. Digests of the forms "portable" and
    "older" are those that BuildKit computes; a table says then that the files came from a client.
    """

    root: str
    empty: str
    stack: Stack
    table: str = ""
    form: DigestForm = ""


class ReadJob(_Message, frozen=True, tag="read"):
    """Read the beginning of a regular file, at most so many bytes. Answer: `FileContent`."""

    root: str
    empty: str
    stack: Stack
    path: str
    most: int


class LookJob(_Message, frozen=True, tag="look"):
    """Look at what a path names, or at all that a directory has in it. Answer: `Looked`."""

    root: str
    empty: str
    stack: Stack
    path: str
    inside: bool = False


class DifferenceJob(_Message, frozen=True, tag="difference"):
    """Make the third file system, which begins as the first, the same as the second. Answer: `Done`."""

    root: str
    empty: str
    stacks: list[Stack]


class ContextJob(_Message, frozen=True, tag="context"):
    """Unpack the context of a build, an archive on standard input, into a directory. Answer: `Done`.

    `limit` is how many bytes its files may have, 0 for any number.
    """

    directory: str
    limit: int = 0


class Access(_Message, frozen=True):
    """How a repository of git is reached: its address, and who we are there.

    `header` is for addresses that begin with `scope`. `agent` is the name of a socket in the job's `work` directory,
    with an SSH agent behind it. `environment` has the host's proxies.
    """

    remote: str
    header: str = ""
    scope: str = ""
    agent: str = ""
    known_hosts: str = ""
    environment: dict[str, str] = {}


class GitJob(_Message, frozen=True, tag="git"):
    """Ask a repository of git for its `names`; or, with a `commit`, have its files in `tree`.

    Answer: `FileContent` with lines of `git ls-remote`; `Done` when the files are there. `view` is a directory to mount
    on, `work` one that goes afterwards. `reference` is what the commit was found by, if it is known. `limit` is how
    many bytes a file may have.
    """

    view: str
    work: str
    access: Access
    names: list[str] = []
    tree: str = ""
    commit: str = ""
    reference: str = ""
    directory: str = ""  # only that of the repository
    keep: bool = False  # .git
    submodules: bool = True
    time_of_commit: bool = False
    limit: int = 0


class ReceiveJob(_Message, frozen=True, tag="receive"):
    """Make the directory `root` the same as a client's, with whom standard input and output speak. Answer: `Received`.

    The table `old` tells what `root` has, or is empty; it is removed first: from then on it is not true. The table
    `new` is written when all is well. With `ahead` the files are packed while they come, if that is worth it:
    then a second answer follows, `Packed`.
    """

    root: str
    old: str
    new: str
    ahead: AheadPlan | None = None


class SendJob(_Message, frozen=True, tag="send"):
    """Send the directory `root` to a client, with whom standard input and output speak. Answer: `Sent`.

    `prefix` is the directory of the client's directory that all goes into; `mtime` the time of all files (nanoseconds).
    With `stacks` those are sent, and `root` is only where they are mounted: one by the name "", or each in a directory
    of its name.
    """

    root: str
    prefix: str
    mtime: int | None = None
    stacks: dict[str, Stack] = {}
    empty: str = ""


class StackTarJob(_Message, frozen=True, tag="stack-tar"):
    """Write the files of stacks to standard output, as a tar. Answer: `Done`.

    Each is in a directory of its name, those of the name "" in none. No entry has a time after `latest`, in seconds.
    """

    root: str
    empty: str
    stacks: dict[str, Stack]
    latest: int | None = None


class ListJob(_Message, frozen=True, tag="list"):
    """Write a line of JSON to standard output for everything in a file system that is no directory: its path, and if
    `digests` are wanted that of a regular file. Answer: `Done`."""

    root: str
    empty: str
    stack: Stack
    digests: bool = False


TreeJob: TypeAlias = FilesJob | DigestJob | ReadJob | LookJob | DifferenceJob | ContextJob
"""What is done to the files of builds."""
StreamJob: TypeAlias = ReceiveJob | SendJob | StackTarJob | ListJob
Job: TypeAlias = UnpackJob | DiffJob | DiffBlobsJob | TreeJob | PackJob | PutJob | GitJob | StreamJob


# --- answers


class Done(_Message, frozen=True, tag="done"):
    """All of it went well. `size` counts the bytes of files that were made, where it is known; `blob` is their tar.

    `heads` is a digest of the headers of a tar that was not written (`tar_heads`).
    """

    size: int | None = None
    blob: Blob | None = None
    heads: str = ""


class UnpackedLayer(_Message, frozen=True, tag="layer"):
    """A layer is unpacked. `size` counts the bytes of its files; does its archive describe the root directory?"""

    blob: str
    blob_size: int
    diff_id: str
    size: int
    describes_root: bool


class Blobs(_Message, frozen=True, tag="blobs"):
    blobs: list[Blob]


class Received(_Message, frozen=True, tag="received"):
    """How many files the directory has now, how many bytes they have, and how many of those were written.

    While somebody is still `packing` them another answer follows.
    """

    files: int
    size: int
    written: int
    packing: bool = False


class Packed(_Message, frozen=True, tag="packed"):
    """The tar of what was received is complete, with the digest of its headers (`tar_heads`); or it was given up."""

    blob: Blob | None = None
    heads: str = ""


class Sent(_Message, frozen=True, tag="sent"):
    """How many bytes of files were sent."""

    size: int


class Digests(_Message, frozen=True, tag="digests"):
    """One for each selection."""

    digests: list[str]


class FileContent(_Message, frozen=True, tag="content"):
    data: bytes


class Entry(_Message, frozen=True):
    """A file of a build's file system; names that are not UTF-8 have surrogates."""

    name: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    link: str = ""
    major: int = 0
    minor: int = 0


class Looked(_Message, frozen=True, tag="looked"):
    entries: list[Entry]


class FileStatus(_Message, frozen=True, tag="status"):
    """What a path of a container names; `link` is where a symbolic link leads in the end."""

    name: str
    size: int
    mode: int
    mtime_ns: int
    link: str


class Missing(_Message, frozen=True, tag="missing"):
    """There is nothing at a path that the job names."""

    message: str = ""


class Invalid(_Message, frozen=True, tag="invalid"):
    """What was sent is to blame."""

    message: str


class Refused(_Message, frozen=True, tag="refused"):
    """It is not allowed."""

    message: str


class Failed(_Message, frozen=True, tag="failed"):
    """The host is to blame, or the worker."""

    message: str


Answer: TypeAlias = (
    Done | UnpackedLayer | Blobs | Digests | FileContent | Looked | Received | Packed | Sent | FileStatus
    | Missing | Invalid | Refused | Failed
)  # fmt: skip


def encode(message: Job | Answer) -> bytes:
    return json.dumps(msgspec.to_builtins(message)).encode() + b"\n"


def decode_job(line: bytes) -> Job:
    job: Job = msgspec.convert(json.loads(line), type=Job)
    return job


def decode_answer(line: bytes) -> Answer:
    answer: Answer = msgspec.convert(json.loads(line), type=Answer)
    return answer


def printable(text: str) -> str:
    """One line, not too long, that every client can be shown, whatever names of files are in it."""
    return text[:_LONGEST_MESSAGE].replace("\n", " ").encode("utf-8", "backslashreplace").decode()
