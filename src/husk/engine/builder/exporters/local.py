"""The exporter `local`: the files of a result go into a directory of the client's."""

from collections.abc import Callable, Mapping
from typing import Protocol

from husk.engine.builder.exporters.options import epoch_of
from husk.engine.builder.exporters.parts import Part, is_several, parts_of
from husk.engine.builder.frontend import Asker, Shown
from husk.engine.builder.jobs import Job, Result
from husk.engine.builder.progress import Status
from husk.engine.builder.sessions import Channel
from husk.errors import InvalidParameter, NotImplementedYet
from husk.patterns import pattern

_DIRECTORY = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# How many bytes more are worth telling.
_STEP = 1 << 18


class Sender(Protocol):
    """Sends the files of stacks: `husk.storage.sync.exports`."""

    async def send(
        self, stacks: Mapping[str, str], channel: Channel, mtime: int | None, progress: Callable[[int], None], /
    ) -> None: ...


class LocalExport:
    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def check(self, attributes: Mapping[str, str]) -> None:
        check_files(attributes)

    async def export(self, job: Job, result: Result, attributes: Mapping[str, str], number: int) -> dict[str, str]:
        """Nothing is told of it but the progress."""
        if job.session is None:
            raise InvalidParameter("could not access local files without session")
        parts = directories_of(result)
        with Shown(Asker(job.log, job.session), "exporting to client directory") as shown:
            stacks = {name: await part.stack() for name, part in parts.items()}
            told = _Sent(shown)
            async with job.session.send_directory(number) as channel:
                await self._sender.send(stacks, channel, _mtime(result, attributes), told)
            told.end()
        return {}


def check_files(attributes: Mapping[str, str]) -> None:
    """What clients may say about files."""
    epoch_of(attributes, {})
    if attributes.get("platform-split", "true") not in ("", "true", "1"):
        raise NotImplementedYet("files of several platforms in one directory (platform-split=false): not by Husk yet")


def directories_of(result: Result) -> dict[str, Part]:
    """Where the files of each platform go: into a directory of its own, if there may be several."""
    parts = parts_of(result)
    if not is_several(result):
        return {"": parts[0]}
    found = {part.id.replace("/", "_"): part for part in parts}
    for name in found:
        if not _DIRECTORY.fullmatch(name):
            raise InvalidParameter(f"invalid platform {name!r}: no directory can have this name")
    return found


def _mtime(result: Result, attributes: Mapping[str, str]) -> int | None:
    epoch = epoch_of(attributes, result.metadata)
    return epoch * 10**9 if epoch is not None else None


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
