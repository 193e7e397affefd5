"""The state store: a commit is whole, durable when it returns, and nobody else's to read."""

import asyncio
import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from husk.errors import DiskFault, SystemFault
from husk.storage.state import store as state
from husk.storage.state.debts import Debts, OwedRecord
from husk.storage.state.schema import SCHEMA, read_documents
from husk.storage.state.store import Change, StateStore
from tests.support.full_store import SmallStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SmallStore]:
    store = SmallStore.open(tmp_path / "below" / "state.db")
    yield store
    store.close()


def reopened(tmp_path: Path) -> dict[str, bytes]:
    """Return the records that another process finds now."""
    with sqlite3.connect(tmp_path / "below" / "state.db") as connection:
        return dict(connection.execute("SELECT key, body FROM document WHERE kind = 'k'").fetchall())


async def test_what_was_committed_is_there_for_the_next_daemon(store: SmallStore, tmp_path: Path) -> None:
    await store.commit(Change("k", "a", b"1"), Change("k", "b", b"\x00\xff"))
    assert reopened(tmp_path) == store.load("k") == {"a": b"1", "b": b"\x00\xff"}


async def test_kinds_do_not_see_each_other(store: SmallStore) -> None:
    await store.commit(Change("k", "a", b"1"), Change("other", "a", b"2"))
    await store.commit(Change("other", "a", None))
    assert store.load("k") == {"a": b"1"}
    assert store.load("other") == {}


async def test_a_commit_is_whole_or_nothing(store: SmallStore) -> None:
    await store.commit(Change("k", "a", b"1"))
    with pytest.raises(sqlite3.IntegrityError):
        await store.commit(Change("k", "a", b"2"), Change("k", None, b"3"))  # type: ignore[arg-type]
    assert store.load("k") == {"a": b"1"}
    await store.commit(Change("k", "b", b"4"))
    assert store.load("k") == {"a": b"1", "b": b"4"}


async def test_a_full_disk_is_told_and_survived(store: SmallStore) -> None:
    await store.commit(Change("k", "a", b"1"))
    store.fill()
    with pytest.raises(DiskFault, match="no space left on device"):
        await store.commit(Change("k", "b", bytes(1 << 20)))
    assert "no space left on device" in store.trouble
    store.make_room()
    await store.commit(Change("k", "c", b"3"))
    assert store.load("k") == {"a": b"1", "c": b"3"}
    assert store.trouble == ""


async def test_what_has_happened_is_written_when_there_is_room(
    store: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "RETRY", 0.01)
    store.fill()
    large = bytes(1 << 16)
    await store.settle(Change("k", "a", large))
    await store.settle(Change("k", "b", large))
    await store.settle(Change("k", "b", large + b"!"))
    assert reopened(tmp_path) == {}
    assert store.load("k") == {"a": large, "b": large + b"!"}
    store.make_room()
    async with asyncio.timeout(20):
        while not reopened(tmp_path):
            await asyncio.sleep(0.01)
    assert reopened(tmp_path) == store.load("k") == {"a": large, "b": large + b"!"}


async def test_the_next_commit_takes_along_what_is_owed(store: SmallStore) -> None:
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)), Change("k", "b", bytes(1 << 16)))
    store.make_room()
    await store.commit(Change("k", "b", b"newer"))
    assert store.load("k") == {"a": bytes(1 << 16), "b": b"newer"}


async def test_a_refused_commit_does_not_lose_what_is_owed(store: SmallStore) -> None:
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)))
    with pytest.raises(DiskFault):
        await store.commit(Change("k", "a", b"refused"), Change("k", "b", bytes(1 << 16)))
    store.make_room()
    await store.settle()
    assert store.load("k") == {"a": bytes(1 << 16)}


async def test_what_is_owed_is_known_to_the_next_daemon(tmp_path: Path) -> None:
    path, debts = tmp_path / "data" / "state.db", tmp_path / "run" / "state.owed"
    store = SmallStore.open(path, debts)
    await store.commit(Change("k", "a", b"1"), Change("k", "b", b"2"))
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)), Change("k", "b", None))
    assert debts.stat().st_mode & 0o777 == 0o600
    store.close()
    following = StateStore.open(path, debts)
    assert following.load("k") == {"a": bytes(1 << 16)}
    assert read_documents(path) == {"k": {"a": bytes(1 << 16)}}
    assert not debts.exists()
    following.close()


async def owing(path: Path, debts: Path) -> SmallStore:
    """A store that has the records `a` and `b`, and owes that `a` changed."""
    store = SmallStore.open(path, debts)
    await store.commit(Change("k", "a", b"1"), Change("k", "b", b"2"))
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)))
    store.make_room()
    return store


async def test_a_debt_that_was_paid_is_not_paid_again_over_what_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = tmp_path / "data" / "state.db", tmp_path / "run" / "state.owed"
    store = await owing(path, page)
    with monkeypatch.context() as patch:
        # As if the daemon were killed before it removes the page, or could not.
        patch.setattr(Path, "unlink", refuse)
        await store.commit(Change("k", "a", None), Change("k", "b", b"3"))
        store.close()
    assert page.exists()
    following = StateStore.open(path, page)
    assert following.load("k") == {"b": b"3"} == read_documents(path)["k"]
    assert not page.exists()
    following.close()


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


