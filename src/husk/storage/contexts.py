"""Contexts of builds that come as archives, and the files in them that the builder reads itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from husk.errors import InvalidParameter, NotImplementedYet, SystemFault
from husk.kernel.rooted import read_file
from husk.storage.diffs import DiffStore
from husk.storage.workers.handle import Worker, WorkerDied
from husk.storage.workers.messages import Answer, Done, Failed, Invalid, PutJob, Refused
from husk.storage.workers.nursery import Nursery


class Contexts:
    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def unpack(self, chunks: AsyncIterator[bytes]) -> str:
        """Make a stack of an archive, plain or compressed, as it comes. All files in it belong to root."""
        async with self._diffs.workspace("") as space:
            job = PutJob(root=str(space.upper), binds=[], path="/", owner=(0, 0))
            worker = await Worker.start(self._nursery, job)
            try:
                with contextlib.suppress(WorkerDied):  # its line says why
                    async for chunk in chunks:
                        await worker.write(chunk)
                _check(await worker.outcome())
            finally:
                worker.stop()
            return await space.keep()

    async def read(self, stack: str, path: str, most: int) -> bytes | None:
        """The beginning of a file, at most so many bytes; None if there is none."""
        lower = self._diffs.lower(stack)
        if len(lower) > 1:
            raise NotImplementedYet("reading files of a build's own results is not implemented by Husk yet")
        async with self._diffs.held(stack):
            return await asyncio.to_thread(read_file, lower[0], path, most)


def _check(outcome: Answer | None) -> None:
    match outcome:
        case Done():
            return
        case Invalid(message) | Refused(message):
            raise InvalidParameter(f"Error processing tar file: {message}")
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that unpacks a context died: see the daemon's log")
