"""A local archive that a build adds is unpacked where it is added to, as `docker cp` would put it there."""

import contextlib
import mmap
import os
import stat
from collections.abc import Iterator

from husk.builder.store.space import room_left
from husk.builder.store.workers.rooted_tree import ActionFailed, Owner, RootedTree
from husk.kernel import jail
from husk.storage.tar.decompress import Reader, choose_reader
from husk.storage.tar.entry import BLOCK
from husk.storage.tar.header import is_tar
from husk.storage.tar.stream import TarStream
from husk.storage.workers.answers import Answer, Done, Failed, Invalid
from husk.storage.workers.caller import Caller
from husk.storage.workers.messages import decode_answer
from husk.storage.workers.put import Input, Pipe, Placer
from husk.storage.workers.unpack import describe, is_fault_of_host

_BUFFER_SIZE = 1 << 20


def is_archive(tree: RootedTree, resolved: str) -> bool:
    """Tell if this is a regular file whose first block, decompressed if need be, is the header of a tar."""
    status = tree.status(resolved)
    if status is None or not stat.S_ISREG(status.st_mode):
        return False
    with _opened(tree, resolved) as reader, contextlib.suppress(Exception):
        block = bytearray(BLOCK)
        with memoryview(block) as view:
            at = 0
            while at < BLOCK and (count := reader.readinto(view[at:])):
                at += count
        return any(block) and is_tar(bytes(block))
    return False


def unpack(source: RootedTree, resolved: str, target: RootedTree, directory: str, owner: Owner | None) -> None:
    """Unpack an archive into a directory, whose files are all that its links can lead to.

    It brings no more than the disk can spare, and ends with the worker: nobody else knows of the process.
    """
    read_end, write_end = os.pipe()
    ours = os.pidfd_open(os.getpid())
    child = os.fork()
    if child == 0:
        try:
            jail.end_with(ours)
            os.close(read_end)
            Caller(write_end).answer(_unpack(source, resolved, target, directory, owner))
        finally:
            os._exit(0)
    os.close(write_end)
    os.close(ours)
    with open(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    match decode_answer(answer) if answer else None:
        case Done():
            return
        case Invalid(message):
            raise ActionFailed(message)
        case Failed(message):
            raise OSError(message)
        case _:
            raise OSError("the process that unpacks an archive died")


def _unpack(source: RootedTree, resolved: str, target: RootedTree, directory: str, owner: Owner | None) -> Answer:
    with _opened(source, resolved) as reader:
        with target.directory(directory) as fd:
            room = room_left(fd)
            os.fchdir(fd)
            os.chroot(".")
        buffer = memoryview(mmap.mmap(-1, _BUFFER_SIZE))

        def next_buffer() -> memoryview:
            return buffer[: reader.readinto(buffer)]

        stream = TarStream(next_buffer)
        try:
            Placer(stream, "/", False, owner, room).run()
            stream.drain()
        except Exception as error:
            return Failed(str(error)) if is_fault_of_host(error) else describe(error)
    return Done()


@contextlib.contextmanager
def _opened(tree: RootedTree, resolved: str) -> Iterator[Reader]:
    fd = os.open(resolved, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=tree.fd)
    try:
        yield choose_reader(Input(Pipe(fd)))
    finally:
        os.close(fd)
