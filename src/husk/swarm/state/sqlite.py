"""The cluster store of one host, in the engine's own SQLite file.

Bodies are on the disk alone; what is kept in memory is the version of each record. A transaction counts, for all who
ask, from the moment it is begun; those that a full disk refuses are taken back. There is one process, so leases and
what is written under them are in memory: who held them has ended with it. A watch has no past to resume from: after a
restart, or when its reader is slow, it starts over.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import Self, TypeVar

from husk.errors import DiskFault, InvalidParameter
from husk.storage.state.store import Change, StateStore
from husk.swarm.state.transactions import (
    NEW,
    Check,
    ClusterRecord,
    Delete,
    Listing,
    News,
    Put,
    Stale,
    Step,
    check_name,
    check_steps,
    version_in,
    with_version,
)
from husk.text.documents import MalformedDocument

T = TypeVar("T")
Name = tuple[str, str]

# The first version is one more; clients take 0 for none at all.
FIRST = 10
# News that a reader has not taken: with more, it starts over.
MOST_UNREAD = 1000


class SqliteStore:
    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._revision = FIRST
        self._versions: dict[str, dict[str, int]] = {}
        self._leased: dict[Name, ClusterRecord] = {}
        self._leases: dict[int, SqliteLease] = {}
        self._last_lease = 0
        self._watches: set[_Watch] = set()
        self._untold: deque[_Telling] = deque()

    def load(self, kind: str, decode: Callable[[bytes], T]) -> dict[str, T]:
        """All records of a kind that can be read, for the start of the daemon. Blocks."""
        self._remember(kind)
        return self._state.read(kind, decode)

    def unreadable(self, kind: str) -> frozenset[str]:
        return self._state.aside(kind)

    async def get(self, kind: str, key: str) -> ClusterRecord | None:
        check_name(kind, key)
        return next((record for record in (await self.listing(kind)).records if record.key == key), None)

    async def listing(self, kind: str) -> Listing:
        self._remember(kind)
        revision = self._revision
        stored = await self._state.fetch(kind)
        found = {key: ClusterRecord(kind, key, body, _version(body)) for key, body in stored.items()}
        found |= {record.key: record for record in self._leased.values() if record.kind == kind}
        return Listing(tuple(found[key] for key in sorted(found)), revision)

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        for kind in kinds:
            self._remember(kind)
        revision = self._revision
        leased = [record for record in self._leased.values() if record.kind in kinds]
        stored = await self._state.fetch_several(kinds)
        found = {
            (kind, key): ClusterRecord(kind, key, body, _version(body))
            for kind in stored
            for key, body in stored[kind].items()
        }
        found |= {record.name: record for record in leased}
        return Listing(tuple(found[name] for name in sorted(found)), revision)

    async def commit(
        self, *steps: Step, applied: Callable[[int], None] | None = None, happened: bool = False, lazy: bool = False
    ) -> int:
        check_steps(steps)
        if stale := [(step.kind, step.key) for step in steps if not self._fits(step)]:
            raise Stale(stale)
        for step in steps:
            if isinstance(step, Put) and step.lease and step.lease not in self._leases:
                raise InvalidParameter(f"there is no lease {step.lease}")
        if all(isinstance(step, Check) for step in steps):
            return self._revision
        revision = self._revision + 1
        puts = [step for step in steps if isinstance(step, Put)]
        records = [ClusterRecord(s.kind, s.key, with_version(s.body, revision), revision, s.lease) for s in puts]
        names = [(step.kind, step.key) for step in steps if isinstance(step, Delete)]
        gone = [name for name in names if self._version(*name)]
        before = {(step.kind, step.key): self._version(step.kind, step.key) for step in steps}
        changes = self._take_in(revision, records, gone)
        if applied is not None:
            applied(revision)
        with self._telling(News(revision, False, tuple(records), tuple(gone))):
            try:
                if changes:
                    await (self._state.settle if happened else self._state.commit)(*changes, lazy=lazy)
            except DiskFault:
                self._take_back(revision, before)
                raise
        return revision

    async def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        watch = _Watch(kind)
        self._watches.add(watch)
        try:
            # What came after an older revision is not known any more.
            if after == self._revision:
                watch.begin(after)
            while True:
                if watch.starts_over:
                    watch.begin(self._revision)
                    yield await self._everything(kind)
                else:
                    yield await watch.next()
        finally:
            self._watches.discard(watch)

    async def lease(self, seconds: int) -> "SqliteLease":
        self._last_lease += 1
        lease = SqliteLease(self._last_lease, seconds, self._end_lease)
        self._leases[lease.id] = lease
        return lease

    async def close(self) -> None:
        for lease in list(self._leases.values()):
            await lease.close()

    # --- helpers

    def _remember(self, kind: str) -> None:
        """Know the versions of a kind's records; blocks the first time."""
        if kind not in self._versions:
            stored = self._state.load(kind)
            self._versions[kind] = {key: _version(body) for key, body in stored.items()}
            self._revision = max([self._revision, *self._versions[kind].values()])

    def _version(self, kind: str, key: str) -> int:
        self._remember(kind)
        return self._versions[kind].get(key, NEW)

    def _fits(self, step: Step) -> bool:
        return step.version is None or step.version == self._version(step.kind, step.key)

    def _take_in(self, revision: int, records: list[ClusterRecord], gone: list[Name]) -> list[Change]:
        """Let a transaction count in memory; what is left to be written."""
        self._revision = revision
        changes = [Change(kind, key, None) for kind, key in gone if (kind, key) not in self._leased]
        for name in gone:
            self._leased.pop(name, None)
            self._versions[name[0]].pop(name[1], None)
        for record in records:
            was_leased = self._leased.pop(record.name, None) is not None
            if not record.lease:
                changes.append(Change(record.kind, record.key, record.body))
            elif not was_leased and record.key in self._versions[record.kind]:
                changes.append(Change(record.kind, record.key, None))
            if record.lease:
                self._leased[record.name] = record
            self._versions[record.kind][record.key] = revision
        return changes

    def _take_back(self, revision: int, before: dict[Name, int]) -> None:
        """The disk refused it; what others have written on top of it meanwhile stays."""
        for (kind, key), version in before.items():
            if self._versions[kind].get(key) == revision:
                self._leased.pop((kind, key), None)
                self._versions[kind].pop(key)
                self._versions[kind] |= {key: version} if version else {}

    @contextlib.contextmanager
    def _telling(self, news: News) -> Iterator[None]:
        """Tell the news behind this block, if it ends well, and never before those that came earlier."""
        telling = _Telling(news)
        self._untold.append(telling)
        try:
            yield
        except DiskFault:
            telling.news = None
            raise
        finally:
            telling.over = True
            while self._untold and self._untold[0].over:
                if (ready := self._untold.popleft().news) is not None:
                    for watch in self._watches:
                        watch.tell(ready)

    async def _everything(self, kind: str) -> News:
        kinds = [kind] if kind else sorted(self._versions)
        revision = self._revision
        listings = [await self.listing(one) for one in kinds]
        return News(revision, True, tuple(record for listing in listings for record in listing.records))

    def _end_lease(self, id: int) -> None:
        if self._leases.pop(id, None) is not None:
            gone = [record.name for record in self._leased.values() if record.lease == id]
            if gone:
                self._take_in(self._revision + 1, [], gone)
                with self._telling(News(self._revision, False, (), tuple(gone))):
                    pass


