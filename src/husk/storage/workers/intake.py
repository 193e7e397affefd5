"""A layer's stream on its way into a blob file, while others already read that. A thread of the worker `unpack`."""

import errno
import hashlib
import os
import threading

from husk.kernel.disk import begin_writing
from husk.storage.tar.entry import BLOCK

BUFFER_SIZE = 1 << 20
# Whoever waits for the blob to be on the disk finds most of it there: it is written while the rest arrives.
_WRITE_BEHIND = 4 << 20


class BlobIntake(threading.Thread):
    """Standard input on its way into the blob file, and out of it to the decompressor, which may be far behind.

    Whoever sends (a registry, an archive with more layers behind this one) waits for the disk at most, never for files
    to be made; the blob file is the buffer between the two. What is read is hashed by whoever reads it, for then it is
    in the processor's cache.
    """

    def __init__(self, fd: int, blob: int) -> None:
        super().__init__(name="source", daemon=True)
        self._fd = fd
        self._blob = blob
        self._hash = hashlib.sha256()
        self._position = 0
        self._changed = threading.Condition()
        self._ended = False
        self._error: OSError | None = None
        self.size = 0
        self._begun = 0
        self.head = b""
        while len(self.head) < BLOCK and (more := os.read(fd, BLOCK - len(self.head))):
            self.head += more

    @property
    def digest(self) -> str:
        """Of all that came; known when the input has ended. Nobody else may read meanwhile."""
        self.drain()
        return "sha256:" + self._hash.hexdigest()

    def run(self) -> None:
        try:
            self._take(memoryview(self.head))
            self._hand_over()
            buffer = memoryview(bytearray(BUFFER_SIZE))
            while count := os.readv(self._fd, [buffer]):
                self._take(buffer[:count])
        except OSError as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, data: memoryview) -> None:
        written = 0
        while written < len(data):
            written += os.write(self._blob, data[written:])
        self._grow(len(data))

    def _hand_over(self) -> None:
        """Let the kernel move what comes into the blob file; nobody needs to see it on the way."""
        try:
            while count := os.splice(self._fd, self._blob, BUFFER_SIZE):
                self._grow(count)
        except OSError as error:
            # The input is no pipe, or the file system cannot do it.
            if error.errno != errno.EINVAL:
                raise

    def _grow(self, count: int) -> None:
        with self._changed:
            self.size += count
            self._changed.notify_all()
        if self.size - self._begun >= _WRITE_BEHIND:
            begin_writing(self._blob, self._begun, self.size - self._begun)
            self._begun = self.size

    def copy_to(self, fd: int, offset: int, count: int) -> int:
        """Copy what came at `offset`, once it has come, into a file; less than `count` where that is not possible."""
        copied = 0
        while copied < count:
            with self._changed:
                while self.size <= offset + copied and not self._ended:
                    self._changed.wait()
                available = min(count - copied, self.size - offset - copied)
            try:
                if available <= 0 or not (step := os.copy_file_range(self._blob, fd, available, offset + copied)):
                    break
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
                break
            copied += step
        return copied

    def readinto(self, buffer: memoryview, /) -> int:
        """The next bytes that have come; none at the end."""
        available = self._available(len(buffer))
        count = os.preadv(self._blob, [buffer[:available]], self._position) if available else 0
        self._position += count
        self._hash.update(buffer[:count])
        return count

    def read(self, size: int, /) -> bytes:
        """As `readinto`, in memory of its own."""
        piece = os.pread(self._blob, self._available(size), self._position)
        self._position += len(piece)
        self._hash.update(piece)
        return piece

    read1 = read

    def drain(self) -> None:
        """Wait for the end of the input, and hash what nobody has read."""
        buffer = memoryview(bytearray(BUFFER_SIZE))
        while self.readinto(buffer):
            pass
        self.join()

    def _available(self, most: int) -> int:
        """Return the number of bytes to read now, at most so many; waits for the first one, 0 at the end."""
        with self._changed:
            while self.size <= self._position and not self._ended:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            return min(most, self.size - self._position)
