"""Lists of the files that the results of builds have."""

import json

from msgspec import Struct

from husk.builder.store.diffs import DiffStore
from husk.builder.store.workers.dialogue import Dialogue
from husk.builder.store.workers.jobs import ListJob
from husk.errors import SystemFault
from husk.storage.workers.answers import Done, Failed, Invalid
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Stack


class ListedFile(Struct, frozen=True):
    """Something that is no directory; only a regular file has a digest."""

    path: str
    digest: str = ""


class StackLists:
    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def files(self, stack: str, *, digests: bool = False) -> list[ListedFile]:
        """All that are no directories, in the order of their paths."""
        directories = self._diffs.directories
        async with self._diffs.held(stack):
            lower = Stack(self._diffs.lower(stack))
            job = ListJob(str(directories.view), str(directories.empty), lower, digests)
            worker = await Dialogue.start(self._nursery, job)
            data = bytearray()
            try:
                worker.end_input()
                while piece := await worker.read():
                    data += piece
                outcome = await worker.outcome()
            finally:
                worker.stop()
        match outcome:
            case Done():
                return [ListedFile(*json.loads(line)) for line in data.splitlines()]
            case Failed(message) | Invalid(message):
                raise SystemFault(message)
            case _:
                raise SystemFault("the worker that lists a build's files died: see the daemon's log")
