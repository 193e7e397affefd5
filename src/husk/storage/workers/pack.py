"""The worker process that brings files out of a container: what a path names, as a tar, from the container's own view.

It first tells what the path names, or that it is missing, and after the archive that this is whole. Standard output is
a pipe, or a client's socket: then the archive is sent as the body of an answer, and only when a byte on standard input
says that the answer's head is sent.

Sending of the body of an HTTP answer by a worker: in chunks, into the client's own socket, past the daemon.

The daemon has sent the answer's head and sends its end; all between them is the worker's. Large files do not pass
through the worker either: the kernel hands their pages to the socket. Through the daemon `docker cp` of 200 MB out of a
container takes 1.8 to 2.3 times as long (`bench.copies`, docs/performance.md).
"""

import contextlib
import errno
import os
import select
import signal
import stat
from collections.abc import Iterator

from husk.kernel.trees import inside, walk
from husk.storage.tar.members import BUFFER, TarWriter, pipe_to, tar_to
from husk.storage.workers.answers import Done, Failed, FileStatus, Missing
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import confine
from husk.storage.workers.jobs import PackJob

# What dockerd's archives carry: more would be somebody's labels that mean nothing elsewhere.
XATTRS = frozenset({"security.capability"})
_BUFFER = 1 << 20
# A client may keep the size of a chunk in 32 bits.
_LARGEST_CHUNK = 1 << 30
_CANNOT_HAND_OVER = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def main(job: PackJob, caller: Caller) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        confine(job.root, job.binds, job.memory)
        if job.path:
            status = describe(job.path)
            caller.answer(status)
            if job.only_status:
                return
            top, prefix = source(job.path, stat.S_ISDIR(status.mode))
        else:
            top, prefix = "/", None
    except FileNotFoundError:
        caller.answer(Missing())
        return
    except OSError as error:
        caller.answer(Failed(f"{(error.strerror or str(error)).lower()}: {error.filename or job.path}"))
        return
    with _archive(job.as_answer) as members:
        add_all(members, top, prefix)
    caller.answer(Done())


@contextlib.contextmanager
def _archive(as_answer: bool) -> Iterator[TarWriter]:
    if as_answer:
        if not os.read(0, 1):
            raise SystemExit  # nobody wants it any more
        outlet = Outlet(1)
        with tar_to(outlet, XATTRS, outlet.hand_over) as members:
            yield members
    else:
        with open(1, "wb", buffering=BUFFER, closefd=False) as out, tar_to(out, XATTRS, pipe_to(1)) as members:
            yield members


def describe(path: str) -> FileStatus:
    """The status of `path` itself; a trailing slash or dot asks for what a link leads to."""
    status = os.lstat(path)
    link = ""
    if stat.S_ISLNK(status.st_mode):
        # One that leads nowhere can still be told where; one that leads in circles is an error.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)
        link = os.path.realpath(path)
    return FileStatus(
        name=base_name(path), size=status.st_size, mode=status.st_mode, mtime_ns=status.st_mtime_ns, link=link
    )


def base_name(path: str) -> str:
    """The last element as Go has it: `/` for the root, `.` where the path ends so."""
    return path.rstrip("/").rpartition("/")[2] or "/"


def source(path: str, directory: bool) -> tuple[str, str]:
    """(what to walk, its name in the archive): `/a/b` is `b`, `/a/b/.` is `.`, the root is nothing before a slash."""
    name = base_name(path)
    return path if directory else path.rstrip("/"), "" if name == "/" else name


def add_all(members: TarWriter, top: str, prefix: str | None) -> None:
    """Add `top` and all below it to an archive; without a prefix `top` itself is left out."""
    try:
        # Only the top may be meant through a link: `dir/` or `dir/.`
        status = os.lstat(top)
    except (FileNotFoundError, NotADirectoryError):
        return
    if prefix is not None:
        members.add(prefix, os.fsencode(top), status)
    if not stat.S_ISDIR(status.st_mode):
        return
    head = "" if prefix is None else f"{prefix}/"
    with contextlib.ExitStack() as stack:
        try:
            directory = stack.enter_context(inside(top))
        except (FileNotFoundError, NotADirectoryError):
            return  # gone since: its container is being removed, or tidies up
        for found in walk(directory, os.fchdir):
            members.add(head + found.path, os.fsencode(found.name), found.status)


class Outlet:
    """A body on its way to a socket, which may be one that does not block."""

    def __init__(self, socket: int) -> None:
        self._socket = socket
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(socket, select.POLLOUT)

    def write(self, data: bytes, /) -> None:
        self._buffer += data
        if len(self._buffer) >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            self._send(b"%x\r\n%b\r\n" % (len(self._buffer), bytes(self._buffer)))
            self._buffer.clear()

    def hand_over(self, file: int, size: int) -> int:
        """Send the next `size` bytes of a file; what it lacks, for somebody has truncated it, is zeros."""
        left = size
        while left:
            chunk = min(left, _LARGEST_CHUNK)
            self._send(b"%x\r\n" % chunk)
            self._send_file(file, chunk)
            self._send(b"\r\n")
            left -= chunk
        return size

    def _send_file(self, file: int, left: int) -> None:
        try:
            while left and (sent := self._pass_pages(file, left)):
                left -= sent
        except OSError as error:
            if error.errno not in _CANNOT_HAND_OVER:
                raise
        while left:
            data = os.read(file, min(left, _BUFFER)) or bytes(min(left, _BUFFER))
            self._send(data)
            left -= len(data)

    def _pass_pages(self, file: int, count: int) -> int:
        while True:
            try:
                return os.sendfile(self._socket, file, None, count)
            except BlockingIOError:
                self._poll.poll()

    def _send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._socket, left) :]
            except BlockingIOError:
                self._poll.poll()
