"""Cache mounts: directories that outlive the steps which use them, known by the ids that Dockerfiles give them.

How a step shares one with others that run at the same time is its own word:

    shared      with all who share it
    private     with nobody: whoever comes meanwhile gets another directory
    locked      with nobody: whoever comes meanwhile waits, the first come being the first served

So there may be several directories of one id. Between steps all of them are free, and the next step gets the one that
was used last. A first content (`from=`) is part of what a cache is known by. Who builds without a cache begins anew:
the directories of its caches are retired, which go when no step uses them any more.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol, Self

import msgspec
from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.aio.threads import removals, trees
from husk.builder.cache.prune import Item
from husk.engine.model.build import CACHE_MOUNT
from husk.engine.model.clock import now_ns
from husk.errors import Conflict, HuskError, NotFound
from husk.storage.state.store import Change

log = logging.getLogger(__name__)

TYPE = "exec.cachemount"


class Directories(Protocol):
    """`husk.builder.store.cache_directories`."""

    def path(self, name: str) -> Path: ...

    def has(self, name: str) -> bool: ...

    def make(self, name: str, lower: Sequence[str] = (), selector: str = "") -> None: ...

    def size(self, name: str) -> int: ...

    def remove(self, name: str) -> None: ...


class State(Protocol):
    async def settle(self, *changes: Change, lazy: bool = False) -> None: ...


class WantedCache(Struct, frozen=True, kw_only=True):
    """A cache that a step wants, and what is in it first."""

    id: str
    sharing: Literal["shared", "private", "locked"] = "shared"
    source: str = ""  # the stack of its first content
    lower: Sequence[str] = ()  # the same, as directories
    selector: str = ""
    description: str = ""

    @property
    def key(self) -> str:
        return f"{self.id}:{self.source}:{self.selector}" if self.source else self.id


class CacheMountRecord(Struct, kw_only=True):
    """The record of one directory."""

    name: str
    key: str
    description: str
    created: int
    last_used: int
    uses: int = 0


class _Directory:
    def __init__(self, kept: CacheMountRecord) -> None:
        self.kept = kept
        self.users = 0
        self.exclusive = False
        self.removing = False
        self.made: asyncio.Future[bool] | None = None
        """While it is made: whether that went well."""
        self.measured: tuple[int, int] | None = None
        """Its bytes between two uses, and how many uses there had been."""

    @property
    def retired(self) -> bool:
        return self.kept.key == _retired(self.kept.name)

    def admits(self, sharing: str) -> bool:
        if self.removing:
            return False
        return not self.users or (sharing == "shared" and not self.exclusive)


def _retired(name: str) -> str:
    """The key under which nobody asks for a directory."""
    return f"retired {name}"


class _Waiter(Struct):
    sharing: str
    turn: asyncio.Future[_Directory | None]


class _Cache:
    """All directories of one key, and who waits for one."""

    def __init__(self) -> None:
        self.directories: list[_Directory] = []
        self.waiting: deque[_Waiter] = deque()

    def free(self, sharing: str) -> _Directory | None:
        found = [one for one in self.directories if one.admits(sharing)]
        # Who shares goes where others are; then what was used last.
        return max(found, key=lambda one: (one.users, one.kept.last_used), default=None)


class CacheMounts:
    def __init__(self, directories: Directories, state: State, kept: Iterable[CacheMountRecord]) -> None:
        self._directories = directories
        self._state = state
        self._tasks = Tasks()
        self._caches: dict[str, _Cache] = {}
        self._by_name: dict[str, _Directory] = {}
        for one in kept:
            self._add(_Directory(one))

    @classmethod
    async def open(cls, directories: Directories, state: State, records: Iterable[CacheMountRecord]) -> Self:
        """Forget the records whose directories are gone."""
        found = list(records)
        there = await asyncio.to_thread(lambda: [one for one in found if directories.has(one.name)])
        names = {one.name for one in there}
        lost = [Change(CACHE_MOUNT, one.name, None) for one in found if one.name not in names]
        if lost:
            await state.settle(*lost, lazy=True)
        opened = cls(directories, state, there)
        for directory in [one for one in opened._by_name.values() if one.retired]:
            opened._tasks.spawn(opened._forget(directory), "remove a retired cache mount")
        return opened

    # --- for steps ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def taken(self, wanted: Sequence[WantedCache]) -> AsyncIterator[list[Path]]:
        """Their directories, in the order of `wanted`, while the block lasts. The same cache twice is one."""
        taken: dict[str, _Directory] = {}
        try:
            # All take theirs in one order, so that nobody waits in a circle.
            for one in sorted(wanted, key=lambda one: one.key):
                if one.key not in taken:
                    taken[one.key] = await self._take(one)
            yield [self._directories.path(taken[one.key].kept.name) for one in wanted]
        finally:
            for directory in taken.values():
                self._give_back(directory)

    def begin_anew(self, ids: Mapping[str, bool]) -> None:
        """Give the next steps new directories of these caches; with True also of those with a first content."""
        for key in [key for key in self._caches if _is_of(key, ids)]:
            cache = self._caches[key]
            for directory in [one for one in cache.directories if not one.removing]:
                self._retire(cache, directory)
            if not cache.directories:
                self._call(cache)
                if not cache.waiting:
                    del self._caches[key]

    def _retire(self, cache: _Cache, directory: _Directory) -> None:
        cache.directories.remove(directory)
        directory.kept.key = _retired(directory.kept.name)
        self._caches.setdefault(directory.kept.key, _Cache()).directories.append(directory)
        going = self._save(directory) if directory.users else self._forget(directory)
        self._tasks.spawn(going, "retire a cache mount")

    async def _take(self, wanted: WantedCache) -> _Directory:
        while True:
            cache = self._caches.setdefault(wanted.key, _Cache())
            queue = bool(cache.waiting) and wanted.sharing != "private"
            directory = None if queue else cache.free(wanted.sharing)
            if directory is not None:
                self._enter(directory, wanted.sharing)
            elif queue or (wanted.sharing == "locked" and cache.directories):
                directory = await self._wait(cache, wanted.sharing)
            else:
                return await self._made(wanted)
            if directory is not None and await self._is_made(directory):
                return directory

    async def _is_made(self, directory: _Directory) -> bool:
        """Another step may be making it; if it fails in that, this one has to try itself."""
        if directory.made is None:
            return True
        try:
            if await asyncio.shield(directory.made):
                return True
        except BaseException:
            self._give_back(directory)
            raise
        self._give_back(directory)
        return False

    async def _made(self, wanted: WantedCache) -> _Directory:
        directory = self._new(wanted)
        self._enter(directory, wanted.sharing)
        made = directory.made = asyncio.get_running_loop().create_future()
        try:
            await self._tasks.to_its_end(self._make(directory, wanted), "make a cache mount")
        except BaseException:
            await self._tasks.to_its_end(self._forget(directory), "remove a cache mount")
            made.set_result(False)
            raise
        made.set_result(True)
        directory.made = None
        return directory

    async def _wait(self, cache: _Cache, sharing: str) -> _Directory | None:
        """The directory of whose turn it is; None if there is none any more."""
        waiter = _Waiter(sharing, asyncio.get_running_loop().create_future())
        cache.waiting.append(waiter)
        try:
            return await waiter.turn
        except BaseException:
            if waiter in cache.waiting:
                cache.waiting.remove(waiter)
                self._call(cache)  # those behind may share what is there
            elif waiter.turn.done() and not waiter.turn.cancelled() and (given := waiter.turn.result()) is not None:
                self._give_back(given)
            raise

    def _new(self, wanted: WantedCache) -> _Directory:
        moment = now_ns()
        name = secrets.token_hex(13)[:25]
        kept = CacheMountRecord(
            name=name, key=wanted.key, description=wanted.description, created=moment, last_used=moment
        )
        directory = _Directory(kept)
        self._add(directory)
        return directory

    async def _make(self, directory: _Directory, wanted: WantedCache) -> None:
        await trees(self._directories.make, directory.kept.name, tuple(wanted.lower), wanted.selector)
        await self._save(directory)

    def _enter(self, directory: _Directory, sharing: str) -> None:
        directory.users += 1
        directory.exclusive = sharing != "shared"
        directory.kept.uses += 1

    def _give_back(self, directory: _Directory) -> None:
        directory.users -= 1
        directory.kept.last_used = now_ns()
        if not directory.users:
            directory.exclusive = False
            going = self._forget(directory) if directory.retired else self._save(directory)
            self._tasks.spawn(going, "note the use of a cache mount")
        if (cache := self._caches.get(directory.kept.key)) is not None:
            self._call(cache)

    def _call(self, cache: _Cache) -> None:
        """Those whose turn it is, in the order in which they came."""
        while cache.waiting:
            waiter = cache.waiting[0]
            directory = cache.free(waiter.sharing)
            if directory is None and cache.directories:
                return
            cache.waiting.popleft()
            if waiter.turn.done():
                continue
            if directory is not None:
                self._enter(directory, waiter.sharing)
            waiter.turn.set_result(directory)
            if directory is None:
                return  # that one makes another, and the others wait for it

    # --- for those who clean up --------------------------------------------------------------------------------------

    async def items(self) -> list[Item]:
        """As the cache of builds shows them."""
        return [await self._item(directory) for directory in list(self._by_name.values())]

    async def remove(self, name: str) -> int:
        """The bytes that were freed. Conflict while a step uses it."""
        directory = self._by_name.get(name)
        if directory is None:
            raise NotFound(f"no such cache mount: {name}")
        if directory.users or directory.removing:
            raise Conflict(f"cache mount {name} is in use")
        # Nobody gets it any more, also while it is measured.
        directory.removing = True
        try:
            size = await self._size(directory)
        except BaseException:
            directory.removing = False
            raise
        await self._tasks.to_its_end(self._forget(directory), "remove a cache mount")
        return size

    async def prune(self, goes: Callable[[Item], bool]) -> list[Item]:
        """Remove those that `goes` says may go and nobody uses, the longest unused first; what has gone."""
        gone = []
        for item in sorted(await self.items(), key=lambda item: item.last_used):
            if item.in_use or not goes(item):
                continue
            try:
                await self.remove(item.id)
            except (Conflict, NotFound):
                continue  # somebody uses it, or has removed it
            except HuskError as error:
                log.warning("cache mount %s is not pruned: %s", item.id, error.message)
                continue
            gone.append(item)
        return gone

    async def close(self) -> None:
        await self._tasks.join()

    async def _item(self, directory: _Directory) -> Item:
        kept = directory.kept
        return Item(
            id=kept.name,
            parents=[],
            type=TYPE,
            description=kept.description,
            in_use=bool(directory.users),
            shared=False,
            size=await self._size(directory),
            created=kept.created,
            last_used=kept.last_used,
            uses=kept.uses,
        )

    async def _size(self, directory: _Directory) -> int:
        """Its bytes. Its files are looked at only where a step has used it since: this is asked after each build."""
        uses = directory.kept.uses
        if not directory.users and directory.measured is not None and directory.measured[0] == uses:
            return directory.measured[1]
        idle = not directory.users
        size = await trees(self._directories.size, directory.kept.name)
        if idle and directory.kept.uses == uses:
            directory.measured = uses, size
        return size

    def _add(self, directory: _Directory) -> None:
        self._caches.setdefault(directory.kept.key, _Cache()).directories.append(directory)
        self._by_name[directory.kept.name] = directory

    async def _save(self, directory: _Directory) -> None:
        if directory.kept.name in self._by_name:
            await self._state.settle(
                Change(CACHE_MOUNT, directory.kept.name, msgspec.json.encode(directory.kept)), lazy=True
            )

    async def _forget(self, directory: _Directory) -> None:
        """Its record goes first: a directory without one is removed at the next start at the latest."""
        kept = directory.kept
        if self._by_name.pop(kept.name, None) is None:
            return
        cache = self._caches[kept.key]
        cache.directories.remove(directory)
        if not cache.directories:
            self._call(cache)
            if not cache.waiting:
                del self._caches[kept.key]
        await self._state.settle(Change(CACHE_MOUNT, kept.name, None), lazy=True)
        await removals(self._directories.remove, kept.name)


def _is_of(key: str, ids: Mapping[str, bool]) -> bool:
    return key in ids or any(nested and key.startswith(f"{id}:") for id, nested in ids.items())
