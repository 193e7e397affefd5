"""Packs the little that a small step of a build has changed, without a worker, which takes longer to begin.

A step has ended when its files become a diff: nobody is there any more who could put a link into the way. All the same
nothing is followed (`walk`, `Members`), and it is done only where there is little to read.
"""

import asyncio
import hashlib
import io
import os
import stat
import threading
from pathlib import Path

from husk.aio.thread_pool import ThreadPool
from husk.kernel.thread_files import use_own
from husk.kernel.trees import walk
from husk.storage.blobs import BlobStore
from husk.storage.workers.diff import write_diff
from husk.storage.workers.parts import Blob

_LARGEST = 1 << 16
_MOST_ENTRIES = 100


class SmallDiffs:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        # Each has a working directory for itself, as the walk wants it.
        self._threads = ThreadPool(2, "small diffs")
        self._own = threading.local()

    async def pack(self, upper: Path) -> tuple[int, Blob] | None:
        """The bytes of an upper directory's files, and the blob of its tar; None if that is not small."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._pack, upper)

    def close(self) -> None:
        self._threads.shutdown()

    def _pack(self, upper: Path) -> tuple[int, Blob] | None:
        try:
            if not hasattr(self._own, "directory"):
                use_own()
                self._own.directory = True
            size = small_size(upper)
            if size is None:
                return None
            out = io.BytesIO()
            write_diff(upper, out)
            return size, self._put(out.getvalue())
        except OSError:
            return None  # a worker has the words for what is wrong

    def _put(self, data: bytes) -> Blob:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        temporary = self._blobs.make_temporary()
        try:
            temporary.write_bytes(data)
            self._blobs.adopt(temporary, digest)
        finally:
            temporary.unlink(missing_ok=True)
        return Blob(digest, len(data))


def small_size(upper: Path) -> int | None:
    """The bytes of its files, if they are few and small; a file with several names counts once."""
    found: dict[int, int] = {}
    fd = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for number, entry in enumerate(walk(fd)):
            if number >= _MOST_ENTRIES:
                return None
            if stat.S_ISREG(entry.status.st_mode):
                found[entry.status.st_ino] = entry.status.st_size
    finally:
        os.close(fd)
    size = sum(found.values())
    return size if size <= _LARGEST else None
