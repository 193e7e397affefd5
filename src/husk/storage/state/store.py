"""The memory of the engine: one SQLite file, with JSON documents that have a kind and a key.

A commit is one transaction and is on the disk when `commit` returns, so that what the API acknowledged survives
`kill -9` and a power cut. Whatever a record names must be there before it (`durable`).

WAL with `synchronous=NORMAL`: SQLite itself syncs its log only before it moves pages out of it, and orders all so that
a power cut never costs consistency. Syncing the log after each commit, which NORMAL leaves out, is done here: commits
that come at the same time share one sync, and `lazy` ones do not wait for theirs.

On a full disk a commit fails with a DiskFault and changes nothing, unless it only deletes. Those, and what has happened
already, such as the end of a process, use room that is kept for them (`reserve`). Where that is not enough either they
are not refused but owed: noted elsewhere (`debts`), seen by every reader, and written as soon as there is room.
"""

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import msgspec

from husk.aio.thread_pool import ThreadPool
from husk.errors import DiskFault, HuskError, SystemFault
from husk.kernel.disk import sync_directory
from husk.storage.durable import Flusher
from husk.storage.state.debts import Debts, OwedRecord
from husk.storage.state.reserve import Reserve, free
from husk.storage.state.schema import (
    NO_STEPS,
    SCHEMA,
    WRITE,
    Step,
    UnreadableRecord,
    bring_up,
    brought_up,
    mark_of,
    migrated,
    refuse_later,
    rows_of,
    set_mark,
)
from husk.text import documents

log = logging.getLogger(__name__)

# How long until what could not be written is tried again.
RETRY = 1.0
_BLOCK = 4096

T = TypeVar("T")
_Documents = dict[tuple[str, str], OwedRecord]
Believe = Callable[[], object]


class Change(NamedTuple):
    """One document to write, or to delete when `body` is None."""

    kind: str
    key: str
    body: bytes | None


class _Gathering:
    """Changes of many that are written in one transaction: those that come before the thread takes it up."""

    def __init__(self, changes: tuple[Change, ...] = ()) -> None:
        self._lock = threading.Lock()
        self._changes = list(changes)
        self._taken = False

    def join(self, changes: tuple[Change, ...]) -> bool:
        """False if it is too late for that."""
        with self._lock:
            if not self._taken:
                self._changes += changes
            return not self._taken

    def take(self) -> tuple[Change, ...]:
        with self._lock:
            self._taken = True
            changes, self._changes = tuple(self._changes), []
            return changes


