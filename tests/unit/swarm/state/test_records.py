"""Records of the cluster: written with versions, found again, looked up as Docker does."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from husk.errors import DiskFault, InvalidParameter, NotFound, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.manager.planner import Create
from husk.swarm.model.node import Node
from husk.swarm.model.services import SECOND, ClusterObject, Service, ServiceSpec, Task
from husk.swarm.model.swarm import KEY
from husk.swarm.spec.defaults import DEFAULT_RESTART_DELAY
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.records import SwarmRecords, UnreadableRecords, in_sequence, resolve
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Check, ClusterRecord, Delete, News, Stale, Step
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.support.full_store import FullStore
from tests.support.waiting import soon, until_async
from tests.unit.swarm.manager.test_planner import START, make_service, make_task, plan
from tests.unit.swarm.membership.test_moving import swarm
from tests.unit.swarm.swarm_room import task


@pytest.fixture
def records(state: StateStore) -> SwarmRecords:
    return SwarmRecords.load(SqliteStore(state))


def service(id: str) -> Service:
    return Service(id=id, version=0, created_at="", updated_at="", spec=ServiceSpec(name=f"name-{id}"))


def secret(id: str) -> ClusterObject:
    return ClusterObject(
        id=id, kind="secret", version=0, created_at="", updated_at="", name=id, labels={}, sealed=b"\x00\xff"
    )


async def test_what_is_saved_is_there_after_a_restart(tmp_path: Path):
    state = StateStore.open(tmp_path / "state.db")
    store = SwarmRecords.load(SqliteStore(state))
    await store.save(service("a"), service("b"), secret("k"))
    await store.delete(store.services["b"])
    state.close()
    again = StateStore.open(tmp_path / "state.db")
    reloaded = SwarmRecords.load(SqliteStore(again))
    assert set(reloaded.services) == {"a"} and reloaded.secrets["k"].sealed == b"\x00\xff"
    assert not reloaded.configs
    before = max(reloaded.services["a"].version, reloaded.secrets["k"].version)
    await reloaded.save(service("c"))
    assert reloaded.services["c"].version > before
    again.close()


async def test_after_an_hour_back_a_daemon_that_starts_anew_restarts_what_failed(state: StateStore):
    store = SwarmRecords(SqliteStore(state), FakeClock(START))
    failed = but(make_task(1, "failed"), version=0, restarts=(START - SECOND,))
    await store.save(but(make_service(1), version=0), failed)
    clock = FakeClock(START - 3600 * SECOND)
    found = SwarmRecords.load(SqliteStore(state), clock)
    waiting = plan(found.services["s"], found.tasks.values(), clock.now())
    assert waiting.wake_at == clock.now() + DEFAULT_RESTART_DELAY and not waiting.actions
    clock.pass_by(DEFAULT_RESTART_DELAY)
    (create,) = plan(found.services["s"], found.tasks.values(), clock.now()).actions
    assert isinstance(create, Create) and len(create.restarts) == 2


async def test_each_write_has_a_version_of_its_own(records: SwarmRecords):
    one, two = service("a"), service("b")
    await records.save(one)
    await records.save(two)
    first, second = records.services["a"].version, records.services["b"].version
    assert first != second and (one.version, two.version) == (0, 0), "records do not change"
    await records.save(records.services["a"])
    assert records.services["a"].version > max(first, second)


async def test_a_new_record_was_changed_when_it_was_made(state: StateStore):
    clock = FakeClock(START)
    records = SwarmRecords.load(SqliteStore(state), clock)
    made = clock.stamp()
    clock.pass_by(SECOND)
    await records.save(but(service("a"), created_at=made, updated_at=made))
    assert records.services["a"].updated_at == made
    await records.save(records.services["a"])
    assert records.services["a"].updated_at == clock.stamp() != made


async def test_writes_of_one_record_that_overlap_all_count(records: SwarmRecords):
    await records.save(service("a"))

    async def save() -> None:
        await records.save(records.services["a"])

    await asyncio.gather(*(save() for _ in range(5)))
    await save()


async def test_who_writes_what_somebody_else_has_changed_is_refused_and_nothing_is_changed(records: SwarmRecords):
    await records.save(service("a"))
    old = records.services["a"]
    await records.save(old)
    one, fresh = records.services["a"], service("b")
    with pytest.raises(Stale, match="service a"):
        await records.save(fresh, old)
    assert records.services == {"a": one} and fresh.version == 0


async def test_what_a_full_disk_refuses_is_as_it_was(records: SwarmRecords, state: FullStore) -> None:
    await records.save(service("a"))
    known, fresh = records.services["a"], service("b")
    state.full = True
    with pytest.raises(DiskFault):
        await records.save(but(known, spec_version=2), fresh)
    assert records.services == {"a": known} and records.services["a"] is known
    state.full = False
    await records.save(but(known, spec_version=2), fresh)
    assert set(records.services) == {"a", "b"}


def test_lookups():
    records = {"abc1": 1, "abd2": 2, "web": 3}
    names = {"web": "abc1", "abd": "web"}
    assert resolve(records, names, "abc1", "thing") == 1
    assert resolve(records, names, "web", "thing") == 3, "an id counts more than a name"
    assert resolve(records, names, "abd", "thing") == 3, "a name counts more than the beginning of an id"
    assert resolve(records, names, "abc", "thing") == 1
    with pytest.raises(InvalidParameter, match="ambiguous"):
        resolve(records, names, "ab", "thing")
    for nothing in ("", "x"):
        with pytest.raises(NotFound, match="not found"):
            resolve(records, names, nothing, "thing")


async def other_of(records: SwarmRecords, **waits: float) -> SwarmRecords:
    """The same records in the memory of another manager, which hears of nothing until it is told."""
    made = SwarmRecords(records.store, **waits)  # type: ignore[arg-type]
    made.take_in(await news(records.store))
    return made


async def news(store: ClusterStore) -> News:
    async for told in store.watch():
        return told
    raise AssertionError


async def test_a_change_is_made_on_what_others_have_written_meanwhile(records: SwarmRecords):
    web = service("a")
    await records.save(web, task(web))
    other = await other_of(records)
    one, two = records.tasks["task-name-a-1"], other.tasks["task-name-a-1"]

    def stop(record: Task) -> Task:
        return but(record, desired_state="shutdown")

    def fail(record: Task) -> Task:
        return but(record, status__err="broken")

    assert await records.amend(one, stop) and await other.amend(two, fail)
    assert (two.desired_state, two.status.err) == ("running", ""), "records do not change"
    two = other.tasks[two.id]
    assert (two.desired_state, two.status.err, records.tasks[one.id].status.err) == ("shutdown", "broken", "")
    records.take_in(await news(records.store))
    assert records.tasks[one.id].status.err == "broken"
    await records.delete(one)
    assert not await other.amend(two, fail) and other.tasks == {}


async def test_a_change_that_may_not_be_made_is_not_tried_again(records: SwarmRecords):
    await records.save(service("a"))
    with pytest.raises(Stale, match="leader"):
        await records.amend(records.services["a"], lambda record: record, checks=(Check("leader", "planner", 99),))


async def test_news_bring_memory_up_and_older_ones_do_not_take_it_back(records: SwarmRecords):
    await records.save(service("a"), service("b"))
    old = await news(records.store)
    other = await other_of(records)
    await records.save(records.services["a"])
    await records.delete(records.services["b"])
    await records.save(secret("k"))
    assert other.take_in(await news(records.store))
    assert set(other.services) == {"a"} and set(other.secrets) == {"k"}
    version = other.services["a"].version
    assert not other.take_in(News(old.revision, False, old.records[:1], (("service", "a"),)))
    assert other.services["a"].version == version
    assert not other.take_in(
        News(old.revision, False, (ClusterRecord("leader", "planner", b"{}", 1),), (("alive", "x"),))
    )


async def test_a_record_of_another_release_is_put_aside_until_it_can_be_read(records: SwarmRecords):
    odd = ClusterRecord("service", "odd", b'{"id": 7}', 50)
    assert records.take_in(News(50, False, (odd,)))
    assert records.unreadable.services == {"odd"} and records.services == {}
    whole = msgspec.json.encode(service("odd"))
    records.take_in(News(51, False, (odd._replace(body=whole, version=51),)))
    assert records.unreadable.services == frozenset() and set(records.services) == {"odd"}


async def test_a_record_that_cannot_be_read_is_gone_when_it_is_removed(records: SwarmRecords):
    for rest in (News(52, False, (), (("service", "odd"),)), News(52, True, ())):
        records.take_in(
            News(50, False, (ClusterRecord("service", "odd", b"{}", 50), ClusterRecord("task", "t", b"{}", 50)))
        )
        assert set(records.unreadable) == {("service", "odd"), ("task", "t")}
        records.take_in(rest)
        assert not records.unreadable.services
    assert not records.unreadable


def test_a_stale_change_of_a_client_is_refused_as_docker_does_it():
    with pytest.raises(InvalidParameter, match="update out of sequence"), in_sequence():
        raise Stale([("service", "a")])


async def test_what_must_differ_from_all_others_is_saved_on_what_is_known_of_them(records: SwarmRecords):
    await records.save(service("a"))
    records.shared = True
    other = await other_of(records)
    other.shared = True
    await records.save(service("b"), alone="service")
    await records.save(service("c"), alone="service")
    with pytest.raises(Stale, match="guard service"):
        await other.save(service("d"), alone="service")
    tries = []

    async def attempt() -> None:
        tries.append(set(other.services))
        await other.save(service("e"), alone="service")

    trying = asyncio.gather(other.retried(attempt))
    await until_async(lambda: tries, "the first try")
    other.take_in(await news(records.store))
    await trying
    assert tries == [{"a"}, {"a", "b", "c"}] and "e" in other.services
    with pytest.raises(Stale, match="guard"):
        await records.save(service("f"), alone="service")
    await records.save(service("g"), alone="other")


async def test_what_is_stale_for_another_reason_is_not_tried_again(records: SwarmRecords):
    records.shared = True

    async def attempt() -> None:
        await records.save(service("a"), checks=(Check("leader", "planner", 99),), alone="service")

    with pytest.raises(Stale, match="leader"):
        await records.retried(attempt)


@pytest.mark.parametrize("first", ["node", "task"])
async def test_how_services_failed_on_a_node_goes_with_the_node_and_its_tasks(records: SwarmRecords, first: str):
    node = Node(id="n", version=0, created_at="", updated_at="")
    failed = task(service("s"), state="failed")
    await records.save(node, failed)
    assert records.index.rooms["n"].failures
    one, other = (node, failed) if first == "node" else (failed, node)
    await records.delete(one)
    assert records.index.rooms["n"].failures
    await records.delete(other)
    assert "n" not in records.index.rooms


class LateAnswers:
    """A store whose answers to writes come after the news of what others did next."""

    def __init__(self, store: ClusterStore, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._store, self._meanwhile = store, meanwhile

    async def commit(self, *steps: Step, applied: Callable[[int], None] | None = None, **how: Any) -> int:
        revision = await self._store.commit(*steps)
        await self._meanwhile()
        assert applied is not None
        applied(revision)
        return revision


@pytest.mark.parametrize("way", ["amend", "settle"])
async def test_an_answer_that_comes_after_later_news_does_not_take_memory_back(records: SwarmRecords, way: str):
    """One that thinks its task is to be shut down, where it is to be removed, would never remove it."""
    await records.save(made := task(service("a")))
    made = records.tasks[made.id]
    other = SwarmRecords(records.store)
    other.take_in(await news(records.store))
    store = records.store

    async def decide() -> None:
        other.take_in(await news(store))
        await other.amend(other.tasks[made.id], lambda draft: but(draft, desired_state="remove"))
        records.take_in(await news(store))

    records.store = cast(ClusterStore, LateAnswers(store, decide))
    if way == "amend":
        await records.amend(made, lambda draft: but(draft, slot=9))
    else:
        await records.settle(made)
    records.store = store
    assert records.tasks[made.id].desired_state == "remove"
    assert records.tasks[made.id].version == other.tasks[made.id].version
    await records.settle(records.tasks[made.id])


@pytest.mark.parametrize("is_new", [False, True])
async def test_an_answer_that_comes_after_the_end_does_not_bring_a_record_back(records: SwarmRecords, is_new: bool):
    made, store = task(service("a")), records.store
    if not is_new:
        await records.save(made)
        made = records.tasks[made.id]

    async def remove() -> None:
        records.take_in(await news(store))
        found = (await store.listing("task")).records[0]
        revision = await store.commit(Delete("task", made.id, found.version))
        records.take_in(News(revision, False, (), (("task", made.id),)))

    records.store = cast(ClusterStore, LateAnswers(store, remove))
    await records.settle(made)
    records.store = store
    assert records.tasks == {} and records.index.of_service("a") == []
    await records.save(again := task(service("a")))
    assert list(records.tasks) == [again.id]


async def test_who_waits_for_the_end_of_a_service_hears_of_it_whoever_removed_it(records: SwarmRecords):
    await records.save(service("a"), service("b"), service("c"))
    other = await other_of(records)
    heard, there = list[str](), list[str]()
    records.service_gone.subscribe(heard.append)
    other.service_gone.subscribe(there.append)
    await records.delete(records.services["a"])
    assert heard == ["a"] and there == []
    other.take_in(News(100, False, (), (("service", "a"),)))
    other.take_in(News(100, False, (), (("service", "a"),)))
    assert there == ["a"]
    other.alone(other.store)
    assert sorted(there) == ["a", "b", "c"], "it is no manager any more"


async def test_whether_there_is_a_swarm_the_store_says(records: SwarmRecords) -> None:
    """News that broke off tell of a former one for a while."""
    assert not await records.has_swarm()
    await records.save(swarm())
    other = await other_of(records)
    assert await other.has_swarm()
    await records.delete(records.swarms[KEY])
    asking = soon(other.has_swarm())
    await asyncio.sleep(0)
    assert other.swarm is not None
    other.take_in(News(100, False, (), (("swarm", KEY),)))
    assert not await asking and other.swarm is None
    other = await other_of(records, hearing=0.01)
    other.swarms[KEY] = swarm()
    assert await other.has_swarm(), "nothing is heard: nobody knows what else has changed"


async def test_memory_catches_up_with_tasks_that_others_have_written(records: SwarmRecords) -> None:
    other = await other_of(records)
    other.shared = True
    await records.save(task(service("a")))
    catching = soon(other.catch_up())
    await asyncio.sleep(0)
    assert not catching.done()
    other.take_in(await news(records.store))
    await catching
    assert "task-name-a-1" in other.tasks
    other = await other_of(records, catching_up=0.01)
    other.shared = True
    await records.save(service("b"))
    await other.catch_up()
    await records.save(task(service("c")))
    with pytest.raises(Unavailable, match="has not heard yet what the others have written"):
        await other.catch_up()


REASON = ValueError("Invalid enum value 'hibernating'")


def test_a_task_concerns_its_service(caplog: pytest.LogCaptureFixture) -> None:
    unreadable = UnreadableRecords([("service", "old")])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            unreadable.note(("task", "t"), b'{"service_id": "web", "status": 7}', REASON)
        unreadable.note(("task", "u"), b"{", REASON)
        unreadable.note(("service", "db"), b'{"service_id": "never"}', REASON)
    assert len(caplog.messages) == 3 and "task t" in caplog.messages[0] and "hibernating" in caplog.messages[0]
    assert [unreadable.concerns(id) for id in ("web", "db", "old", "never")] == [True, False, False, False]
    assert unreadable.services == {"old", "db"} and len(unreadable) == 4 and ("task", "u") in unreadable
    for name in list(unreadable):
        unreadable.forget(name)
    unreadable.forget(("task", "t"))
    assert not unreadable and not unreadable.concerns("web")
