"""Directories of clients, as they were when a build last asked for them.

A mirror is a diff (`husk.builder.store.diffs`) and a table of what is in it, `<key>.<diff id>` below one directory. A
diff never changes; so the next sync of the same directory makes another one. It takes over the files of the last mirror
if nobody needs that any more, and then only what the client has changed is sent and written. Otherwise everything is:
two builds of one directory at the same time have two mirrors of it. Where nothing is to be compared (`anew`) everything
is sent, too, and the new mirror replaces those that nobody needs any more.

A mirror without its table is a diff like any other. The table goes first when the files are about to change. Which
tables there are is known from the start on, and a table goes with its diff: no directory is looked through for a build.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Self

from msgspec import structs

from husk.aio.tasks import Tasks
from husk.builder.store.ahead import AheadTar
from husk.builder.store.diffs import DiffStore
from husk.builder.store.space import room_left
from husk.builder.store.sync.exchange import Progress, SyncChannel, exchange
from husk.builder.store.sync.small import receive_small
from husk.builder.store.sync_table import VERSION
from husk.builder.store.workers.jobs import ReceiveJob
from husk.builder.store.workspaces import Workspace
from husk.storage.workers.answers import Received, Sent
from husk.storage.workers.nursery import Nursery

_DIFF = "diff:"
# Before so much has come nobody asks how its tar would begin.
_MUCH = 4 << 20

Take = Callable[[str], Awaitable[bool]]
"""Asks the owner of a mirror for it; whoever hears True is its owner now."""


class Mirrors:
    def __init__(self, root: Path, diffs: DiffStore, nursery: Nursery) -> None:
        self._root = root
        self._diffs = diffs
        self._nursery = nursery
        self._sequence = 0
        self._tables: dict[str, Path] = {}  # by elements
        self._elements: dict[str, dict[str, None]] = {}  # those of a directory, the oldest first, by names of keys
        self._tasks = Tasks()

    @classmethod
    def open(cls, root: Path, diffs: DiffStore, nursery: Nursery) -> Self:
        """Forget tables of what is not there any more. Nothing is made: a builder opens on a full disk."""
        mirrors = cls(root, diffs, nursery)
        for path in root.iterdir() if root.exists() else ():
            if path.suffix == ".new" or not diffs.has(_element(path)):
                path.unlink()
            else:
                mirrors._add(path)
        diffs.listeners.append(mirrors._removed)
        return mirrors

    async def close(self) -> None:
        """Before the cache that owns mirrors is closed."""
        await self._tasks.join()

    async def sync(
        self,
        key: str,
        channel: SyncChannel,
        take: Take,
        progress: Progress | None = None,
        ahead: AheadTar | None = None,
        anew: bool = False,
    ) -> str:
        """Make a mirror of what a client sends: `diff:<id>`. Its owner is the caller.

        What comes for the first time, and is much, is packed `ahead`. `anew`: nothing is compared with the last one.
        """
        await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
        self._sequence += 1
        new = self._root / f"{self._sequence}.new"
        try:
            async with self._place("" if anew else _name(key), take) as (space, old):
                job = ReceiveJob(root=str(space.upper), old=old, new=str(new))
                received: Received | Sent | bytes = await receive_small(job, channel, progress or _nobody)
                if isinstance(received, bytes):
                    job = structs.replace(job, limit=await asyncio.to_thread(room_left, space.upper))
                    received = await self._exchange(job, channel, progress, received, None if old else ahead)
                element = await space.keep(received.size if isinstance(received, Received) else None)
                if ahead is not None:
                    ahead.received(element)
            table = self._root / f"{_name(key)}.{element.removeprefix(_DIFF)}"
            try:
                new.rename(table)
            except OSError:
                await self._diffs.remove([element])  # nobody has heard of it
                raise
            self._add(table)
            if anew and len(self._elements[_name(key)]) > 1:
                # Beside the build, which does not wait for it.
                self._tasks.spawn(self._replace(_name(key), element, take), "replace mirrors")
            return element
        finally:
            new.unlink(missing_ok=True)

    async def _exchange(
        self, job: ReceiveJob, channel: SyncChannel, progress: Progress | None, begun: bytes, ahead: AheadTar | None
    ) -> Received | Sent:
        plan = ahead.open() if ahead is not None else None
        if ahead is None or plan is None:
            return await exchange(self._nursery, job, channel, progress, begun)
        much, beside = asyncio.Event(), Tasks()
        tell = progress or _nobody

        def moved(total: int) -> None:
            tell(total)
            if total >= _MUCH:
                much.set()

        beside.spawn(_begin(ahead, much), "the beginning of a layer's tar")
        try:
            job = structs.replace(job, ahead=plan)
            received = await exchange(self._nursery, job, channel, moved, begun, ahead.follow)
        finally:
            await beside.cancel_all()
        if not (isinstance(received, Received) and received.packing):
            # What was begun of it takes room, and a build may take long.
            await ahead.close()
        return received

    def table(self, element: str) -> Path | None:
        """The table of a mirror, which has the digests of its contents (`sync_table`); None if it is no mirror."""
        return self._tables.get(element)

    @contextlib.asynccontextmanager
    async def _place(self, name: str, take: Take) -> AsyncIterator[tuple[Workspace, str]]:
        """Give a place to write, and the path of the table of what is there; empty where the place is new."""
        for element in list(self._elements.get(name, ())):
            if not self._diffs.alone(element) or not await take(element):
                continue
            if not self._diffs.alone(element):
                # Somebody reads it meanwhile. Nobody's record names it any more: it goes when they have done so.
                await self._diffs.remove([element])
            else:
                # From here on the table is ours: it does not go with the diff.
                table = self._forget(element)
                try:
                    async with self._diffs.reopened(element) as space:
                        yield space, str(table)
                finally:
                    table.unlink(missing_ok=True)
                return
        async with self._diffs.workspace("") as space:
            yield space, ""

    async def _replace(self, name: str, new: str, take: Take) -> None:
        """Remove the mirrors that were there before a new one and that nobody needs."""
        for element in list(self._elements.get(name, ())):
            if element == new:
                return
            if self._diffs.alone(element) and await take(element):
                await self._diffs.remove([element])

    def _add(self, table: Path) -> None:
        element = _element(table)
        self._tables[element] = table
        self._elements.setdefault(table.stem, {})[element] = None

    def _forget(self, element: str) -> Path:
        table = self._tables.pop(element)
        same = self._elements[table.stem]
        del same[element]
        if not same:
            del self._elements[table.stem]
        return table

    def _removed(self, element: str) -> None:
        """Diffs go when the cache says so."""
        if element in self._tables:
            self._forget(element).unlink(missing_ok=True)


async def _begin(ahead: AheadTar, much: asyncio.Event) -> None:
    await much.wait()
    await ahead.begin()


def _nobody(total: int) -> None:
    pass


def _name(key: str) -> str:
    # A table of another form is none: that directory is sent again.
    return hashlib.sha256(f"{VERSION}:{key}".encode()).hexdigest()[:32]


def _element(table: Path) -> str:
    return _DIFF + table.suffix.removeprefix(".")
