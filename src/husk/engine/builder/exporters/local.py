"""The exporter `local`: the files of a result go into a directory of the client's."""

from collections.abc import Callable, Mapping
from typing import Protocol

from husk.engine.builder.frontend import Asker, Shown
from husk.engine.builder.jobs import EPOCH, Job, Result
from husk.engine.builder.progress import Status
from husk.engine.builder.sessions import Channel
from husk.errors import InvalidParameter, NotImplementedYet

# How many bytes more are worth telling.
_STEP = 1 << 18


class Sender(Protocol):
    """Sends the files of stacks: `husk.storage.sync.exports`."""

    async def send(
        self, stack: str, channel: Channel, mtime: int | None, progress: Callable[[int], None], /
    ) -> None: ...


class LocalExport:
    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Nothing is told of it but the progress."""
        if len(result.refs) > 1:
            raise NotImplementedYet("the files of several platforms are not exported by Husk yet")
        if job.session is None:
            raise InvalidParameter("could not access local files without session")
        refs = result.all
        with Shown(Asker(job.log, job.session), "exporting to client directory") as shown:
            stack = await refs[0].stack() if refs else ""
            told = _Sent(shown)
            async with job.session.send_directory(number) as channel:
                await self._sender.send(stack, channel, _mtime(result), told)
            told.end()
        return {}


def _mtime(result: Result) -> int | None:
    epoch = result.metadata.get(EPOCH)
    return int(epoch) * 10**9 if epoch else None


class _Sent:
    """How many bytes have gone so far."""

    def __init__(self, shown: Shown) -> None:
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
