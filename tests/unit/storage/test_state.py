"""The state store: a commit is whole, durable when it returns, and nobody else's to read."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from husk.errors import DiskFault, SystemFault
from husk.storage import state
from husk.storage.state import Change, StateStore, read_documents


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    store = StateStore.open(tmp_path / "below" / "state.db")
    yield store
    store.close()


def reopened(tmp_path: Path) -> dict[str, bytes]:
    """What another process finds now."""
    with sqlite3.connect(tmp_path / "below" / "state.db") as connection:
        return dict(connection.execute("SELECT key, body FROM document WHERE kind = 'k'").fetchall())


async def test_what_was_committed_is_there_for_the_next_daemon(store: StateStore, tmp_path: Path) -> None:
    await store.commit(Change("k", "a", b"1"), Change("k", "b", b"\x00\xff"))
    assert reopened(tmp_path) == store.load("k") == {"a": b"1", "b": b"\x00\xff"}


async def test_kinds_do_not_see_each_other(store: StateStore) -> None:
    await store.commit(Change("k", "a", b"1"), Change("other", "a", b"2"))
    await store.commit(Change("other", "a", None))
    assert store.load("k") == {"a": b"1"}
    assert store.load("other") == {}


async def test_a_commit_is_whole_or_nothing(store: StateStore) -> None:
    await store.commit(Change("k", "a", b"1"))
    with pytest.raises(sqlite3.IntegrityError):
        await store.commit(Change("k", "a", b"2"), Change("k", None, b"3"))  # type: ignore[arg-type]
    assert store.load("k") == {"a": b"1"}
    await store.commit(Change("k", "b", b"4"))
    assert store.load("k") == {"a": b"1", "b": b"4"}


async def test_a_full_disk_is_told_and_survived(store: StateStore) -> None:
    await store.commit(Change("k", "a", b"1"))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFault, match="no space left on device"):
        await store.commit(Change("k", "b", bytes(1 << 20)))
    assert "no space left on device" in store.trouble
    store._connection.execute("PRAGMA max_page_count = 1000000")
    await store.commit(Change("k", "c", b"3"))
    assert store.load("k") == {"a": b"1", "c": b"3"}
    assert store.trouble == ""


def make_full(store: StateStore) -> None:
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


def make_room(store: StateStore) -> None:
    store._connection.execute("PRAGMA max_page_count = 1000000")


async def test_what_has_happened_is_written_when_there_is_room(
    store: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "RETRY", 0.01)
    make_full(store)
    large = bytes(1 << 16)
    await store.settle(Change("k", "a", large))
    await store.settle(Change("k", "b", large))
    await store.settle(Change("k", "b", large + b"!"))
    assert reopened(tmp_path) == {}
    assert store.load("k") == {"a": large, "b": large + b"!"}
    make_room(store)
    async with asyncio.timeout(20):
        while not reopened(tmp_path):
            await asyncio.sleep(0.01)
    assert reopened(tmp_path) == store.load("k") == {"a": large, "b": large + b"!"}


async def test_the_next_commit_takes_along_what_is_owed(store: StateStore) -> None:
    make_full(store)
    await store.settle(Change("k", "a", bytes(1 << 16)), Change("k", "b", bytes(1 << 16)))
    make_room(store)
    await store.commit(Change("k", "b", b"newer"))
    assert store.load("k") == {"a": bytes(1 << 16), "b": b"newer"}


async def test_a_refused_commit_does_not_lose_what_is_owed(store: StateStore) -> None:
    make_full(store)
    await store.settle(Change("k", "a", bytes(1 << 16)))
    with pytest.raises(DiskFault):
        await store.commit(Change("k", "a", b"refused"), Change("k", "b", bytes(1 << 16)))
    make_room(store)
    await store.settle()
    assert store.load("k") == {"a": bytes(1 << 16)}


async def test_what_is_owed_is_known_to_the_next_daemon(tmp_path: Path) -> None:
    path, debts = tmp_path / "data" / "state.db", tmp_path / "run" / "state.owed"
    store = StateStore.open(path, debts)
    await store.commit(Change("k", "a", b"1"), Change("k", "b", b"2"))
    make_full(store)
    await store.settle(Change("k", "a", bytes(1 << 16)), Change("k", "b", None))
    assert debts.stat().st_mode & 0o777 == 0o600
    store.close()
    following = StateStore.open(path, debts)
    assert following.load("k") == {"a": bytes(1 << 16)}
    assert read_documents(path) == {"k": {"a": bytes(1 << 16)}}
    assert not debts.exists()
    following.close()


async def test_debts_of_another_store_are_left_alone(tmp_path: Path) -> None:
    debts = tmp_path / "state.owed"
    store = StateStore.open(tmp_path / "one.db", debts)
    make_full(store)
    await store.settle(Change("k", "a", bytes(1 << 16)))
    store.close()
    other = StateStore.open(tmp_path / "two.db", debts)
    assert other.load("k") == {}
    other.close()


async def test_a_cancelled_caller_does_not_take_the_commit_back(store: StateStore) -> None:
    commit = asyncio.get_running_loop().create_task(store.commit(Change("k", "a", b"1")))
    await asyncio.sleep(0)
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit
    await store.commit()
    assert store.load("k") == {"a": b"1"}


def test_only_its_owner_reads_it(store: StateStore, tmp_path: Path) -> None:
    asyncio.run(store.commit(Change("k", "a", b"secret")))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "below").iterdir()}
    assert modes["state.db"] == 0o600
    assert set(modes.values()) == {0o600}


changes = st.lists(
    st.lists(st.builds(Change, st.just("k"), st.sampled_from("abc"), st.none() | st.binary(max_size=4)), max_size=4)
)


@given(changes)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_last_write_of_a_key_counts(store: StateStore, commits: list[list[Change]]) -> None:
    await store.commit(*(Change("k", key, None) for key in "abc"))
    expected: dict[str, bytes] = {}
    for commit in commits:
        await store.commit(*commit)
        for _, key, body in commit:
            expected.pop(key, None)
            expected |= {} if body is None else {key: body}
    assert store.load("k") == expected


async def test_documents_can_be_read_beside_their_owner_and_after_a_crash(tmp_path):
    opened = StateStore.open(tmp_path / "state.db")
    await opened.commit(Change("a", "1", b"one"), Change("b", "2", b"two"))
    expected = {"a": {"1": b"one"}, "b": {"2": b"two"}}
    assert read_documents(tmp_path / "state.db") == expected
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("state.db", "state.db-wal"):
        shutil.copy(tmp_path / name, crashed / name)
    opened.close()
    assert read_documents(crashed / "state.db") == expected
    assert read_documents(tmp_path / "state.db") == expected


def test_a_file_that_is_no_store_is_told(tmp_path):
    with pytest.raises(SystemFault, match="cannot be read"):
        read_documents(tmp_path / "state.db")
    assert not (tmp_path / "state.db").exists()
    (tmp_path / "state.db").write_bytes(b"no database" * 100)
    with pytest.raises(SystemFault, match="cannot be read"):
        read_documents(tmp_path / "state.db")