class SqliteLease:
    """A lease of this process: kept alive by being held."""

    def __init__(self, id: int, seconds: int, end: Callable[[int], None]) -> None:
        self.id = id
        self._seconds = seconds
        self._end = end
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> bool:
        return self._ended.is_set()

    async def wait_lost(self) -> None:
        await self._ended.wait()

    def abandon(self) -> None:
        if self._timer is None and not self.lost:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._finish)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._finish()

    def _finish(self) -> None:
        self._ended.set()
        self._end(self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Telling:
    """News of a transaction that is not over yet; none where it was refused."""

    def __init__(self, news: News) -> None:
        self.news: News | None = news
        self.over = False


class _Watch:
    """News that wait for one reader."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._unread: asyncio.Queue[News] = asyncio.Queue()
        self._known = NEW
        self.starts_over = True

    def begin(self, revision: int) -> None:
        """Go on from this revision, of which the reader knows all."""
        self.starts_over, self._known = False, revision
        while not self._unread.empty():
            self._unread.get_nowait()

    def tell(self, news: News) -> None:
        records = tuple(record for record in news.records if self._kind in ("", record.kind))
        gone = tuple(name for name in news.gone if self._kind in ("", name[0]))
        if self.starts_over or news.revision <= self._known or not (records or gone):
            return
        if self._unread.qsize() >= MOST_UNREAD:
            self.starts_over = True
            return
        self._unread.put_nowait(news._replace(records=records, gone=gone))

    async def next(self) -> News:
        return await self._unread.get()


def _version(body: bytes) -> int:
    """That of a record that cannot be read is of no use to anybody, but there is one."""
    try:
        return version_in(body) or FIRST
    except MalformedDocument:
        return FIRST
