"""Results of builds as directories of a client: `docker build --output type=local`."""

from husk.storage.diffs import DiffStore
from husk.storage.sync.exchange import Channel, Progress, exchange
from husk.storage.workers.messages import SendJob, Stack
from husk.storage.workers.nursery import Nursery


async def send_stack(
    diffs: DiffStore,
    nursery: Nursery,
    stack: str,
    channel: Channel,
    *,
    prefix: str = "",
    mtime: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Send all files of a stack to the client behind a channel, which writes them into a directory of its own.

    With a `prefix` they go into a directory of that name (`linux_amd64`, where several platforms are exported); with an
    `mtime` (SOURCE_DATE_EPOCH, in nanoseconds) all of them have that time.
    """
    directories = diffs.directories
    async with diffs.held(stack):
        shown = Stack(diffs.lower(stack))
        job = SendJob(str(directories.view), prefix, mtime, shown, str(directories.empty))
        await exchange(nursery, job, channel, progress)


class StackSender:
    """The same for whoever knows stacks alone."""

    def __init__(self, diffs: DiffStore, nursery: Nursery) -> None:
        self._diffs = diffs
        self._nursery = nursery

    async def send(self, stack: str, channel: Channel, mtime: int | None, progress: Progress, /) -> None:
        await send_stack(self._diffs, self._nursery, stack, channel, mtime=mtime, progress=progress)
