"""A store that several managers share: what one writes, the others have in memory."""

from collections.abc import AsyncIterator, Collection

import pytest

from husk.storage.state.store import StateStore
from husk.swarm.model.services import Service, ServiceSpec
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import News, StoreUnavailable
from tests.support.tapped_store import TappedStore
from tests.support.waiting import until_async
from tests.unit.swarm.manager.test_planner import make_task
from tests.unit.swarm.membership.test_nodes import worker


def service(id: str) -> Service:
    return Service(id=id, version=0, created_at="", updated_at="", spec=ServiceSpec(name=f"name-{id}"))


class Manager:
    def __init__(self, store: ClusterStore) -> None:
        self.woken = 0
        self.services: list[tuple[str, ...]] = []
        self.opened = 0
        self.records = SwarmRecords(store)
        self.shared = Shared(self.records, store, patience=0.2, pause=0.01)
        self.records.woken.subscribe(self._wake)

    def _wake(self, service_ids: Collection[str]) -> None:
        self.woken += 1
        self.services += [tuple(service_ids)]

    async def open(self) -> None:
        await self.shared.open(self._known)

    async def _known(self) -> None:
        self.opened += 1


@pytest.fixture
def store(state: StateStore) -> SqliteStore:
    return SqliteStore(state)


async def test_what_one_writes_the_other_has(store: SqliteStore) -> None:
    one, two = Manager(store), Manager(store)
    await one.open()
    await one.records.save(service("a"))
    await two.open()
    assert two.opened == 1 and set(two.records.services) == {"a"} and two.shared.away == ""
    await one.records.save(service("b"))
    await until_async(lambda: set(two.records.services) == {"a", "b"}, "news")
    assert two.woken
    await two.records.delete(two.records.services["a"])
    await until_async(lambda: set(one.records.services) == {"b"}, "news")
    await one.shared.close()
    await two.shared.close()


async def test_news_of_tasks_wakes_their_services_alone(store: SqliteStore) -> None:
    one, two = Manager(store), Manager(store)
    await one.open()
    await two.open()
    task = make_task(1, version=0, service_id="web")
    await one.records.save(task)
    await until_async(lambda: two.services[-1:] == [("web",)], "news of a task")
    await one.records.delete(task)
    await until_async(lambda: two.services[-2:] == [("web",), ("web",)], "news of its end")
    await one.records.save(service("a"))
    await until_async(lambda: two.services[-1:] == [()], "news of anything else")
    await one.shared.close()
    await two.shared.close()


async def test_what_a_manager_wrote_of_the_swarm_or_its_nodes_it_follows_itself(store: SqliteStore) -> None:
    """Though nobody else has anything to tell: its own lock, its own demotion."""
    one = Manager(store)
    await one.open()
    await until_async(lambda: one.opened, "that all is known")
    before = one.woken
    await one.records.save(worker("w", "beta"))
    await until_async(lambda: one.woken > before, "that it looks")
    assert one.services[-1] == ()
    await one.shared.close()


async def test_news_that_nobody_could_take_in_are_not_the_last(store: SqliteStore) -> None:
    one, two = Manager(store), Manager(store)
    await one.open()
    await two.open()
    faults = iter([KeyError("a fault of ours")])

    def follow(news: News) -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    two.records.followed.subscribe(follow)
    await one.records.save(service("a"))
    await one.records.save(service("b"))
    await until_async(lambda: set(two.records.services) == {"a", "b"} and two.woken, "news")
    assert two.shared.away == ""
    await one.shared.close()
    await two.shared.close()


async def test_one_of_them_plans_and_the_next_when_it_leaves(store: SqliteStore) -> None:
    one, two = Manager(store), Manager(store)
    for number, manager in enumerate((one, two)):
        await manager.open()
        assert not manager.records.leadership.leading
        manager.shared.take_part(f"n{number}")
        manager.shared.take_part(f"n{number}")
        await until_async(lambda: one.records.leadership.leading, "a leader")
    await until_async(lambda: two.records.leadership.leader == "n0", "that the other knows")
    await one.shared.part()
    await until_async(lambda: two.records.leadership.leading, "another leader")
    assert not one.records.leadership.leading
    await one.shared.close()
    await two.shared.close()


async def test_a_store_that_does_not_answer_keeps_nobody_from_starting(store: SqliteStore) -> None:
    tapped = TappedStore(store)
    manager = Manager(tapped)

    async def away(*_: object) -> object:
        raise StoreUnavailable("nobody is there")

    async def broken(*_: object) -> AsyncIterator[News]:
        raise StoreUnavailable("nobody is there")
        yield  # an iterator

    tapped.on_get, tapped.on_watch = away, broken
    await manager.open()
    await until_async(lambda: manager.records.away() == "nobody is there", "the reason")
    assert not manager.opened
    tapped.on_get, tapped.on_watch = store.get, store.watch
    await until_async(lambda: manager.opened, "that it is opened")
    assert manager.records.away() == ""
    await manager.shared.close()
