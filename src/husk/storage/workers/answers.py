"""The answers of workers to their jobs: what came of them, and whose fault it is where they failed."""

from typing import TypeAlias

from husk.storage.workers.parts import Blob, WorkerMessage


class Done(WorkerMessage, frozen=True, tag="done"):
    """All of it went well. `size` counts the bytes of files that were made, where it is known; `blob` is their tar.

    `heads` is a digest of the headers of a tar that was not written (`tar_heads`).
    """

    size: int | None = None
    blob: Blob | None = None
    heads: str = ""


class UnpackedLayer(WorkerMessage, frozen=True, tag="layer"):
    """A layer is unpacked. `size` counts the bytes of its files; does its archive describe the root directory?"""

    blob: str
    blob_size: int
    diff_id: str
    size: int
    describes_root: bool


class Blobs(WorkerMessage, frozen=True, tag="blobs"):
    blobs: list[Blob]


class Received(WorkerMessage, frozen=True, tag="received"):
    """The number of files that the directory has now, their bytes, and the number of those bytes that were written.

    While somebody is still `packing` them another answer follows.
    """

    files: int
    size: int
    written: int
    packing: bool = False


class Packed(WorkerMessage, frozen=True, tag="packed"):
    """The tar of what was received is complete, with the digest of its headers (`tar_heads`); or it was given up."""

    blob: Blob | None = None
    heads: str = ""


class Sent(WorkerMessage, frozen=True, tag="sent"):
    """The number of bytes of files that were sent."""

    size: int


class Digests(WorkerMessage, frozen=True, tag="digests"):
    """One for each selection."""

    digests: list[str]


class FileContent(WorkerMessage, frozen=True, tag="content"):
    data: bytes


class FoundFile(WorkerMessage, frozen=True):
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


class Looked(WorkerMessage, frozen=True, tag="looked"):
    entries: list[FoundFile]


class FileStatus(WorkerMessage, frozen=True, tag="status"):
    """The status of what a path of a container names; `link` is where a symbolic link leads in the end."""

    name: str
    size: int
    mode: int
    mtime_ns: int
    link: str


class Missing(WorkerMessage, frozen=True, tag="missing"):
    """There is nothing at a path that the job names."""

    message: str = ""


class Invalid(WorkerMessage, frozen=True, tag="invalid"):
    """A failure for which what was sent is to blame."""

    message: str


class Refused(WorkerMessage, frozen=True, tag="refused"):
    """It is not allowed."""

    message: str


class Failed(WorkerMessage, frozen=True, tag="failed"):
    """The host is to blame, or the worker."""

    message: str


Answer: TypeAlias = (
    Done | UnpackedLayer | Blobs | Digests | FileContent | Looked | Received | Packed | Sent | FileStatus
    | Missing | Invalid | Refused | Failed
)  # fmt: skip
