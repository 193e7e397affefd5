"""The move into a shared store: all or nothing, wherever a crash comes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from husk.config import ClusterStoreConfig
from husk.errors import Conflict, DiskFault, SystemFault
from husk.storage.state.store import Change, StateStore
from husk.swarm.membership.moving import copy, drop, everything
from husk.swarm.model.services import ClusterObject, Service, ServiceSpec, Task
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import Swarm
from husk.swarm.state.parts import store_of
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Delete, Put
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.support.waiting import until_async
from tests.unit.swarm.swarm_room import SwarmRoom, task


def swarm(id: str = "s") -> Swarm:
    return Swarm(id=id, version=0, created_at="", updated_at="", spec=SwarmSpec(), worker_token="w", manager_token="m")


def service(id: str) -> Service:
    return Service(id=id, version=0, created_at="", updated_at="", spec=ServiceSpec(name=id))


def config(id: str, size: int) -> ClusterObject:
    return ClusterObject(
        id=id, kind="config", version=0, created_at="", updated_at="", name=id, labels={}, sealed=b"x" * size
    )


class Fragile(SqliteStore):
    """Ends with the transaction of a number, before it or after it was done."""

    def __init__(self, state: StateStore) -> None:
        super().__init__(state)
        self.left = -1
        self.after = False
        self.count = 0
        self.largest = 0

    async def commit(self, *steps: Any, **options: Any) -> int:
        self.count += 1
        self.largest = max(self.largest, len(steps))
        self.left -= 1
        if self.left == 0 and not self.after:
            raise SystemFault("died")
        revision = await super().commit(*steps, **options)
        if self.left == 0:
            raise SystemFault("died")
        return revision


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Fragile]:
    state = StateStore.open(tmp_path / "target.db")
    yield Fragile(state)
    state.close()


@pytest.fixture
async def records(state: StateStore) -> SwarmRecords:
    made = SwarmRecords.load(SqliteStore(state))
    web = service("web")
    await made.save(swarm(), web, config("large", 600_000), config("larger", 600_000))
    await made.save(*(task(web, slot=slot) for slot in range(250)))
    await made.commit(Put("overlay", "lan", b'{"id":"lan"}'), Put("address", "lan/10.0.0.2", b'{"network":"lan"}'))
    return made


async def contents(store: SqliteStore) -> dict[tuple[str, str], dict[str, Any]]:
    return {r.name: msgspec.json.decode(r.body) | {"version": 0} for r in (await everything(store)).records}


async def test_everything_comes_over_in_transactions_that_etcd_takes(records: SwarmRecords, target: Fragile) -> None:
    assert await copy(records.store, target) == 256
    assert await contents(target) == await contents(records.store)  # type: ignore[arg-type]
    assert target.largest <= 128 and target.count == 9
    await copy(records.store, target)
    assert await contents(target) == await contents(records.store)  # type: ignore[arg-type]
    await drop(records.store)
    await drop(records.store)
    assert (await everything(records.store)).records == ()


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_any_step_of_the_copy_starts_over(records: SwarmRecords, target: Fragile, after: bool) -> None:
    target.after = after
    step = 0
    while True:
        step += 1
        target.left = step
        # It is the newest that comes over, not what a former try had.
        await records.save(service(f"s{step}"))
        with contextlib.suppress(SystemFault):
            await copy(records.store, target)
            break
    assert step > 7 and await contents(target) == await contents(records.store)  # type: ignore[arg-type]


@pytest.mark.parametrize("after", [False, True])
async def test_a_move_that_dies_has_the_one_store_or_the_other(
    tmp_path: Path, state: StateStore, target: Fragile, after: bool
) -> None:
    where = ClusterStoreConfig("etcd://192.0.2.1", (Path("/ca"), Path("/cert"), Path("/key")))
    target.after = after
    room = SwarmRoom(tmp_path, state, opener=lambda where: target)
    await room.init()
    await room.store.save(service("web"))
    step = 0
    while store_of(state) is None:
        step += 1
        target.left = step
        again = SwarmRoom(tmp_path, state, opener=lambda where: target)
        assert again.cluster.active and set(again.store.services) == {"web"}, "SQLite is the store until it is not"
        with contextlib.suppress(SystemFault):
            await again.services.node_role.manager_role.move_to(where)
    assert step > 3 and store_of(state) == where
    assert again.store.shared and set(again.store.services) == {"web"} and again.cluster.node.id == room.cluster.node_id
    assert not state.load("service") and not state.load("swarm")
    await until_async(lambda: again.store.leadership.leading, "that it plans")
    await again.store.save(service("new"), checks=again.store.leadership.checks)
    assert await target.get("service", "new") is not None
    await again.services.node_role.manager_role.move_to(where)
    await again.services.close()


async def test_copies_that_cannot_be_dropped_do_not_undo_a_move(
    tmp_path: Path, state: StateStore, target: Fragile, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = SwarmRoom(tmp_path, state, opener=lambda where: target)
    await room.init()
    commit = SqliteStore.commit

    async def read_only(store: SqliteStore, *steps: Any, **how: Any) -> int:
        if store is not target and any(isinstance(step, Delete) for step in steps):
            raise DiskFault("the disk cannot be written")
        return await commit(store, *steps, **how)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "commit", read_only)
        await room.services.node_role.manager_role.move_to(ClusterStoreConfig("etcd://192.0.2.1"))
    assert room.node_role.manager_role.shared is not None and room.store.shared and store_of(state) is not None
    assert state.load("swarm"), "the next start drops them"
    await room.services.close()


async def test_what_cannot_be_written_down_is_not_moved(tmp_path: Path, state: FullStore, target: Fragile) -> None:
    room = SwarmRoom(tmp_path, state, opener=lambda where: target)
    await room.init()
    state.full = True
    with pytest.raises(DiskFault):
        await room.services.node_role.manager_role.move_to(ClusterStoreConfig("etcd://192.0.2.1"))
    state.full = False
    assert store_of(state) is None and not room.store.shared and room.store.leadership.leading
    await room.store.save(service("web"))
    assert "web" in state.load("service")


async def test_a_store_with_another_swarm_is_left_alone(records: SwarmRecords, target: Fragile) -> None:
    await SwarmRecords(target).save(swarm("other"), service("theirs"))
    with pytest.raises(Conflict, match="another swarm"):
        await copy(records.store, target)
    assert len((await everything(target)).records) == 2


async def test_what_cannot_be_read_stays_where_it_is(records: SwarmRecords, state: StateStore, target: Fragile) -> None:
    await state.commit(Change("service", "odd", b'{"id":7}'))
    await copy(records.store, target)
    assert await target.get("service", "odd") is None and "odd" in state.load("service")


async def test_writers_wait_for_the_move_and_go_on_in_the_new_store(records: SwarmRecords, target: Fragile) -> None:
    await target.commit(Put("other", "x", b"{}"))
    old, web = records.store, records.services["web"]
    some = next(iter(records.tasks.values()))

    def change(record: Task) -> Task:
        return but(record, desired_state="shutdown")

    async with records.still():
        waiting = asyncio.gather(records.amend(some, change), records.save(service("new")))
        await asyncio.sleep(0)
        await copy(old, target)
        assert len(await contents(target)) == 256
        records.switch(target, await everything(target))
    await waiting
    assert records.tasks[some.id].desired_state == "shutdown"
    assert await old.get("service", "new") is None and await target.get("service", "new") is not None
    await records.save(records.services["web"])
    assert records.services["web"].spec == web.spec
