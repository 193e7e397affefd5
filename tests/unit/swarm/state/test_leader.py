"""One manager plans at a time: who has the lease, who takes over, and who slept."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from husk.storage.state.store import StateStore
from husk.swarm.state.leader import LEADER, LOST, PLANNER, Election, NoLeadership, SoleLeadership
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import Check, Put, Stale, StoreUnavailable
from tests.support.tapped_store import TappedStore
from tests.support.waiting import until_async


class Managers:
    """Some that share a store, each told what it tells."""

    def __init__(self, store: TappedStore) -> None:
        self.store = store
        self.all: dict[str, Election] = {}
        self._telling: list[asyncio.Task[None]] = []

    async def add(self, name: str) -> Election:
        election = self.begin(name)
        self._telling.append(asyncio.get_running_loop().create_task(self._tell(election)))
        await until_async(lambda: election.leader, f"a leader that {name} knows")
        return election

    def begin(self, name: str) -> Election:
        election = self.all[name] = Election(self.store, name, lambda: None, pause=0.01)
        election.start()
        return election

    async def _tell(self, election: Election) -> None:
        async for news in self.store.watch():
            election.notice(news)

    async def close(self) -> None:
        for task in self._telling:
            task.cancel()
        for election in self.all.values():
            await election.close()

    @property
    def leads(self) -> list[str]:
        return [name for name, election in self.all.items() if election.leading]


@pytest.fixture
async def managers(state: StateStore) -> AsyncIterator[Managers]:
    made = Managers(TappedStore(SqliteStore(state)))
    yield made
    await made.close()


async def test_the_first_leads_and_all_know_it(managers: Managers) -> None:
    await managers.add("a")
    other = await managers.add("b")
    assert managers.leads == ["a"] and other.leader == "a"


async def test_one_that_gives_up_is_followed_at_once(managers: Managers) -> None:
    first, second = await managers.add("a"), await managers.add("b")
    await first.close()
    await until_async(lambda: second.leading, "another leader")
    assert not first.leading


async def test_one_that_slept_can_change_nothing(managers: Managers) -> None:
    first = await managers.add("a")
    before = first.checks
    await managers.store.commit(Put("task", "t", b"{}"), *before)
    second = await managers.add("b")
    await managers.store.leases[0].close()
    await until_async(lambda: managers.leads, "a leader")
    with pytest.raises(Stale):
        await managers.store.commit(Put("task", "t", b"{}"), *before)
    with pytest.raises(Stale):
        loser = second if first.leading else first
        await managers.store.commit(Put("task", "t", b"{}"), *loser.checks)


@pytest.mark.parametrize("fault", [StoreUnavailable, RuntimeError])
async def test_a_store_that_is_away_is_told_and_asked_again(managers: Managers, fault: type[Exception]) -> None:
    async def away(seconds: int) -> object:
        raise fault("nobody is there")

    managers.store.on_lease = away
    election = managers.begin("a")
    await until_async(lambda: election.trouble, "trouble")
    assert election.trouble == "nobody is there" and not election.leading
    managers.store.on_lease = managers.store.beneath.lease
    await until_async(lambda: election.leading, "a leader")
    assert election.trouble == ""


async def test_the_end_of_a_lease_is_told_though_the_store_is_silent(managers: Managers) -> None:
    asked = asyncio.Event()

    async def silent(*changes: object, **how: object) -> int:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    managers.store.on_commit = silent
    election = managers.begin("a")
    await asked.wait()
    assert election.trouble == ""
    await managers.store.leases[0].close()
    assert election.trouble == LOST


async def test_who_is_alone_plans_and_who_is_outside_does_not(state: StateStore) -> None:
    store = SqliteStore(state)
    assert SoleLeadership().leading and not NoLeadership().leading
    await store.commit(Put("task", "t", b"{}"), *SoleLeadership().checks)
    with pytest.raises(Stale):
        await store.commit(Put("task", "t", b"{}"), *NoLeadership().checks)
    assert Election(store, "a", lambda: None).checks == (Check(LEADER, PLANNER, 1 << 62),)
