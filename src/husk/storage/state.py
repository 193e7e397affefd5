"""Where does the engine remember things? In one SQLite file, as JSON documents with a kind and a key.

A commit is one transaction and is written when `commit` returns, so that what the API acknowledged survives `kill -9`.
WAL with `synchronous=NORMAL`: a crash of the process loses nothing; a power cut may lose the last moments, never
consistency.

On a full disk a commit fails with a DiskFault and changes nothing, unless it only deletes. Those, and what has happened
already, such as the end of a process, use room that is kept for them (`reserve`). Where that is not enough either they
are not refused but owed: noted elsewhere (`debts`), seen by every reader, and written as soon as there is room.
"""

import asyncio
import contextlib
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from husk.errors import DiskFault, SystemFault
from husk.storage.debts import Debts
from husk.storage.reserve import Reserve, free

log = logging.getLogger(__name__)

# How long until what could not be written is tried again.
RETRY = 1.0
_BLOCK = 4096

_SCHEMA = """
CREATE TABLE IF NOT EXISTS document (
    kind TEXT NOT NULL,
    key  TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""


class Change(NamedTuple):
    """One document to write, or to delete when `body` is None."""

    kind: str
    key: str
    body: bytes | None


def read_documents(path: Path) -> dict[str, dict[str, bytes]]:
    """All documents by kind and key as they stand at one moment, whether a daemon uses the file or not.

    SystemFault when the file is missing or damaged.
    """
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            rows = connection.execute("SELECT kind, key, body FROM document").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SystemFault(f"{path} cannot be read: {error}") from None
    if verdict != "ok":
        raise SystemFault(f"{path} is damaged: {verdict}")
    documents: dict[str, dict[str, bytes]] = {}
    for kind, key, body in rows:
        documents.setdefault(kind, {})[key] = bytes(body)
    return documents


class StateStore:
    """All access goes through one thread: SQLite never blocks the event loop and never sees two writers."""

    def __init__(self, path: Path, connection: sqlite3.Connection, reserve: Reserve, debts: Debts) -> None:
        self._path = path
        self._connection = connection
        self._reserve = reserve
        self._debts = debts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state")
        # Changed by that thread alone: what has happened and is not written yet.
        self._owed = _by_key(tuple(Change(*change) for change in debts.read()))
        self._trouble = ""
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    def open(cls, path: Path, debts: Path | None = None) -> Self:
        """On a full disk too: reading needs little room, and none where there is none.

        `debts` is where to note what cannot be written, on another disk if possible.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        # Containers' environments are in there; SQLite gives its other files the mode of this one.
        path.touch(mode=0o600)
        reserve = Reserve(path.with_suffix(".reserve"))
        try:
            connection = _connect(path)
        except sqlite3.OperationalError as error:
            reserve.give_up()
            try:
                connection = _connect(path)
            except sqlite3.OperationalError:
                # Without the file that other processes would look at beside us, which needs room of its own.
                connection = _connect(path, "PRAGMA locking_mode=EXCLUSIVE")
            log.error("%s", _reason(path, error))
        store = cls(path, connection, reserve, Debts(debts, path))
        if not reserve.keep():
            store._in_trouble(f"write {path}: no space left on device")
        if store._owed:
            store._write_or_owe(())
        return store

    @property
    def trouble(self) -> str:
        """Why nothing can be written at present; empty when all is well."""
        return self._trouble

    def load(self, kind: str) -> dict[str, bytes]:
        """All documents of a kind; for the start of the daemon, before it serves."""
        found: dict[str, bytes] = dict(
            self._connection.execute("SELECT key, body FROM document WHERE kind = ?", (kind,)).fetchall()
        )
        for change in self._owed.values():
            if change.kind == kind:
                found.pop(change.key, None)
                found |= {} if change.body is None else {change.key: change.body}
        return found

    async def commit(self, *changes: Change) -> None:
        """Write all changes or none; they are on disk when this returns, even if the caller is cancelled meanwhile.

        DiskFault when the disk does not take them. What only deletes is never refused, see `settle`.
        """
        if all(change.body is None for change in changes):
            await self.settle(*changes)
            return
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._write, changes)
        await asyncio.shield(work)

    async def add(self, *changes: Change) -> None:
        """Commit what is new, for a caller who gives up what he has made when he is cancelled: then it is not there."""
        try:
            await self.commit(*changes)
        except asyncio.CancelledError:
            # The writing goes on without us; what is taken back is written after it.
            await asyncio.shield(self.settle(*(change._replace(body=None) for change in changes)))
            raise

    async def settle(self, *changes: Change) -> None:
        """Write what has happened: now, or else as soon as the disk lets us. It is not refused."""
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, self._write_or_owe, changes)
        # Not after the `await`: a caller who is cancelled owes all the same.
        work.add_done_callback(lambda _: self._try_later(loop))
        await asyncio.shield(work)

    def close(self) -> None:
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._owed:
            self._thread.submit(self._write_or_owe, ())
        self._thread.shutdown()
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

    def _write_or_owe(self, changes: tuple[Change, ...]) -> None:
        if not changes and not self._owed:
            return
        wanted = {**self._owed, **_by_key(changes)}
        try:
            self._write_with_reserve(tuple(wanted.values()))
        except DiskFault:
            if changes:
                self._owed = wanted
                self._debts.write(list(wanted.values()))

    def _write(self, changes: tuple[Change, ...]) -> None:
        if not self._reserve.keep():
            # The little room that is left is for what must be possible.
            raise self._in_trouble(f"write {self._path}: no space left on device")
        self._write_all(tuple({**self._owed, **_by_key(changes)}.values()))

    def _write_with_reserve(self, changes: tuple[Change, ...]) -> None:
        try:
            self._write_all(changes)
        except DiskFault:
            with contextlib.suppress(sqlite3.Error):
                # What is in the journal goes into the database, where it has its place; the journal begins anew in
                # the room that it has already.
                self._connection.execute("PRAGMA wal_checkpoint(RESTART)")
            try:
                self._write_all(changes)
            except DiskFault:
                if not self._reserve.give_up():
                    raise
                self._write_all(changes)

    def _write_all(self, changes: tuple[Change, ...]) -> None:
        """One transaction. DiskFault when the disk does not take it."""
        try:
            self._transact(changes)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError):
            raise
        except sqlite3.DatabaseError as error:
            raise self._in_trouble(_reason(self._path, error)) from error
        if self._owed:
            self._owed = {}
            self._debts.write([])
        if self._reserve.keep() and self._trouble:
            log.warning("%s can be written again", self._path)
            self._trouble = ""

    def _in_trouble(self, reason: str) -> DiskFault:
        if not self._trouble:
            log.error("%s: until there is room again, containers can end and things be removed, nothing more", reason)
        self._trouble = reason
        return DiskFault(reason)

    def _transact(self, changes: tuple[Change, ...]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for kind, key, body in changes:
                if body is None:
                    connection.execute("DELETE FROM document WHERE kind = ? AND key = ?", (kind, key))
                else:
                    connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?, ?)", (kind, key, body))
            connection.execute("COMMIT")
        except BaseException:
            # SQLite itself rolls back when the disk is full; that error is the one to tell.
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def _connect(path: Path, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in (*pragmas, "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"):
            connection.execute(pragma)
        connection.execute(_SCHEMA)
        connection.execute("SELECT 1 FROM document LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _by_key(changes: tuple[Change, ...]) -> dict[tuple[str, str], Change]:
    return {(change.kind, change.key): change for change in changes}


def _reason(path: Path, error: sqlite3.Error) -> str:
    """SQLite tells a full disk in several ways, depending on which of its files had to grow."""
    full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    with contextlib.suppress(OSError):
        full = full or free(path.parent) < _BLOCK
    return f"write {path}: {'no space left on device' if full else error}"
