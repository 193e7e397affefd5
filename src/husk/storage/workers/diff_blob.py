"""How do a build's diffs become blobs? The worker process: directories in, their tars in files out, and the digests.

The process confines itself to one directory after the other.
"""

import contextlib
import hashlib
import io
import os
from pathlib import Path

from husk.storage.tar.members import BUFFER
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.diff import write_diff
from husk.storage.workers.messages import Blob, Blobs, DiffBlobsJob, Failed


def main(job: DiffBlobsJob, caller: Caller) -> None:
    caller.answer(pack(job))


def pack(job: DiffBlobsJob) -> Blobs | Failed:
    """Do the work, as a process that can do nothing else afterwards, and tell how it went."""
    try:
        with contextlib.ExitStack() as stack:
            # All of it is opened while it can still be found.
            files = [stack.enter_context(open(diff.blob, "r+b", buffering=0)) for diff in job.diffs]
            uppers = [os.open(diff.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for diff in job.diffs]
            blobs = []
            for upper, file in zip(uppers, files, strict=True):
                os.fchdir(upper)
                enter(".")
                blobs.append(Blob(*write_blob(Path("/"), file, job.latest)))
            return Blobs(blobs)
    except OSError as error:
        return Failed(f"packing failed: {error}")


def write_blob(upper: Path, file: io.FileIO, latest: int | None) -> tuple[str, int]:
    """Write the tar of what `upper` changes; its digest and size."""
    out = _HashedFile(file)
    write_diff(upper, out, latest=latest)
    return "sha256:" + out.hash.hexdigest(), out.size


class _HashedFile:
    """A file that is hashed while it is written."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._waiting = bytearray()
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> None:
        self._waiting += data
        if len(self._waiting) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        self.hash.update(self._waiting)
        self.size += len(self._waiting)
        with memoryview(self._waiting) as left:
            at = 0
            while at < len(left):
                at += self._file.write(left[at:])
        self._waiting.clear()
