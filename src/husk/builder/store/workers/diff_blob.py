"""The worker process that makes blobs of a build's diffs: directories in, their tars in files out, and the digests.

The process confines itself to one directory after the other.
"""

import contextlib
import hashlib
import io
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from husk.builder.store.workers.jobs import DiffBlobsJob
from husk.kernel.disk import begin_writing
from husk.storage.tar.entry import BLOCK
from husk.storage.tar.members import BUFFER
from husk.storage.workers.answers import Blobs, Failed
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.diff import write_diff
from husk.storage.workers.parts import Blob

_WRITTEN_AT_ONCE = 8 << 20


def main(job: DiffBlobsJob, caller: Caller) -> None:
    caller.answer(pack(job))


def pack(job: DiffBlobsJob) -> Blobs | Failed:
    """Write the tars of all diffs, as a process that can do nothing else afterwards, and tell how it went."""
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
    with HashedFile(file) as out:
        write_diff(upper, out, latest=latest)
    return "sha256:" + out.hash.hexdigest(), out.size


class HashedFile:
    """A file that is hashed while it is written: by a thread, where there is much of it.

    The kernel is to put it on the disk meanwhile: whoever names the blob in a record waits for that.
    """

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._waiting = bytearray()
        self._thread: ThreadPoolExecutor | None = None
        self._hashing: Future[None] | None = None
        self._begun = 0
        self.hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def write(self, data: bytes, /) -> None:
        if len(data) < BUFFER:
            self._waiting += data
            if len(self._waiting) < BUFFER:
                return
            data = b""
        self._put_waiting()
        self._put(data)

    def flush(self) -> None:
        """All of it is here."""
        self._put_waiting()
        if self._hashing is not None:
            self._hashing.result()

    def follow(self, size: int) -> None:
        """Others have written the next `size` bytes behind what was flushed."""
        end = self.size + size
        begin_writing(self._file.fileno(), self.size, size)
        while self.size < end:
            piece = os.pread(self._file.fileno(), min(BUFFER, end - self.size), self.size)
            if not piece:
                raise OSError("a tar was not written to its end")
            self.hash.update(piece)
            self.size += len(piece)
        self._begun = self._file.seek(self.size)

    @property
    def begun(self) -> bytes | None:
        """All that was written, as long as that is little."""
        return None if self.size else bytes(self._waiting)

    def end_tar(self) -> Blob:
        """The tar that was written is complete."""
        self.write(bytes(2 * BLOCK))
        self.flush()
        return Blob("sha256:" + self.hash.hexdigest(), self.size)

    def _put_waiting(self) -> None:
        piece, self._waiting = self._waiting, bytearray()
        self._put(piece)

    def _put(self, piece: bytes | bytearray) -> None:
        if len(piece) < BUFFER and self._thread is None:
            self.hash.update(piece)
        else:
            self._hash_later(piece)
        with memoryview(piece) as left:
            at = 0
            while at < len(left):
                at += self._file.write(left[at:])
        self.size += len(piece)
        if self.size - self._begun >= _WRITTEN_AT_ONCE:
            begin_writing(self._file.fileno(), self._begun, self.size - self._begun)
            self._begun = self.size

    def _hash_later(self, piece: bytes | bytearray) -> None:
        """Behind what is hashed now; that much and no more waits in memory."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        if self._hashing is not None:
            self._hashing.result()
        self._hashing = self._thread.submit(self.hash.update, piece)
