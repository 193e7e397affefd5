"""A store that several managers share: what they write is brought into memory, and one of them is elected to plan.

    shared = Shared(records, store)
    await shared.open(known)     # returns early where the store does not answer: it is tried for ever
    …
    shared.take_part(node_id)    # as a manager
    await shared.close()

While the store cannot be asked, `away` says why. Memory stays as it was then, so that tasks go on running.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from husk.aio.tasks import Tasks
from husk.errors import HuskError
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.leader import Election, NoLeadership
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.transactions import News

log = logging.getLogger(__name__)

# How long a start waits for the store, in seconds; then it goes on without. How soon a broken watch is begun again.
PATIENCE, PAUSE = 3.0, 1.0
# Kinds of records that a manager goes by for itself: its lock, its certificates, its place (`manager.upkeep`).
FOLLOWED = ("swarm", "node")


class Shared:
    def __init__(
        self, records: SwarmRecords, store: ClusterStore, patience: float = PATIENCE, pause: float = PAUSE
    ) -> None:
        self._patience, self._pause = patience, pause
        records.shared, records.leadership = True, NoLeadership()
        records.away = lambda: self.away
        self._records = records
        self._store = store
        self._tasks = Tasks()
        self._known = asyncio.Event()
        self._election: Election | None = None
        self._trouble = "the cluster store has not answered yet"

    @property
    def away(self) -> str:
        """The reason why the store cannot be asked; empty while it can."""
        if self._election is not None and self._election.trouble:
            return self._election.trouble
        return "" if self._known.is_set() else self._trouble

    async def open(self, known: Callable[[], Awaitable[None]]) -> None:
        """Begin to follow the store; `known` is called once, when all there is is in memory."""
        self._tasks.spawn(self._follow(), "swarm: news of the store")
        opening = self._tasks.spawn(self._open(known), "swarm: open")
        await asyncio.wait([opening], timeout=self._patience)
        if self.away:
            log.error("the swarm cannot be used until its store answers: %s", self.away)

    async def _open(self, known: Callable[[], Awaitable[None]]) -> None:
        while not self._known.is_set():
            try:
                await self._store.get("swarm", "default")
            except HuskError as error:
                self._trouble = error.message
                await asyncio.sleep(self._pause)
                continue
            await self._known.wait()
        await known()

    def take_part(self, node_id: str) -> None:
        """Be one of the managers that may plan; nothing is done where it is one."""
        if self._election is not None:
            return
        self._election = Election(self._store, node_id, lambda: self._records.woken.emit(()))
        self._records.leadership = self._election
        self._election.start()

    async def part(self) -> None:
        """Plan no longer."""
        if self._election is not None:
            await self._election.close()
            self._election = None
            self._records.leadership = NoLeadership()

    async def close(self) -> None:
        await self.part()
        await self._tasks.cancel_all()
        await self._store.close()

    async def _follow(self) -> None:
        while True:
            try:
                async for news in self._store.watch():
                    services = self._services_of(news)
                    changed = self._records.take_in(news)
                    self._records.followed.emit(news)
                    if self._election is not None:
                        self._election.notice(news)
                    self._known.set()
                    # What this host wrote itself is in memory by now, and others here have to follow it all the same.
                    if changed or any(kind in FOLLOWED for kind, _ in _names(news)):
                        self._records.woken.emit(services | self._services_of(news))
            except HuskError as error:
                self._trouble = error.message
                log.warning("news of the cluster store broke off: %s", error.message)
            except Exception:  # a fault of ours: who hears nothing any more would not even know it
                log.exception("news of the cluster store could not be taken in, and are told again")
            await asyncio.sleep(self._pause)

    def _services_of(self, news: News) -> set[str]:
        """Those whose tasks are told of, as far as they are known; none where there is news of anything else."""
        names = _names(news)
        if news.all or any(kind != "task" for kind, _ in names):
            return set()
        return {task.service_id for _, key in names if (task := self._records.tasks.get(key)) is not None}


def _names(news: News) -> set[tuple[str, str]]:
    return {record.name for record in news.records} | set(news.gone)
