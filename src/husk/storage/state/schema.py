"""The form of records, and the way of other versions' records to it. Each carries the number of its schema.

Older ones are brought up when the store is opened, by steps from one schema to the next; the store of a later version
is refused as a whole, and a single record that makes no sense is left as it is.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from husk.errors import SystemFault

SCHEMA = 2
"""The form of records that are written now; see `engine.migrations`."""

Step = Callable[[str, bytes], bytes]
"""Makes the body of a record of one kind what the next schema wants."""

NO_STEPS: Mapping[int, Step] = {}
WRITE = "INSERT OR REPLACE INTO document (kind, key, body, schema) VALUES (?, ?, ?, ?)"

# Whoever changes a record by hand, with SQLite's functions, makes a text of it.
_BODY = "CAST(body AS BLOB)"

# Rows of the first release have no number: theirs is 1, as is that of whoever leaves it out.
_TABLE = """
CREATE TABLE IF NOT EXISTS document (
    kind TEXT NOT NULL,
    key  TEXT NOT NULL,
    body BLOB NOT NULL,
    schema INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""

# One row, which says what the store was last: see `debts`.
_MARK = "CREATE TABLE IF NOT EXISTS mark (value TEXT NOT NULL)"


class UnreadableRecord(Exception):
    """A record that this version cannot make sense of; says why."""


def migrated(kind: str, body: bytes, schema: int, steps: Mapping[int, Step]) -> bytes:
    """The body of a record in the present form."""
    if schema > SCHEMA:
        raise UnreadableRecord(f"a later version of Husk wrote it (schema {schema}; this one knows {SCHEMA})")
    try:
        for number in range(schema, SCHEMA):
            body = steps[number](kind, body) if number in steps else body
    except Exception as error:  # whatever a step stumbles over: the record stays as it is
        raise UnreadableRecord(f"it cannot be brought from schema {schema} to {SCHEMA}: {error}") from error
    return body


def refuse_later(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise SystemFault(
            f"{path} was written by a later version of Husk (schema {found}; this one knows {SCHEMA}): start that "
            "version, or put back a backup from before it. Nothing was changed"
        )


def brought_up(connection: sqlite3.Connection) -> bool:
    """Tell if the tables have their present form."""
    return _numbered(connection) and _has_mark(connection)


def _numbered(connection: sqlite3.Connection) -> bool:
    rows = connection.execute("PRAGMA table_info(document)").fetchall()
    return any(name == "schema" for _, name, *_ in rows)


def _has_mark(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA table_info(mark)").fetchall())


def mark_of(connection: sqlite3.Connection) -> str:
    """The mark of the store; empty in one that has had none yet."""
    row = connection.execute("SELECT value FROM mark").fetchone() if _has_mark(connection) else None
    return row[0] if row else ""


def set_mark(connection: sqlite3.Connection, mark: str) -> None:
    """Give the store another mark, within a transaction."""
    connection.execute("DELETE FROM mark")
    connection.execute("INSERT INTO mark VALUES (?)", (mark,))


def bring_up(connection: sqlite3.Connection, steps: Mapping[int, Step]) -> None:
    """Make the tables, or bring them and the records to the present form, at once; what cannot be stays as it is."""
    current = brought_up(connection) and connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA
    if current and not connection.execute("SELECT 1 FROM document WHERE schema < ? LIMIT 1", (SCHEMA,)).fetchall():
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_TABLE)
        connection.execute(_MARK)
        if not _numbered(connection):
            connection.execute("ALTER TABLE document ADD COLUMN schema INTEGER NOT NULL DEFAULT 1")
        older = connection.execute(f"SELECT kind, key, {_BODY}, schema FROM document WHERE schema < ?", (SCHEMA,))
        for kind, key, body, schema in older.fetchall():
            with contextlib.suppress(UnreadableRecord):
                connection.execute(WRITE, (kind, key, migrated(kind, bytes(body), schema, steps), SCHEMA))
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def rows_of(connection: sqlite3.Connection, kind: str = "") -> list[tuple[str, str, bytes, int]]:
    """Kind, key, body and schema of all records, or those of one kind, whatever form the table has."""
    number = "schema" if _numbered(connection) else "1"
    where, values = ("WHERE kind = ?", (kind,)) if kind else ("", ())
    found = connection.execute(f"SELECT kind, key, {_BODY}, {number} FROM document {where}", values).fetchall()
    return [(kind, key, bytes(body), schema) for kind, key, body, schema in found]


def read_documents(
    path: Path, steps: Mapping[int, Step] = NO_STEPS, refused: dict[tuple[str, str], str] | None = None
) -> dict[str, dict[str, bytes]]:
    """All documents by kind and key as they stand at one moment, whether a daemon uses the file or not.

    Older ones are brought to the present form where that works; `refused` gets why it does not. SystemFault when the
    file is missing, damaged, or of a later version.
    """
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            refuse_later(connection, path)
            rows = rows_of(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SystemFault(f"{path} cannot be read: {error}") from None
    if verdict != "ok":
        raise SystemFault(f"{path} is damaged: {verdict}")
    documents: dict[str, dict[str, bytes]] = {}
    for kind, key, body, schema in rows:
        try:
            body = migrated(kind, body, schema, steps)
        except UnreadableRecord as error:
            if refused is not None:
                refused[kind, key] = str(error)
        documents.setdefault(kind, {})[key] = body
    return documents
