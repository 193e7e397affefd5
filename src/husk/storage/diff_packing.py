"""A diff as the tar that registries know: made by a worker, which hashes it while it writes."""

from pathlib import Path

import msgspec

from husk.errors import SystemFault
from husk.storage.workers.handle import Worker
from husk.storage.workers.messages import Blob, DiffBlobJob, Failed
from husk.storage.workers.nursery import Nursery


class Packing(msgspec.Struct, frozen=True):
    """The tar of a diff: its digest, which is its diff id and its blob's name, and its size."""

    digest: str
    size: int


async def pack(nursery: Nursery, upper: Path, blob_file: Path, clamp: str) -> Packing:
    """Write what an overlay's upper directory changes into a file; no entry is later than `clamp`, if there is one."""
    worker = await Worker.start(nursery, DiffBlobJob(str(upper), str(blob_file), int(clamp) if clamp else None))
    try:
        outcome = await worker.outcome()
    finally:
        worker.stop()
    match outcome:
        case Blob(digest, size):
            return Packing(digest, size)
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that packs a step's files died: see the daemon's log")
