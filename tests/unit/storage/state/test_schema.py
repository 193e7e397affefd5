"""Records of other versions: brought up, left alone, or refused as a whole."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.storage.state.schema import (
    SCHEMA,
    UnreadableRecord,
    bring_up,
    brought_up,
    migrated,
    read_documents,
    refuse_later,
    rows_of,
)

FIRST = "CREATE TABLE document (kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, key))"


def louder(kind: str, body: bytes) -> bytes:
    if body == b"odd":
        raise ValueError("it is odd")
    return body.upper()


STEPS = {1: louder}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(path, isolation_level=None)
    yield opened
    opened.close()


def test_a_record_goes_all_steps_from_its_own_schema_on() -> None:
    assert migrated("image", b"a", 1, STEPS) == b"A"
    assert migrated("image", b"a", SCHEMA, STEPS) == b"a"
    assert migrated("image", b"a", 1, {}) == b"a"
    with pytest.raises(UnreadableRecord, match="a later version of Husk wrote it"):
        migrated("image", b"a", SCHEMA + 1, STEPS)
    with pytest.raises(UnreadableRecord, match="cannot be brought from schema 1 to 2: it is odd"):
        migrated("image", b"odd", 1, STEPS)


def test_a_store_of_the_first_release_is_brought_up(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(FIRST)
    connection.execute("INSERT INTO document VALUES ('image', 'a', 'text'), ('image', 'b', x'6f6464')")
    assert not brought_up(connection) and rows_of(connection)[0] == ("image", "a", b"text", 1)
    bring_up(connection, STEPS)
    assert brought_up(connection)
    assert sorted(rows_of(connection)) == [("image", "a", b"TEXT", SCHEMA), ("image", "b", b"odd", 1)]
    bring_up(connection, STEPS)
    assert ("image", "a", b"TEXT", SCHEMA) in rows_of(connection, "image") and rows_of(connection, "network") == []


def test_one_row_that_somebody_wrote_by_hand_is_brought_up_as_well(connection: sqlite3.Connection) -> None:
    bring_up(connection, STEPS)
    connection.execute("INSERT INTO document (kind, key, body) VALUES ('image', 'a', 'text')")
    bring_up(connection, STEPS)
    assert rows_of(connection) == [("image", "a", b"TEXT", SCHEMA)]


def test_what_is_cut_off_in_the_middle_has_not_happened(connection: sqlite3.Connection) -> None:
    connection.execute(FIRST)
    connection.execute("INSERT INTO document VALUES ('image', 'a', 'text')")

    def interrupted(kind: str, body: bytes) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring_up(connection, {1: interrupted})
    assert not connection.in_transaction and not brought_up(connection)
    assert rows_of(connection) == [("image", "a", b"text", 1)]


def test_the_store_of_a_later_version_is_refused_as_a_whole(connection: sqlite3.Connection, path: Path) -> None:
    bring_up(connection, {})
    refuse_later(connection, path)
    connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(SystemFault, match=r"was written by a later version of Husk .*Nothing was changed"):
        refuse_later(connection, path)
    with pytest.raises(SystemFault, match="later version"):
        read_documents(path)


def test_a_look_changes_nothing_and_tells_what_it_cannot_read(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(FIRST)
    connection.execute("INSERT INTO document VALUES ('image', 'a', 'text'), ('image', 'b', 'odd')")
    refused: dict[tuple[str, str], str] = {}
    assert read_documents(path, STEPS, refused) == {"image": {"a": b"TEXT", "b": b"odd"}}
    assert list(refused) == [("image", "b")] and not brought_up(connection)


@pytest.mark.parametrize("content", [None, b"", b"no database" * 500])
def test_what_is_no_store_is_told(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemFault, match="cannot be read"):
        read_documents(path)
