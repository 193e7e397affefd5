"""The way in of a layer: in pieces, through a worker that unpacks it; `LayerStore.ingest` makes such a way in."""

from pathlib import Path
from typing import NoReturn

import msgspec

from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.answers import Answer, Failed, Invalid, UnpackedLayer
from husk.storage.workers.handle import Worker, WorkerDied


class Unpacked(msgspec.Struct, frozen=True):
    """A layer that is complete on disk and not yet part of any chain; commit or discard it."""

    blob: str
    blob_size: int
    diff_id: str
    size: int
    media_type: str
    staging: str
    blob_file: Path
    describes_root: bool


class Ingest:
    """A layer on its way in; `LayerStore.ingest` makes it."""

    def __init__(self, worker: Worker, media_type: str, staging: str, blob_file: Path) -> None:
        self._worker = worker
        self._media_type = media_type
        self.staging = staging
        self.blob_file = blob_file
        self.finished = False

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Hand over the next piece, in the form in which the registry or the archive has it."""
        try:
            await self._worker.write(chunk)
        except WorkerDied:
            _fail(await self._worker.outcome())

    async def finish(self) -> Unpacked:
        """Say that this was all; returns when the layer is unpacked and verified."""
        outcome = await self._worker.outcome()
        if not isinstance(outcome, UnpackedLayer):
            _fail(outcome)
        self.finished = True
        return Unpacked(
            blob=outcome.blob,
            blob_size=outcome.blob_size,
            diff_id=outcome.diff_id,
            size=outcome.size,
            media_type=self._media_type,
            staging=self.staging,
            blob_file=self.blob_file,
            describes_root=outcome.describes_root,
        )

    def stop(self) -> None:
        self._worker.stop()


def _fail(outcome: Answer | None) -> NoReturn:
    if isinstance(outcome, Invalid):
        raise InvalidParameter(outcome.message)
    if isinstance(outcome, Failed):
        raise SystemFault(outcome.message)
    raise SystemFault("the worker that unpacks layers died: see the daemon's log")
