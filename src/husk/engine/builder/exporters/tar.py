"""The exporter `tar`: the files of a result go to the client as one archive."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Protocol

from husk.engine.builder.exporters.local import check_files, directories_of
from husk.engine.builder.exporters.options import epoch_of
from husk.engine.builder.frontend import Asker, Shown
from husk.engine.builder.jobs import Job, Result
from husk.engine.builder.progress import Status
from husk.errors import InvalidParameter

SENDING = "sending tarball"
# How many bytes more are worth telling.
_STEP = 1 << 20


class Archives(Protocol):
    """Tars of stacks: `husk.storage.stack_archives`."""

    def read(self, stacks: Mapping[str, str], latest: int | None = None) -> AsyncGenerator[bytes, None]: ...


class TarExport:
    def __init__(self, archives: Archives) -> None:
        self._archives = archives

    def check(self, attributes: Mapping[str, str]) -> None:
        check_files(attributes)

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Nothing is told of it but the progress."""
        if job.session is None:
            raise InvalidParameter("could not send an archive without session")
        parts = directories_of(result)
        latest = epoch_of(attributes, result.metadata)
        with Shown(Asker(job.log, job.session), "exporting to client tarball") as shown:
            stacks = {name: await part.stack() for name, part in parts.items()}
            async with aclosing(self._archives.read(stacks, latest)) as pieces:
                await job.session.send_file(number, counted(pieces, shown), {})
        return {}


async def counted(pieces: AsyncIterator[bytes], shown: Shown) -> AsyncIterator[bytes]:
    """The same pieces, told as they go."""
    total = told = 0
    async for piece in pieces:
        yield piece
        total += len(piece)
        if total - told >= _STEP:
            told = total
            shown.status(Status(id=SENDING, current=total))
    shown.status(Status(id=SENDING, current=total, done=True))