class StateStore:
    """All access goes through one thread: SQLite never blocks the event loop and never sees two writers."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        reserve: Reserve,
        debts: Debts,
        steps: Mapping[int, Step] = NO_STEPS,
    ) -> None:
        self._path = path
        self._steps = steps
        self._flusher = Flusher(self._sync, "sync the state")
        self._aside: dict[str, dict[str, str]] = {}
        self._entered = False
        self._brought_up = brought_up(connection)
        self._connection = connection
        self._reserve = reserve
        self._debts = debts
        self._thread = ThreadPool(1, "state")
        # Changed by that thread alone. The mark says which page of debts is ours; the first transaction gives another
        # one, for a page elsewhere may be from before it.
        self._mark = mark_of(connection)
        self._marked = False
        # What has happened and is not written yet, and if it is noted elsewhere.
        self._owed = {(owed.kind, owed.key): self._present(owed) for owed in debts.read(self._mark)}
        self._noted = True
        self._trouble = ""
        # What is about to be written of what has happened, and when it is.
        self._gathering = _Gathering()
        self._gathered: asyncio.Future[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    def open(cls, path: Path, debts: Path | None = None, steps: Mapping[int, Step] = NO_STEPS) -> Self:
        """On a full disk too: reading needs little room, and none where there is none.

        `debts` is where to note what cannot be written, on another disk if possible. `steps` bring older records to the
        present form. SystemFault if the file is of a later version, damaged, or out of reach.
        """
        reserve = Reserve(path.with_suffix(".reserve"))
        try:
            connection = _reached(path, reserve, steps)
            try:
                store = cls(path, connection, reserve, Debts(debts, path), steps)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            advice = "If it is damaged, put it back from a backup: a daemon removes whatever has no record"
            raise SystemFault(f"{path} cannot be opened: {error}. {advice}") from error
        if not reserve.keep():
            store._in_trouble(f"write {path}: no space left on device")
        if store._owed:
            store._write_or_owe(())
        return store

    @property
    def trouble(self) -> str:
        """The reason why nothing can be written at present; empty when all is well."""
        return self._trouble

    def load(self, kind: str) -> dict[str, bytes]:
        """All documents of a kind as they are; for the start of the daemon, before it serves."""
        return {key: body for key, (body, _) in self._load(kind).items()}

    async def fetch(self, kind: str) -> dict[str, bytes]:
        """The same at any time: with all that was begun to be written before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.load, kind)

    async def fetch_several(self, kinds: Iterable[str]) -> dict[str, dict[str, bytes]]:
        """The same for several kinds, as they were at one moment."""

        def load() -> dict[str, dict[str, bytes]]:
            return {kind: self.load(kind) for kind in kinds}

        return await asyncio.get_running_loop().run_in_executor(self._thread, load)

    def has(self, *kinds: str) -> bool:
        """Tell if there is a record of one of these kinds."""
        return any(self._load(kind) for kind in kinds)

    def _load(self, kind: str) -> dict[str, tuple[bytes, int]]:
        found = {key: (body, schema) for _, key, body, schema in rows_of(self._connection, kind)}
        for owed in self._owed.values():
            if owed.kind == kind:
                found.pop(owed.key, None)
                found |= {} if owed.body is None else {owed.key: (owed.body, owed.schema)}
        return found

    def _present(self, owed: OwedRecord) -> OwedRecord:
        """The same in the present form. One that cannot be brought there stays as it is, as in the store."""
        if owed.body is None or owed.schema == SCHEMA:
            return owed
        try:
            return owed._replace(body=migrated(owed.kind, owed.body, owed.schema, self._steps), schema=SCHEMA)
        except UnreadableRecord:
            return owed

    def records(self, kind: str, type: type[T]) -> dict[str, T]:
        """All records of a kind that can be read. The others are put aside: they stay in the store, and are told."""
        return self.read(kind, lambda body: documents.decode(body, type, largest=len(body)))

    def read(self, kind: str, decode: Callable[[bytes], T]) -> dict[str, T]:
        """As `records`, for documents that are something else than JSON."""
        found: dict[str, T] = {}
        aside = self._aside[kind] = {}
        for key, (body, schema) in self._load(kind).items():
            try:
                found[key] = decode(migrated(kind, body, schema, self._steps))
            except (UnreadableRecord, HuskError, msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
                aside[key] = str(error)
                advice = "`husk doctor --check-store` tells more"
                log.error("the record of %s %s cannot be read and is put aside: %s. %s", kind, key, error, advice)
        return found

    def aside(self, *kinds: str) -> frozenset[str]:
        """The keys of the records of these kinds that were put aside: what they name must stay."""
        return frozenset(key for kind in kinds for key in self._aside.get(kind, ()))

    async def commit(self, *changes: Change, lazy: bool = False, then: Believe | None = None) -> None:
        """Write all changes or none; they are on disk when this returns. A caller who is cancelled meanwhile hears of
        it when they are written.

        `then` lets memory hold what the store holds now: it is called once they are written, and not where that fails.
        `lazy` changes survive the end of this process at once, a power cut within a second: for what no client was
        promised. DiskFault when the disk does not take them. What only deletes is never refused, see `settle`.
        """
        if all(change.body is None for change in changes):
            await self.settle(*changes, lazy=lazy, then=then)
            return
        # What is settled from now on is written after this.
        self._gathered = None
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._write, changes)
        await _written(work, then)
        await self._synced(lazy)

    async def add(self, *changes: Change, lazy: bool = False) -> None:
        """Commit what is new, for a caller who gives up what he has made when he is cancelled: then it is not there."""
        try:
            await self.commit(*changes, lazy=lazy)
        except asyncio.CancelledError:
            await asyncio.shield(self.settle(*(change._replace(body=None) for change in changes), lazy=lazy))
            raise

    async def settle(self, *changes: Change, lazy: bool = False, then: Believe | None = None) -> None:
        """Write what has happened: now, or else as soon as the disk lets us. It is not refused.

        `then` is called when it is written, or owed."""
        await _written(self._with_others(changes), then)
        try:
            await self._synced(lazy)
        except DiskFault as fault:
            log.error("%s", fault.message)

    def settle_soon(self, *changes: Change) -> None:
        """As a lazy `settle` that nobody waits for: it is written before what is committed from now on."""
        self._with_others(changes).add_done_callback(self._settled_soon)

    def _settled_soon(self, _: asyncio.Future[None]) -> None:
        self._flusher.wrote()
        self._flusher.settle_soon()

    def _with_others(self, changes: tuple[Change, ...]) -> asyncio.Future[None]:
        """Done when the changes are written or owed, in one transaction with those of all who come meanwhile."""
        if self._gathered is None or not self._gathering.join(changes):
            loop = asyncio.get_running_loop()
            self._gathering = _Gathering(changes)
            self._gathered = loop.run_in_executor(self._thread, self._write_gathered, self._gathering)
            # Not after the `await`: a caller who is cancelled owes all the same.
            self._gathered.add_done_callback(lambda _: self._try_later(loop))
        return self._gathered

    async def _synced(self, lazy: bool) -> None:
        self._flusher.wrote()
        if lazy:
            self._flusher.settle_soon()
        else:
            await self._flusher.settle()

    def _sync(self) -> None:
        """Put SQLite's log on the disk. SQLite holds no locks on it, so that another descriptor may come and go."""
        try:
            descriptor = os.open(f"{self._path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if not self._entered:
            sync_directory(self._path.parent)
            self._entered = True

    def close(self) -> None:
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._owed:
            self._thread.submit(self._write_or_owe, ())
        self._thread.shutdown()
        self._flusher.close()
        if self._owed:
            log.error("%s: %d changes are still to be written: %s", self._path, len(self._owed), self._trouble)
        self._connection.close()

    def _try_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._owed and self._retry is None and not self._closed:
            self._retry = loop.call_later(RETRY, self._try_again, loop)

    def _try_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._retry = None
        work = loop.run_in_executor(self._thread, self._write_or_owe, ())
        work.add_done_callback(lambda _: self._try_later(loop))

    # --- in the thread

    def _write_gathered(self, gathering: _Gathering) -> None:
        self._write_or_owe(gathering.take())

    def _write_or_owe(self, changes: tuple[Change, ...]) -> None:
        if not changes and not self._owed:
            return
        wanted = {**self._owed, **_by_key(changes)}
        try:
            self._write_with_reserve(wanted)
        except DiskFault:
            if changes or not self._noted:
                self._owed = wanted
                self._noted = self._debts.write(list(wanted.values()), self._mark)

    def _write(self, changes: tuple[Change, ...]) -> None:
        if not self._reserve.keep():
            # The little room that is left is for what must be possible.
            raise self._in_trouble(f"write {self._path}: no space left on device")
        self._write_all({**self._owed, **_by_key(changes)})

    def _write_with_reserve(self, wanted: _Documents) -> None:
        try:
            self._write_all(wanted)
        except DiskFault:
            with contextlib.suppress(sqlite3.Error):
                # What is in the journal goes into the database, where it has its place; the journal begins anew in
                # the room that it has already.
                self._connection.execute("PRAGMA wal_checkpoint(RESTART)")
            try:
                self._write_all(wanted)
            except DiskFault:
                if not self._reserve.give_up():
                    raise
                self._write_all(wanted)

    def _write_all(self, wanted: _Documents) -> None:
        """One transaction. DiskFault when the disk does not take it."""
        try:
            self._transact(wanted)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError):
            raise
        except sqlite3.DatabaseError as error:
            raise self._in_trouble(_reason(self._path, error)) from error
        if self._owed:
            self._owed, self._noted = {}, True
            self._strike_out()
        if self._reserve.keep() and self._trouble:
            log.warning("%s can be written again", self._path)
            self._trouble = ""

    def _strike_out(self) -> None:
        """Remove the page of debts that are in the store, when they will stay there. Left over, it counts no more."""
        try:
            self._sync()
        except OSError as error:
            log.error("%s: %s", self._path, error)
        else:
            self._debts.write([], self._mark)

    def _in_trouble(self, reason: str) -> DiskFault:
        if not self._trouble:
            log.error("%s: until there is room again, containers can end and things be removed, nothing more", reason)
        self._trouble = reason
        return DiskFault(reason)

    def _transact(self, wanted: _Documents) -> None:
        """Write all, with everything that is owed."""
        connection = self._connection
        # Where the disk was full at the start, it was left for later.
        if not self._brought_up:
            bring_up(connection, self._steps)
            self._brought_up = True
        mark = self._mark if self._marked and not self._owed else os.urandom(8).hex()
        connection.execute("BEGIN IMMEDIATE")
        try:
            if mark != self._mark:
                set_mark(connection, mark)
            for kind, key, body, schema in wanted.values():
                if body is None:
                    connection.execute("DELETE FROM document WHERE kind = ? AND key = ?", (kind, key))
                else:
                    connection.execute(WRITE, (kind, key, body, schema))
            connection.execute("COMMIT")
        except BaseException:
            # SQLite itself rolls back when the disk is full; that error is the one to tell.
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        self._mark, self._marked = mark, True


