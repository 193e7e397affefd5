"""The cluster store of one host: the contract of all stores, and what is its own."""

import asyncio
from pathlib import Path

import pytest

from husk.errors import DiskFault
from husk.storage.state.store import Change, StateStore
from husk.swarm.state import sqlite as embedded
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import NEW, Put
from tests.support.store_contract import StoreContract, body, reading, text_of
from tests.support.waiting import until_async


class TestContract(StoreContract):
    @pytest.fixture
    def store(self, state: StateStore) -> ClusterStore:
        return SqliteStore(state)


async def test_a_restart_keeps_records_and_versions_and_ends_leases(tmp_path: Path):
    state = StateStore.open(tmp_path / "state.db")
    store = SqliteStore(state)
    version = await store.commit(Put("service", "a", body("1"), NEW))
    lease = await store.lease(60)
    await store.commit(Put("leader", "planner", body("me"), NEW, lease.id))
    await store.close()
    state.close()
    state = StateStore.open(tmp_path / "state.db")
    again = SqliteStore(state)
    assert again.load("service", bytes.decode).keys() == {"a"} and not again.unreadable("service")
    found = await again.get("service", "a")
    assert found is not None and found.version == version and text_of(found) == "1"
    assert await again.get("leader", "planner") is None
    assert await again.commit(Put("service", "a", body("2"), version)) > version
    state.close()


async def test_what_the_disk_refuses_is_taken_back_and_not_told(state: StateStore, monkeypatch):
    store = SqliteStore(state)
    version = await store.commit(Put("service", "a", body("1"), NEW))
    commit = state.commit
    full = asyncio.Event()

    async def failing(*changes: Change, lazy: bool = False) -> None:
        if b"refused" in (changes[0].body or b""):
            await full.wait()
            raise DiskFault("no space left on device")
        await commit(*changes, lazy=lazy)

    monkeypatch.setattr(state, "commit", failing)
    async with reading(store.watch("service")) as reader:
        await until_async(lambda: reader.told, "the beginning")
        steps = Put("service", "a", body("refused"), version), Put("service", "b", body("refused"), NEW)
        refused = asyncio.gather(store.commit(*steps), return_exceptions=True)
        await asyncio.sleep(0)
        later = await store.commit(Put("service", "c", body("1"), NEW))
        assert later == version + 2 and len(reader.told) == 1, "what came later is told later"
        full.set()
        assert isinstance((await refused)[0], DiskFault)
        await until_async(lambda: reader.knows(a="1", c="1"), "what was not refused")
    await store.commit(Put("service", "a", body("2"), version), Put("service", "b", body("1"), NEW))


async def test_a_reader_who_is_too_slow_starts_over(state: StateStore, monkeypatch):
    monkeypatch.setattr(embedded, "MOST_UNREAD", 3)
    store = SqliteStore(state)
    news = store.watch("task")
    assert (await anext(news)).all
    for number in range(10):
        await store.commit(Put("task", str(number), body("1")), lazy=True)
    told = await anext(news)
    assert told.all and len(told.records) == 10
    last = await store.commit(Put("task", "last", body("1")))
    told = await anext(news)
    assert not told.all and told.revision == last


async def test_a_watch_from_an_old_revision_starts_over(state: StateStore):
    store = SqliteStore(state)
    old = await store.commit(Put("task", "a", body("1")))
    await store.commit(Put("task", "b", body("1")))
    async with reading(store.watch("task", after=old)) as reader:
        await until_async(lambda: reader.knows(a="1", b="1"), "all there is")
        assert reader.beginnings == 1


async def test_a_record_that_cannot_be_read_has_a_version_all_the_same(state: StateStore):
    await state.commit(Change("service", "bad", b"{"))
    store = SqliteStore(state)
    found = await store.get("service", "bad")
    assert found is not None and found.version > NEW
