"""The worker process for the context of a build that comes in as an archive: a tar in, files in a directory out.

All files are root's, as they are in a context that a client syncs. The process confines itself to the directory.
"""

import mmap

from husk.builder.store.space import HOLDS_ITSELF, doubled
from husk.builder.store.workers.jobs import ContextJob
from husk.storage.tar.decompress import choose_reader
from husk.storage.tar.entry import BLOCK_DEVICE, CHARACTER, DIRECTORY, TarEntry, TarError
from husk.storage.tar.stream import TarStream
from husk.storage.workers.answers import Answer, Done, Failed
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.put import Input, Pipe, Placer
from husk.storage.workers.unpack import describe, is_fault_of_host

_BUFFER_SIZE = 1 << 20
_ROOT = (0, 0)


class ContextPlacer(Placer):
    """`never` are directories that it only has if it holds itself (`own_place`)."""

    called = "context"

    def __init__(self, stream: TarStream, limit: int, never: frozenset[bytes]) -> None:
        super().__init__(stream, "/", False, _ROOT, limit)
        self._never = never

    def _apply(self, entry: TarEntry, path: bytes) -> None:
        if entry.kind in (CHARACTER, BLOCK_DEVICE):
            shown = path.decode("utf-8", "backslashreplace")
            raise TarError(f"{shown} is a device, which the context of a build cannot have")
        if entry.kind == DIRECTORY and self._whole(path) in self._never:
            raise TarError(HOLDS_ITSELF)
        super()._apply(entry, path)


def main(job: ContextJob, caller: Caller) -> None:
    caller.answer(unpack(job, 0))


def unpack(job: ContextJob, fd: int) -> Answer:
    """Unpack the archive into the job's directory, and tell how it went."""
    try:
        reader = choose_reader(Input(Pipe(fd)))
        enter(job.directory)
        buffer = memoryview(mmap.mmap(-1, _BUFFER_SIZE))
        stream = TarStream(lambda: buffer[: reader.readinto(buffer)])
        ContextPlacer(stream, job.limit, doubled(job.directory)).run()
        stream.drain()
    except Exception as error:
        return Failed(str(error)) if is_fault_of_host(error) else describe(error)
    return Done()
