"""Results of builds as tars for clients: `docker build --output type=tar`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack

from husk.builder.store.diffs import DiffStore
from husk.builder.store.workers.dialogue import Dialogue
from husk.builder.store.workers.jobs import StackTarJob
from husk.errors import SystemFault
from husk.storage.workers.answers import Done, Failed, Invalid
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Stack


class StackArchives:
    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def read(self, stacks: Mapping[str, str], latest: int | None = None) -> AsyncGenerator[bytes, None]:
        """A tar with the files of stacks, each in a directory of its name; those of the name "" in none.

        No entry has a time after `latest` (seconds). Iterate inside `aclosing`.
        """
        directories = self._diffs.directories
        async with AsyncExitStack() as holding:
            for stack in stacks.values():
                await holding.enter_async_context(self._diffs.held(stack))
            shown = {name: Stack(self._diffs.lower(stack)) for name, stack in stacks.items()}
            job = StackTarJob(str(directories.view), str(directories.empty), shown, latest)
            worker = await Dialogue.start(self._nursery, job)
            try:
                worker.end_input()
                while piece := await worker.read():
                    yield piece
                outcome = await worker.outcome()
            finally:
                worker.stop()
        match outcome:
            case Done():
                return
            case Failed(message) | Invalid(message):
                raise SystemFault(message)
            case _:
                raise SystemFault("the worker that packs a build's files died: see the daemon's log")
