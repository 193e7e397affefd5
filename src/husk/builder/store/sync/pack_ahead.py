"""The tar of a layer, packed while the files that it is of still come from a client.

A client tells what its files look like before it sends them. So if it is known what the tar begins with (the
directories above, `husk.builder.store.ahead`), a second process of the worker that receives the files can write
headers, and behind each what has come of the file so far, and wait for more. It packs and hashes on one processor while
the files come on the other. Whether it was right is found out when the files are copied
(`husk.builder.store.workers.layer_tar`).

It is done where it is worth it: for much data in files that are not small. Many small files keep all processors busy
while they come.
"""

import contextlib
import io
import os
import stat as modes
import tarfile
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import msgspec

from husk.builder.store.sync import packets
from husk.builder.store.sync.packets import Stat, system_mode
from husk.builder.store.sync.receiver import Receiver
from husk.builder.store.workers.aside import Aside
from husk.builder.store.workers.diff_blob import HashedFile
from husk.builder.store.workers.layer_tar import Heads, foresee
from husk.storage.tar.entry import padding
from husk.storage.tar.members import BUFFER, TarWriter
from husk.storage.workers.answers import Packed
from husk.storage.workers.parts import MARK, AheadPlan
from husk.text.documents import decode

_LEAST_BYTES = 8 << 20
_LEAST_MEAN = 64 << 10
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS = frozenset((modes.S_IFLNK, modes.S_IFIFO))


class PackAhead:
    """The part of the receiving worker in packing ahead: nothing is done without a plan."""

    def __init__(self, plan: AheadPlan | None, least: int = _LEAST_BYTES) -> None:
        """`least` is how many bytes are worth it."""
        self._plan = plan
        self._least = least
        self._file: io.FileIO | None = None
        self._moved = -1
        self._aside: Aside | None = None
        if plan is not None:
            with contextlib.suppress(FileNotFoundError):  # nobody wants it any more
                # Opened while it can still be found.
                self._file = io.FileIO(plan.path, "r+")
                self._moved = os.eventfd(0, os.EFD_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._aside is not None:
            self._aside.__exit__(*error)
        if self._moved >= 0:
            os.close(self._moved)
        self._leave_out()

    def set_time(self, directory: str) -> None:
        """The top directory, of which no client tells, gets the time that the plan says."""
        if self._plan is not None:
            os.utime(directory, ns=(self._plan.time, self._plan.time))

    def follow(self, receiver: Receiver) -> None:
        """Something has come."""
        if self._aside is not None:
            os.eventfd_write(self._moved, 1)
        elif self._file is not None and receiver.told:
            if not _is_worth_it(receiver.told_size, len(receiver.table), self._file, self._least):
                self._leave_out()
            elif os.pread(self._file.fileno(), 1, 0) == MARK:
                file, messages = self._file, receiver.table.messages
                try:
                    self._aside = Aside(lambda: _pack(file, messages, lambda: os.eventfd_read(self._moved)))
                except OSError:  # the host has no process left: it is packed later
                    self._leave_out()

    def is_right(self, receiver: Receiver) -> bool:
        """Tell, when all has come, if it is being packed and is what was told of it."""
        return self._aside is not None and receiver.as_told

    def finish(self) -> Packed:
        """Wait for the whole tar, of all that has come."""
        answer = self._aside.answer() if self._aside is not None else None
        return decode(answer, Packed) if answer else Packed()

    def _leave_out(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _is_worth_it(size: int, files: int, file: io.FileIO, least: int) -> bool:
    """Tell if it is much, and there is room for it twice: for what is packed, and for what still comes."""
    if size < max(least, files * _LEAST_MEAN):
        return False
    disk = os.fstatvfs(file.fileno())
    return disk.f_bavail * disk.f_frsize > 2 * size


def _pack(file: io.FileIO, messages: Sequence[bytes], wait: Callable[[], object]) -> bytes:
    # Who waits for the end of what goes to the client does not wait for this.
    os.close(0)
    os.close(1)
    stats = (packets.read_stat(packets.read_packet(message).stat or b"") for message in messages)
    return msgspec.json.encode(pack(file, stats, wait))


def pack(file: io.FileIO, stats: Iterator[Stat], wait: Callable[[], object]) -> Packed:
    """Write the tar of all files that were told of, in the current directory, and `wait` where one has not come yet.

    It is given up if one of them is not simple.
    """
    lead = file.read()[len(MARK) :]
    file.seek(0)
    file.truncate(0)
    top = top_of(lead)
    if top is None:
        return Packed()
    with HashedFile(file) as out:
        out.write(lead)
        heads = Heads(out)
        members = TarWriter(heads)
        for stat in stats:
            if not _add(members, out, top, stat, wait):
                return Packed()
        return Packed(out.end_tar(), heads.digest())


def top_of(lead: bytes) -> str | None:
    """Return the last directory of a tar's beginning; "" (the top) if that is empty, None if it ends with a file."""
    if not lead:
        return ""
    with tarfile.open(fileobj=io.BytesIO(lead), mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
        last = tar.getmembers()[-1]
    return f"{last.name}/" if last.isdir() else None


def _add(members: TarWriter, out: HashedFile, top: str, stat: Stat, wait: Callable[[], object]) -> bool:
    """Write what a file is; False if it is not simple. Contents go straight to `out`, past those who take headers."""
    mode = system_mode(stat)
    kind = modes.S_IFMT(mode)
    if stat.xattrs or (stat.link and kind != modes.S_IFLNK):
        return False
    look = os.stat_result((mode, 0, 0, 1, stat.uid, stat.gid, stat.size, 0, 0, 0))
    status, name = foresee(look, mtime=stat.mtime), top + os.fsdecode(stat.path)
    if kind == modes.S_IFREG:
        members.add_pieces(name, (), status)
        for piece in _followed(stat.path, stat.size, wait):
            out.write(piece)
        out.write(bytes(padding(stat.size)))
    elif kind == modes.S_IFDIR:
        members.add_directory(name, status)
    elif kind in _OTHERS:
        members.add(name, stat.path, status)
    else:
        return False
    return True


def _followed(path: bytes, size: int, wait: Callable[[], object]) -> Iterator[bytes]:
    """Yield the content of a file that is still being written, up to its size."""
    if not size:
        return
    while (fd := _opened(path)) is None:
        wait()
    try:
        position = 0
        while position < size:
            wanted = min(size - position, BUFFER)
            while os.fstat(fd).st_size < position + wanted:
                wait()
            piece = os.read(fd, wanted)
            position += len(piece)
            yield piece
    finally:
        os.close(fd)


def _opened(path: bytes) -> int | None:
    try:
        return os.open(path, _READ)
    except FileNotFoundError:
        return None