async def test_a_page_from_before_another_daemon_is_not_paid(tmp_path: Path) -> None:
    """That one had another exec root, where it found no page."""
    path, page = tmp_path / "state.db", tmp_path / "run" / "state.owed"
    store = await owing(path, page)
    store.die()
    with closing(StateStore.open(path, tmp_path / "elsewhere" / "state.owed")) as other:
        await other.commit(Change("k", "a", None))
    with closing(StateStore.open(path, page)) as following:
        assert following.load("k") == {"b": b"2"}


async def test_a_page_stays_until_what_it_notes_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, page = tmp_path / "state.db", tmp_path / "run" / "state.owed"
    store = await owing(path, page)
    monkeypatch.setattr("husk.storage.state.store.os.fdatasync", refuse)
    await store.settle()
    assert store.load("k") == {"a": bytes(1 << 16), "b": b"2"} == read_documents(path)["k"]
    assert page.exists()
    store.close()


async def test_what_could_not_be_noted_is_noted_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "RETRY", 0.01)
    page = tmp_path / "run" / "state.owed"
    (tmp_path / "run").write_text("")
    store = SmallStore.open(tmp_path / "state.db", page)
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)))
    (tmp_path / "run").unlink()
    async with asyncio.timeout(20):
        while not page.exists():
            await asyncio.sleep(0.01)
    store.die()
    with closing(StateStore.open(tmp_path / "state.db", page)) as following:
        assert following.load("k") == {"a": bytes(1 << 16)}


def note(page: Path, store: Path, *changes: OwedRecord) -> None:
    """Leave a page as a daemon of another version would, for a store without a mark."""
    assert Debts(page, store).write(list(changes), "")


def test_debts_of_an_older_version_take_every_step(tmp_path: Path) -> None:
    def first(kind: str, body: bytes) -> bytes:
        return msgspec.json.encode({"name": kind + msgspec.json.decode(body)["title"]})

    path, page = tmp_path / "state.db", tmp_path / "state.owed"
    note(page, path, OwedRecord("k", "old", b'{"title": "a"}', 1), OwedRecord("k", "odd", b"[]", 1))
    with closing(StateStore.open(path, page, {1: first})) as store:
        assert store.records("k", Record) == {"old": Record("ka")}
        assert store.aside("k") == {"odd"}
    refused: dict[tuple[str, str], str] = {}
    assert read_documents(path, {1: first}, refused)["k"]["odd"] == b"[]"
    assert list(refused) == [("k", "odd")], "it has its own schema in the store too"


def test_debts_of_a_later_version_are_refused_unchanged(tmp_path: Path) -> None:
    path, page = tmp_path / "state.db", tmp_path / "state.owed"
    note(page, path, OwedRecord("k", "late", b"{}", SCHEMA + 1))
    for _ in range(2):
        with pytest.raises(SystemFault, match=r"state\.owed was written by a later version of Husk"):
            StateStore.open(path, page)
    assert page.exists() and read_documents(path) == {}


async def test_debts_of_another_store_are_left_alone(tmp_path: Path) -> None:
    debts = tmp_path / "state.owed"
    store = SmallStore.open(tmp_path / "one.db", debts)
    store.fill()
    await store.settle(Change("k", "a", bytes(1 << 16)))
    store.close()
    other = StateStore.open(tmp_path / "two.db", debts)
    assert other.load("k") == {}
    other.close()


async def test_a_cancelled_caller_does_not_take_the_commit_back(store: SmallStore) -> None:
    commit = asyncio.get_running_loop().create_task(store.commit(Change("k", "a", b"1")))
    await asyncio.sleep(0)
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit
    await store.commit()
    assert store.load("k") == {"a": b"1"}


async def test_memory_follows_what_is_written_though_its_writer_is_cancelled(store: SmallStore) -> None:
    believed: list[str] = []
    for name, write in (("commit", store.commit), ("settle", store.settle)):
        work = asyncio.get_running_loop().create_task(
            write(Change("k", name, b"1"), then=lambda name=name: believed.append(name))  # type: ignore[misc]
        )
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert believed.pop() == name and store.load("k")[name] == b"1"


async def test_memory_does_not_follow_what_is_not_written(store: SmallStore) -> None:
    believed: list[str] = []
    with pytest.raises(sqlite3.IntegrityError):
        await store.commit(Change("k", None, b"1"), then=lambda: believed.append("a"))  # type: ignore[arg-type]
    assert believed == [] and store.load("k") == {}


def test_only_its_owner_reads_it(store: SmallStore, tmp_path: Path) -> None:
    asyncio.run(store.commit(Change("k", "a", b"secret")))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "below").iterdir()}
    assert modes["state.db"] == 0o600
    assert set(modes.values()) == {0o600}


