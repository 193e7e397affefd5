"""The exporter `local`: the files of a result go into a directory of the client's."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Protocol

from husk.builder.exporters import file_options
from husk.builder.exporters.parts import is_several
from husk.builder.exporters.stated_files import StatedFiles
from husk.builder.graph.progress import Status
from husk.builder.jobs.jobs import Job
from husk.builder.jobs.results import Result
from husk.builder.solver.asking import Asker, ShownWork
from husk.builder.store.sync.exchange import SyncChannel
from husk.errors import InvalidParameter

# How many bytes more are worth telling.
_STEP = 1 << 18


class Sender(Protocol):
    """Sends the files of stacks: `husk.builder.store.sync.exports`."""

    async def send(
        self, stacks: Mapping[str, str], channel: SyncChannel, mtime: int | None, progress: Callable[[int], None], /
    ) -> None: ...


class LocalExport:
    def __init__(self, sender: Sender, stated: StatedFiles) -> None:
        self._sender = sender
        self._stated = stated

    def check(self, attributes: Mapping[str, str]) -> None:
        file_options.read(attributes, {})

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Nothing is told of it but the progress."""
        if job.session is None:
            raise InvalidParameter("could not access local files without session")
        options = file_options.read(attributes, result.metadata)
        parts = await file_options.directories_of(result, split=options.split)
        async with AsyncExitStack() as holding:
            with ShownWork(Asker(job.log, job.session), "exporting to client directory") as shown:
                stacks = {}
                for name, part in parts.items():
                    called = file_options.name_in(options, part, several=is_several(result))
                    stacks[name] = await holding.enter_async_context(self._stated.beside(part, called))
                sent = [stacks]
                if len(stacks) > 1 and options.split is False:
                    await self._stated.check_apart({parts[name].id: stack for name, stack in stacks.items()})
                    # One after another into the same directory: a client keeps what is there.
                    sent = [{"": stack} for stack in stacks.values()]
                mtime = options.epoch * 10**9 if options.epoch is not None else None
                told = _Sent(shown)
                for group in sent:
                    async with job.session.send_directory(number) as channel:
                        await self._sender.send(group, channel, mtime, told)
                told.end()
        return {}


class _Sent:
    """The bytes that have gone so far, shown each time that `_STEP` more have gone."""

    def __init__(self, shown: ShownWork) -> None:
        self._shown = shown
        self._total = 0
        self._told = 0

    def __call__(self, total: int) -> None:
        self._total = total
        if total - self._told >= _STEP:
            self._told = total
            self._shown.status(Status(id="copying files", current=total))

    def end(self) -> None:
        self._shown.status(Status(id="copying files", current=self._total, done=True))