def _reached(path: Path, reserve: Reserve, steps: Mapping[int, Step]) -> sqlite3.Connection:
    """Connect, with what room there is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Containers' environments are in there; SQLite gives its other files the mode of this one.
    path.touch(mode=0o600)
    try:
        return _connect(path, steps)
    except sqlite3.OperationalError as error:
        reserve.give_up()
        try:
            connection = _connect(path, steps)
        except sqlite3.OperationalError:
            # Without the file that other processes would look at beside us, which needs room of its own.
            connection = _connect(path, None, "PRAGMA locking_mode=EXCLUSIVE")
        log.error("%s", _reason(path, error))
        return connection


def _connect(path: Path, steps: Mapping[int, Step] | None, *pragmas: str) -> sqlite3.Connection:
    """Without `steps` nothing is written."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in pragmas:
            connection.execute(pragma)
        refuse_later(connection, path)
        for pragma in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"):
            connection.execute(pragma)
        if steps is not None:
            bring_up(connection, steps)
        connection.execute("SELECT 1 FROM document LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


async def _written(work: asyncio.Future[None], then: Believe | None) -> None:
    """Wait until something is written, whoever gives up waiting; call `then` before the caller goes on."""
    if then is not None:
        work.add_done_callback(lambda work: None if work.cancelled() or work.exception() else then())
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):  # who is impatient is told the same
                await asyncio.wait([work])
        raise


def _by_key(changes: tuple[Change, ...]) -> _Documents:
    return {(change.kind, change.key): OwedRecord(*change, SCHEMA) for change in changes}


def _reason(path: Path, error: sqlite3.Error) -> str:
    """SQLite tells a full disk in several ways, depending on which of its files had to grow."""
    full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    with contextlib.suppress(OSError):
        full = full or free(path.parent) < _BLOCK
    return f"write {path}: {'no space left on device' if full else error}"
