"""A sync of little, which the daemon does itself: a worker takes longer to start than such a sync to be done.

Little is: a few small plain files for an empty directory, as a Dockerfile and the list of what is ignored are; or a
directory of few files that has not changed at all. Which it is, is known when the client has told of all its files,
and until then nothing is said to the client. So whatever turns out to be more goes to a worker, from the first byte.

No path that a client tells of has a directory in it here: what is made is in the one directory, which was empty.
"""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from husk.builder.store.sync import packets
from husk.builder.store.sync.exchange import Progress, SyncChannel, wait_for_goodbye
from husk.builder.store.sync.packets import HEAD_SIZE, STAT, Stat, SyncError, permissions
from husk.builder.store.sync.receiver import Receiver
from husk.builder.store.sync_table import SyncTable, content_hash, read_table, write_table
from husk.builder.store.workers.jobs import ReceiveJob
from husk.errors import HuskError, InvalidParameter, SystemFault
from husk.storage.workers.answers import Received

_MOST_TOLD = 64 << 10
_MOST_FILES = 16
_MOST_BYTES = 256 << 10
# A file may grow between being told of and being read.
_MOST_DATA = 4 << 20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


async def receive_small(job: ReceiveJob, channel: SyncChannel, progress: Progress) -> Received | bytes:
    """Receive a sync that is a small one. Of any other nothing is done: the bytes that have come are for a worker."""
    known = None
    if job.old and (known := await asyncio.to_thread(_small_table, job.old)) is None:
        return b""
    told = b""
    while (small := is_small(told, None if known is None else known.messages)) is None:
        if not (data := await channel.receive()):
            return told
        told += data
        progress(len(told))
    if not small:
        return told
    receiver = Receiver(tree := SmallTree(), SyncTable() if known is None else known)
    try:
        await _follow(receiver, tree, job, channel, told, progress)
    except SyncError as error:
        with contextlib.suppress(HuskError):
            await channel.send(packets.error(str(error)))
            await channel.end()
        raise InvalidParameter(str(error)) from None
    return Received(len(receiver.table), receiver.table.size, tree.written)


def is_small(told: bytes, known: Sequence[bytes] | None) -> bool | None:
    """Tell if all that a client has told is a small sync. None as long as it has not told of all its files.

    `known` are the messages of the last sync, if there was one: then nothing may have changed.
    """
    position, number, size = 0, 0, 0
    try:
        while len(told) - position >= HEAD_SIZE:
            start = position + HEAD_SIZE
            position = start + packets.read_head(told, position)
            if position > len(told):
                break
            message = told[start:position]
            packet = packets.read_packet(message)
            if packet.kind != STAT:
                return False
            if packet.stat is None:
                return known is None or number == len(known)
            if known is not None:
                if number >= len(known) or message != known[number]:
                    return False
            elif not _is_simple(stat := packets.read_stat(packet.stat)) or (size := size + stat.size) > _MOST_BYTES:
                return False
            number += 1
            if known is None and number > _MOST_FILES:
                return False
    except SyncError:
        return False
    return None if len(told) <= _MOST_TOLD else False


def _is_simple(stat: Stat) -> bool:
    return not (stat.mode & packets.MODE_KIND or stat.link or stat.xattrs or b"/" in stat.path or stat.size < 0)


class SmallTree:
    """See `receiver.Tree`: files in memory, and what is told only where nothing is small is never asked for."""

    def __init__(self) -> None:
        self._awaited: dict[int, tuple[Stat, bytearray]] = {}
        self._digests: dict[int, bytes] = {}
        self.files: list[tuple[Stat, bytes]] = []
        self.written = 0

    def is_directory(self, path: bytes) -> bool:
        return not path

    def remove(self, paths: list[bytes]) -> None:
        if paths:
            raise SyncError("a file was told of that is not there any more")

    def directory(self, stat: Stat, new: bool) -> None:
        raise SyncError("a directory was told of behind the end")

    def special(self, stat: Stat) -> None:
        raise SyncError("a special file was told of behind the end")

    def expect(self, number: int, stat: Stat) -> None:
        self._awaited[number] = stat, bytearray()

    def data(self, number: int, data: memoryview) -> int | None:
        stat, content = self._awaited[number]
        content += data
        if len(data):
            self.written += len(data)
            if self.written > _MOST_DATA:
                raise SyncError(f"{os.fsdecode(stat.path)!r} grows while it is sent")
            return None
        del self._awaited[number]
        self.files.append((stat, whole := bytes(content)))
        self._digests[number] = content_hash(whole).digest()
        return len(whole)

    def digest(self, number: int) -> bytes:
        return self._digests.pop(number)

    def finish(self, links: list[Stat]) -> None:
        """There are none."""


async def _follow(
    receiver: Receiver, tree: SmallTree, job: ReceiveJob, channel: SyncChannel, told: bytes, progress: Progress
) -> None:
    """Speak with the client until it has said its last."""
    data, total = told, len(told)
    while data:
        receiver.feed(data)
        if receiver.complete:
            receiver.finish()
            await asyncio.to_thread(_keep, receiver.table, tree.files, job)
        if receiver.output:
            await channel.send(bytes(receiver.output))
            receiver.output.clear()
        if receiver.ended:
            break
        data = await channel.receive()
        total += len(data)
        progress(total)
    receiver.close()
    await channel.end()
    await wait_for_goodbye(channel)


def _keep(table: SyncTable, files: Sequence[tuple[Stat, bytes]], job: ReceiveJob) -> None:
    """Write the files, and the table of what there is now."""
    try:
        for stat, content in files:
            _write(os.fsencode(job.root) + b"/" + stat.path, stat, content)
        if job.old:
            os.rename(job.old, job.new)
            return
        with open(job.new, "xb", opener=_private) as new:
            write_table(table, new)
    except OSError as error:
        raise SystemFault(f"{(error.strerror or str(error)).lower()}: {error.filename or job.root}") from error


def _write(path: bytes, stat: Stat, content: bytes) -> None:
    descriptor = os.open(path, _CREATE, 0o600)
    try:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.fchown(descriptor, stat.uid, stat.gid)
        os.fchmod(descriptor, permissions(stat.mode))
        os.utime(descriptor, ns=(stat.mtime, stat.mtime))
    finally:
        os.close(descriptor)


def _small_table(path: str) -> SyncTable | None:
    """The table of the last sync, if it is of few files."""
    try:
        if Path(path).stat().st_size > 2 * _MOST_TOLD:
            return None
        with open(path, "rb") as file:
            return read_table(file)
    except OSError:
        return None  # whoever tries it again tells why


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
