"""Where does the engine remember things? In one SQLite file, as JSON documents with a kind and a key.

A commit is one transaction and is written when `commit` returns, so that what the API acknowledged survives `kill -9`.
WAL with `synchronous=NORMAL`: a crash of the process loses nothing; a power cut may lose the last moments, never
consistency.
"""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

from husk.errors import SystemFault

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

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread

    @classmethod
    def open(cls, path: Path) -> Self:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Containers' environments are in there; SQLite gives its other files the mode of this one.
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_SCHEMA)
        return cls(connection, ThreadPoolExecutor(1, thread_name_prefix="state"))

    def load(self, kind: str) -> dict[str, bytes]:
        """All documents of a kind; for the start of the daemon, before it serves."""
        rows = self._connection.execute("SELECT key, body FROM document WHERE kind = ?", (kind,))
        return dict(rows.fetchall())

    async def commit(self, *changes: Change) -> None:
        """Write all changes or none; they are on disk when this returns, even if the caller is cancelled meanwhile."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._write, changes)
        await asyncio.shield(work)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _write(self, changes: tuple[Change, ...]) -> None:
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
                connection.execute("ROLLBACK")
            raise