changes = st.lists(
    st.lists(st.builds(Change, st.just("k"), st.sampled_from("abc"), st.none() | st.binary(max_size=4)), max_size=4)
)


@given(changes)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_last_write_of_a_key_counts(store: SmallStore, commits: list[list[Change]]) -> None:
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


class Record(msgspec.Struct):
    name: str


def raw(path: Path, *rows: tuple[str, bytes, int], version: int = SCHEMA) -> None:
    """Write rows as another version would."""
    StateStore.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for key, body, schema in rows:
            connection.execute("INSERT INTO document VALUES ('k', ?, ?, ?)", (key, body, schema))
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()


def test_a_record_that_cannot_be_read_is_put_aside_and_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state.db"
    raw(path, ("good", b'{"name": "a"}', SCHEMA), ("bad", b'{"name": 1}', SCHEMA), ("late", b"{}", SCHEMA + 1))
    with closing(StateStore.open(path)) as store:
        assert store.records("k", Record) == {"good": Record("a")}
        assert store.aside("k", "other") == {"bad", "late"}
        assert set(store.load("k")) == {"good", "bad", "late"}
    assert "the record of k bad cannot be read and is put aside: Expected `str`" in caplog.text
    assert f"a later version of Husk wrote it (schema {SCHEMA + 1}; this one knows {SCHEMA})" in caplog.text


def test_older_records_take_every_step(tmp_path: Path) -> None:
    def first(kind: str, body: bytes) -> bytes:
        return msgspec.json.encode({"name": kind + msgspec.json.decode(body)["title"]})

    path = tmp_path / "state.db"
    raw(path, ("old", b'{"title": "a"}', 1), ("new", b'{"name": "b"}', SCHEMA), ("odd", b"[]", 1))
    refused: dict[tuple[str, str], str] = {}
    assert read_documents(path, {1: first}, refused)["k"]["old"] == b'{"name":"ka"}'
    assert list(refused) == [("k", "odd")]
    with closing(StateStore.open(path, None, {1: first})) as store:
        assert store.records("k", Record) == {"old": Record("ka"), "new": Record("b")}
        assert store.aside("k") == {"odd"}
    with closing(StateStore.open(path)) as store:
        assert set(store.records("k", Record)) == {"old", "new"}


def test_the_file_of_a_later_version_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    raw(path, version=SCHEMA + 1)
    before = path.read_bytes()
    for opening in (StateStore.open, read_documents):
        with pytest.raises(SystemFault, match=f"later version of Husk .schema {SCHEMA + 1}; this one knows {SCHEMA}"):
            opening(path)
    assert path.read_bytes() == before


async def test_lazy_changes_do_not_wait_for_the_disk(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("husk.storage.state.store.os.fdatasync", synced.append)
    await store.commit(Change("k", "a", b"1"), lazy=True)
    assert not synced
    await store.commit(Change("k", "b", b"2"))
    assert len(synced) == 1
    await asyncio.gather(*(store.commit(Change("k", str(n), b"3")) for n in range(50)))
    assert 2 <= len(synced) <= 51


async def test_what_is_settled_soon_is_written_before_what_is_committed_then(store: SmallStore) -> None:
    store.settle_soon(Change("k", "a", b"1"))
    store.settle_soon(Change("k", "b", b"1"))
    await store.commit(Change("k", "a", b"2"))
    assert store.load("k") == {"a": b"2", "b": b"1"}
    store.settle_soon(Change("k", "a", b"3"))
    await store.settle(Change("k", "a", None))
    assert store.load("k") == {"b": b"1"}


async def test_what_is_settled_at_once_is_one_transaction(store: SmallStore, tmp_path: Path) -> None:
    await store.commit(*(Change("k", str(number), b"1") for number in range(20)))
    begun = list[str]()
    store.connection.set_trace_callback(lambda said: begun.append(said) if said.startswith("BEGIN") else None)
    await asyncio.gather(*(store.settle(Change("k", str(number), None)) for number in range(20)))
    assert reopened(tmp_path) == {}
    assert 0 < len(begun) < 20


async def test_what_is_settled_after_a_commit_is_written_after_it(store: SmallStore) -> None:
    settled = [store.settle(Change("k", "a", b"first")), store.commit(Change("k", "a", b"second"))]
    await asyncio.gather(*settled, store.settle(Change("k", "a", None)))
    assert store.load("k") == {}


@pytest.mark.parametrize("what", ["garbage", "half", "directory", "loop"])
def test_a_store_that_cannot_be_opened_says_so_in_words(tmp_path: Path, what: str) -> None:
    path = tmp_path / "state.db"
    match what:
        case "garbage":
            path.write_bytes(b"garbage" * 1000)
        case "half":
            StateStore.open(path).close()
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        case "directory":
            path.mkdir()
        case "loop":
            path.symlink_to("state.db")
    with pytest.raises(SystemFault, match=r"state\.db cannot be opened: .* put it back from a backup"):
        StateStore.open(path)
