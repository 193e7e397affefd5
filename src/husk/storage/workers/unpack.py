"""The worker process that takes one layer in: stream in, blob file and directory tree out, never in the daemon.

Standard input is the layer as the registry keeps it (plain tar, gzip, zstd, bzip2, xz: its first bytes tell). One
thread writes the blob file, another reads, hashes and decompresses that, the main thread hashes the archive and makes
the files. The process confines itself to the directory before it looks at any entry.

A layer's stream on its way into a blob file, while others already read that. A thread of the worker `unpack`.
"""

import errno
import hashlib
import os
import threading
from queue import SimpleQueue

from isal import isal_zlib

from husk.kernel.disk import begin_writing
from husk.storage.tar.decompress import Reader, choose_reader
from husk.storage.tar.entry import BLOCK, TarError
from husk.storage.tar.stream import LARGE, TarStream
from husk.storage.workers.answers import Answer, Failed, Invalid, UnpackedLayer
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.extract import Extractor
from husk.storage.workers.jobs import UnpackJob

# So many pieces of at most this size are decompressed before they are needed.
_AHEAD = 4
_PIECE_SIZE = 1 << 20
# How much is copied at once before the limit is looked at again.
_COPY_SIZE = 8 << 20
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


class TooLarge(TarError):
    """The archive is larger than it may be: a few bytes can decompress to any number."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"layer is larger than {limit} bytes when unpacked, which is this daemon's max-layer-size")


class Decompression(threading.Thread):
    """Takes the archive out of its source piece by piece, ahead of the thread that makes the files."""

    def __init__(self, source: BlobIntake, reader: Reader, verify: bool, limit: int = 0) -> None:
        super().__init__(name="decompression", daemon=True)
        self._limit = limit
        self._size = 0
        self._source = source
        self._reader = reader
        self._verify = verify
        # Where blob and archive are the same bytes they have one digest, and it is the source that knows it.
        self._hash = None if reader is source else hashlib.sha256()
        self._room = threading.Semaphore(_AHEAD)
        self._pieces: SimpleQueue[bytes | Exception] = SimpleQueue()
        self._abandoned = False

    @property
    def diff_id(self) -> str:
        return self._source.digest if self._hash is None else "sha256:" + self._hash.hexdigest()

    def next_buffer(self) -> memoryview:
        """The next piece of the archive, empty at the end."""
        item = self._pieces.get()
        if isinstance(item, Exception):
            raise item
        self._room.release()
        self._size += len(item)
        # The archive and not its files: a million empty files or a tail of zeros are bombs as well.
        if self._limit and self._size > self._limit:
            raise TooLarge(self._limit)
        # Here and not in `run`, where the blob is hashed and decompressed: each has about half of the work.
        if self._hash is not None:
            self._hash.update(item)
        return memoryview(item)

    def abandon(self) -> None:
        """Nobody wants the files any more; read on only to know the digest."""
        self._abandoned = True
        self._room.release()
        self.join()

    def run(self) -> None:
        try:
            while not self._abandoned:
                self._room.acquire()
                piece = self._reader.read1(_PIECE_SIZE)
                self._pieces.put(piece)
                if not piece:
                    break
        except Exception as error:
            self._drain()
            self._pieces.put(error)
        else:
            if self._abandoned:
                self._drain()

    def _drain(self) -> None:
        """A damaged stream is reported as a wrong digest, if it has one; that needs the rest of it."""
        if self._verify:
            try:
                self._source.drain()
            except OSError as error:
                self._pieces.put(error)


class PlainStream(TarStream):
    """An archive that is not compressed: its large files are copied out of the blob file, which has them already."""

    def __init__(self, source: BlobIntake, decompression: Decompression) -> None:
        super().__init__(decompression.next_buffer)
        self._source = source
        self._before = 0

    def write_to(self, fd: int, count: int) -> None:
        while count >= LARGE:
            step = min(count, _COPY_SIZE)
            position = self._before + self._at
            copied = self._source.copy_to(fd, position, step)
            # The same bytes come through the buffers as well, where they are hashed and counted.
            self.skip(copied)
            count -= copied
            if copied < step:
                break
        super().write_to(fd, count)

    def _refill(self) -> bool:
        self._before += self._end
        return super()._refill()


class LayerExtractor(Extractor):
    """Refuses files whose holes alone pass the limit; all else the archive's own size has shown before."""

    def __init__(self, stream: TarStream, limit: int) -> None:
        super().__init__(stream)
        self._limit = limit

    def _fill_sparse(self, fd: int, pieces: list[tuple[int, int]], size: int) -> None:
        if self._limit and self.size + size > self._limit:
            raise TooLarge(self._limit)
        super()._fill_sparse(fd, pieces, size)


def main(job: UnpackJob, caller: Caller) -> None:
    caller.answer(unpack(0, job))


def unpack(fd: int, job: UnpackJob) -> Answer:
    """Unpack the layer that comes out of `fd`, and tell how it went."""
    expected, limit = job.digest, job.limit
    try:
        source = BlobIntake(fd, os.open(job.blob, os.O_RDWR | os.O_CLOEXEC))
        reader = choose_reader(source)
        enter(job.directory)
    except OSError as error:
        return Failed(str(error))
    decompression = Decompression(source, reader, bool(expected), limit)
    stream = PlainStream(source, decompression) if reader is source else TarStream(decompression.next_buffer)
    extractor = LayerExtractor(stream, limit)
    source.start()
    decompression.start()
    failure: Exception | None = None
    try:
        extractor.run()
        stream.drain()
    except Exception as error:
        failure = error
        if isinstance(error, TooLarge):
            return describe(error)
        if is_fault_of_host(error):
            return Failed(f"unpacking failed: {error}")
        if expected:
            decompression.abandon()
    if failure is not None and not expected:
        return describe(failure)
    try:
        digest = source.digest
    except OSError as error:
        return Failed(f"unpacking failed: {error}")
    if expected and digest != expected:
        return Invalid(f"filesystem layer verification failed for digest {expected}")
    if failure is not None:
        return describe(failure)
    return UnpackedLayer(digest, source.size, decompression.diff_id, extractor.size, extractor.has_root)


def is_fault_of_host(failure: Exception) -> bool:
    # gzip's complaint about bad data is an OSError too, without a number.
    return isinstance(failure, OSError) and failure.errno is not None


def describe(failure: Exception) -> Invalid | Failed:
    if isinstance(failure, EOFError):
        return Invalid("unexpected EOF")
    if isinstance(failure, TarError):
        return Invalid(str(failure))
    if isinstance(failure, isal_zlib.IsalError | OSError) or type(failure).__name__ in ("ZstdError", "LZMAError"):
        return Invalid(f"damaged layer: {failure}")
    return Failed(f"unpacking failed: {failure!r}")
