"""The exporter `tar`: the files of a result go to the client as one archive.

As with BuildKit, several platforms have directories of their own there, whatever the client says of splitting them."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Protocol

from husk.builder.exporters import file_options
from husk.builder.exporters.parts import is_several
from husk.builder.exporters.stated_files import StatedFiles
from husk.builder.graph.progress import Status
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.solver.asking import Asker, ShownWork
from husk.errors import InvalidParameter

SENDING = "sending tarball"
# How many bytes more are worth telling.
_STEP = 1 << 20


class Archives(Protocol):
    """Tars of stacks: `husk.builder.store.stack_archives`."""

    def read(self, stacks: Mapping[str, str], latest: int | None = None) -> AsyncGenerator[bytes, None]: ...


class TarExport:
    def __init__(self, archives: Archives, stated: StatedFiles) -> None:
        self._archives = archives
        self._stated = stated

    def check(self, attributes: Mapping[str, str]) -> None:
        file_options.read(attributes, {})

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Nothing is told of it but the progress."""
        if job.session is None:
            raise InvalidParameter("could not send an archive without session")
        options = file_options.read(attributes, result.metadata)
        parts = await file_options.directories_of(result)
        async with AsyncExitStack() as holding:
            with ShownWork(Asker(job.log, job.session), "exporting to client tarball") as shown:
                stacks = {}
                for name, part in parts.items():
                    called = file_options.name_in(options, part, several=is_several(result))
                    stacks[name] = await holding.enter_async_context(self._stated.beside(part, called))
                async with aclosing(self._archives.read(stacks, options.epoch)) as pieces:
                    await job.session.send_file(number, counted(pieces, shown), {})
        return {}


async def counted(pieces: AsyncIterator[bytes], shown: ShownWork) -> AsyncIterator[bytes]:
    """The same pieces, told as they go."""
    total = told = 0
    async for piece in pieces:
        yield piece
        total += len(piece)
        if total - told >= _STEP:
            told = total
            shown.status(Status(id=SENDING, current=total))
    shown.status(Status(id=SENDING, current=total, done=True))
