"""The jobs of workers, each with all that its worker is told. Wings have jobs of their own."""

from typing import ClassVar

from husk.storage.workers.parts import NO_MEMORY, Bind, Memory, WorkerMessage


class WorkerJob(WorkerMessage, frozen=True):
    """A job for a worker. `worker` names the module whose `main` does it."""

    worker: ClassVar[str]


class UnpackJob(WorkerJob, frozen=True, tag="unpack"):
    """Make a layer of standard input: the blob in an empty file that is there, its files in `directory`.

    Answer: `UnpackedLayer`. `digest` is what it must have, if that is known; `limit`: most bytes of it, 0 for any.
    """

    worker: ClassVar[str] = "husk.storage.workers.unpack"

    directory: str
    blob: str
    digest: str = ""
    limit: int = 0


class DiffJob(WorkerJob, frozen=True, tag="diff"):
    """Write what an overlay's upper directory changes to standard output, as a layer's tar. Answer: `Done`."""

    worker: ClassVar[str] = "husk.storage.workers.diff"

    upper: str


class PackJob(WorkerJob, frozen=True, tag="pack"):
    """Write what a path of a container names to standard output, as a tar. Answers: `FileStatus`, then `Done`.

    Without a path it is the whole root, without a name for itself, and there is no status. `as_answer`: standard output
    is the socket of a client, who gets the tar as the chunks of an answer once a byte on standard input says so.
    """

    worker: ClassVar[str] = "husk.storage.workers.pack"

    root: str
    binds: list[Bind]
    path: str
    memory: Memory = NO_MEMORY
    only_status: bool = False
    as_answer: bool = False


class PutJob(WorkerJob, frozen=True, tag="put"):
    """Unpack the archive on standard input into the directory `path` of a container. Answer: `Done`.

    `owner` (user, group) replaces the archive's owners; `keep_kinds` refuses a file in a directory's place. `as_body`:
    standard input is the socket of a client, with the body of a request; without a `length` it is in chunks.
    """

    worker: ClassVar[str] = "husk.storage.workers.put"

    root: str
    binds: list[Bind]
    path: str
    memory: Memory = NO_MEMORY
    readonly_root: bool = False
    keep_kinds: bool = False
    owner: tuple[int, int] | None = None
    as_body: bool = False
    length: int | None = None
