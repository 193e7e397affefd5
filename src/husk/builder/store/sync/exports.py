"""Results of builds as directories of a client: `docker build --output type=local`."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from husk.builder.store.diffs import DiffStore
from husk.builder.store.sync.exchange import Progress, SyncChannel, exchange
from husk.builder.store.workers.jobs import SendJob
from husk.storage.workers.nursery import Nursery
from husk.storage.workers.parts import Stack


async def send_stacks(
    diffs: DiffStore,
    nursery: Nursery,
    stacks: Mapping[str, str],
    channel: SyncChannel,
    *,
    mtime: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Send all files of stacks to the client behind a channel, which writes them into a directory of its own.

    They go into directories of the stacks' names (`linux_amd64`, where several platforms are exported), those of one
    with the name "" into none; with an `mtime` (SOURCE_DATE_EPOCH, in nanoseconds) all of them have that time.
    """
    directories = diffs.directories
    async with AsyncExitStack() as holding:
        for stack in stacks.values():
            await holding.enter_async_context(diffs.held(stack))
        shown = {name: Stack(diffs.lower(stack)) for name, stack in stacks.items()}
        job = SendJob(str(directories.view), "", mtime, shown, str(directories.empty))
        await exchange(nursery, job, channel, progress)


class StackSender:
    """The same for whoever knows stacks alone."""

    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def send(
        self, stacks: Mapping[str, str], channel: SyncChannel, mtime: int | None, progress: Progress, /
    ) -> None:
        await send_stacks(self._diffs, self._nursery, stacks, channel, mtime=mtime, progress=progress)
