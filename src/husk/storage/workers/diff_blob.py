"""How does a build's diff become a blob? The worker process: a directory in, its tar in a file out, and its digest.

The process confines itself to the directory.
"""

import hashlib
import io
from pathlib import Path

from husk.storage.tar.members import BUFFER
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.diff import write_diff
from husk.storage.workers.messages import Blob, DiffBlobJob, Failed


def main(job: DiffBlobJob, caller: Caller) -> None:
    caller.answer(pack(job))


def pack(job: DiffBlobJob) -> Blob | Failed:
    """Do the work, as a process that can do nothing else afterwards, and tell how it went."""
    try:
        with open(job.blob, "r+b", buffering=0) as file:
            enter(job.upper)
            return Blob(*write_blob(Path("/"), file, job.latest))
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
