"""The records of the swarm in memory, and their way into the cluster store.

Where several hosts share the store, `feed` brings what others write; everything here counts by versions, so it does not
matter which comes first: the answer to a write of ours, or the news of it.

Records of the swarm that cannot be read here: a newer release wrote them, or they are damaged.

Such a record is left out, and no other. What it may concern stays as it is: tasks of a service that cannot be read, and
a service one of whose tasks cannot, since another task in its place might be one too many.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Self, TypeVar, cast

import msgspec
from msgspec import Struct

from husk.errors import HuskError, InvalidParameter, NotFound, Unavailable
from husk.swarm.model.clocks import CLOCK, Clock, node_by_ours, service_by_ours, task_by_ours
from husk.swarm.model.node import Node
from husk.swarm.model.placement import Port, host_ports
from husk.swarm.model.services import ClusterObject, Service, Task
from husk.swarm.model.swarm import KEY, Swarm
from husk.swarm.signals import Signal
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.kinds import READERS, SwarmRecord, key_of, kind_of, only_tasks
from husk.swarm.state.leader import Leadership, SoleLeadership
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.task_index import TaskIndex
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, Stale, Step
from husk.text.documents import MalformedDocument, decode

T = TypeVar("T")
R = TypeVar("R", Service, Task, ClusterObject, Swarm, Node)
OUT_OF_SEQUENCE = "rpc error: code = Unknown desc = update out of sequence"
# How often a change is tried on what others have written meanwhile.
ATTEMPTS = 10
# The kind of records that are written with whatever must differ from others of its kind. How long to wait for news.
GUARD = "guard"
HEARING, CATCHING_UP = 5.0, 1.0
# No such record is ever written: to ask for it asks how far the store has come.
_NOTHING = "nothing"
# Later than any revision of a store.
_LATEST = 1 << 62
log = logging.getLogger(__name__)

Name = tuple[str, str]


class SwarmRecords:
    """The swarm's records, for reconciler and edge. A write is durable when it returns, that of a task soon after."""

    def __init__(
        self,
        store: ClusterStore,
        clock: Clock = CLOCK,
        hearing: float = HEARING,
        catching_up: float = CATCHING_UP,
    ) -> None:
        self._hearing, self._catching_up = hearing, catching_up
        self._clock = clock
        self.store = store
        self.services: dict[str, Service] = {}
        self.tasks: dict[str, Task] = {}
        self.index = TaskIndex(self._ports_of)
        self.secrets: dict[str, ClusterObject] = {}
        self.configs: dict[str, ClusterObject] = {}
        self.swarms: dict[str, Swarm] = {}
        self.nodes: dict[str, Node] = {}
        tables: dict[str, object] = {
            "service": self.services,
            "task": self.tasks,
            "secret": self.secrets,
            "config": self.configs,
            "swarm": self.swarms,
            "node": self.nodes,
        }
        self._tables = cast(dict[str, dict[str, SwarmRecord]], tables)
        # Have other hosts this store, too? Why it cannot be asked now, and whether this host plans.
        self.shared = False
        self.away: Callable[[], str] = lambda: ""
        self.leadership: Leadership = SoleLeadership()
        # What others have written into a store that hosts share, when memory has it.
        self.followed = Signal[[News]]()
        # There may be something to plan: for these services, or for all where none is named.
        self.woken = Signal[[Collection[str]]]()
        # The versions of the records that guard what must differ from others, as far as memory has come.
        self._guards: dict[str, int] = {}
        # The id of a service that is not there any more, whoever removed it.
        self.service_gone = Signal[[str]]()
        self._heard = asyncio.Event()
        # The revision that news have come to.
        self._told = NEW
        self._open = asyncio.Event()
        self._open.set()
        self._writing = 0
        self._written = asyncio.Event()
        # What went while something was being written, and with which revision.
        self._dropped: dict[tuple[str, str], int] = {}
        self.unreadable = UnreadableRecords()

    @classmethod
    def load(cls, store: SqliteStore, clock: Clock = CLOCK) -> Self:
        """Load the records of a swarm of one host, as the last daemon left them. Blocks."""
        made = cls(store, clock)
        unreadable = []
        for kind, read in READERS.items():
            made._tables[kind].update(store.load(kind, read))
            unreadable += [(kind, key) for key in store.unreadable(kind)]
        made.unreadable = UnreadableRecords(unreadable)
        now = made._clock.now()
        made.services |= {key: service_by_ours(service, None, now) for key, service in made.services.items()}
        made.nodes |= {key: node_by_ours(node, None, now) for key, node in made.nodes.items()}
        made.tasks |= {key: task_by_ours(task, None, now) for key, task in made.tasks.items()}
        for task in made.tasks.values():
            made.index.note(task)
        return made

    @property
    def swarm(self) -> Swarm | None:
        return next(iter(self.swarms.values()), None)

    # --- write

    async def save(self, *records: SwarmRecord, checks: tuple[Step, ...] = (), alone: str | Put = "") -> None:
        """Write records on the versions that they name; in memory they count when the store has taken them.

        Records never change: those in the tables are others from then on, with their new version. `checks` must fit
        too. `alone` is for what must differ from all others of a kind, in its name or ports: Stale if another host
        saved one of which nothing was heard yet. Who waits for anything between looking at the others and this takes
        the `guard` before that: what is heard meanwhile was not looked at.
        """
        guard = self._guard_of(alone)
        revision = await self._write(records, (*checks, *guard), happened=False)
        for step in guard:
            self.guarded(step.key, revision)

    def _guard_of(self, alone: str | Put) -> tuple[Put, ...]:
        if not alone or not self.shared:
            return ()
        return (self.guard(alone) if isinstance(alone, str) else alone,)

    def guard(self, kind: str) -> Put:
        """The step that goes with what must differ from all others of a kind, where `save` does not write it."""
        return Put(GUARD, kind, b"{}", self._guards.get(kind, NEW))

    def guarded(self, kind: str, revision: int) -> None:
        """A transaction with `guard` was taken."""
        self._guards[kind] = max(self._guards.get(kind, NEW), revision)

    async def retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try to save something `alone`, and try again whenever what others have saved meanwhile is known."""
        for _ in range(ATTEMPTS):
            seen = dict(self._guards)
            try:
                return await attempt()
            except Stale as stale:
                if all(kind != GUARD for kind, _ in stale.names):
                    raise
            await self._hear_until(lambda: self._guards != seen, self._hearing)  # noqa: B023
        raise InvalidParameter(OUT_OF_SEQUENCE)

    async def has_swarm(self) -> bool:
        """Tell if the store itself holds a swarm. If not, memory forgets a former one first; True if it does not."""
        if await self.store.get("swarm", KEY) is not None:
            return True
        await self._hear_until(lambda: self.swarm is None, self._hearing)
        return self.swarm is not None

    async def catch_up(self) -> None:
        """Wait until memory knows all tasks that others had written when this was asked. Unavailable where no news of
        them come."""
        if not self.shared:
            return
        there = await self.store.commit(Check(GUARD, _NOTHING, NEW))
        await self._hear_until(lambda: self._told >= there, self._catching_up)
        if self._told >= there:
            return
        # Somebody else may use the same store, of whom nothing is told.
        wanted = {record.key: record.version for record in (await self.store.listing("task")).records}
        await self._hear_until(lambda: not self._unheard(wanted), self._catching_up)
        if self._unheard(wanted):
            raise Unavailable("this manager has not heard yet what the others have written")

    def _unheard(self, wanted: Mapping[str, int]) -> bool:
        """Tell if one of these tasks has a version that memory has not come to."""
        for key, version in wanted.items():
            known = self.tasks.get(key)
            if (known is None or known.version < version) and ("task", key) not in self.unreadable:
                return True
        return False

    async def _hear_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for news; not for ever, should they have broken off."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._heard.clear()
                    await self._heard.wait()

    async def settle(self, *records: SwarmRecord, checks: tuple[Step, ...] = ()) -> None:
        """The same for what has happened already, which a full disk cannot refuse."""
        await self._write(records, checks, happened=True)

    async def amend(self, record: R, change: Callable[[R], R], *, checks: tuple[Check, ...] = ()) -> bool:
        """Write what `change` makes of a record, on top of whatever others make of it meanwhile. False: it is gone.

        `change` may be called several times, each time with the newest form. In memory it counts when the store has
        taken it.
        """
        kind, key = kind_of(record), key_of(record)
        table = cast(dict[str, R], self._tables[kind])
        for _ in range(ATTEMPTS):
            if (current := table.get(key)) is None:
                return False
            try:
                await self._write((change(current),), checks, happened=True)
                return True
            except Stale as stale:
                if (kind, key) not in stale.names:
                    raise
                self._take(kind, key, await self.store.get(kind, key))
        raise InvalidParameter(OUT_OF_SEQUENCE)

    async def delete(self, *records: SwarmRecord, checks: tuple[Step, ...] = (), alone: str | Put = "") -> None:
        """`alone` is for what must not go while others of a kind rely on it: Stale if another host has written one of
        them of which nothing was heard yet."""
        if records:
            await self._turn()
            guard = self._guard_of(alone)
            steps = [Delete(kind_of(record), key_of(record)) for record in records]

            def applied(revision: int) -> None:
                for record in records:
                    self._drop(kind_of(record), key_of(record), revision)

            lazy = only_tasks(records)
            with self._in_writing():
                revision = await self.store.commit(*steps, *checks, *guard, applied=applied, happened=True, lazy=lazy)
            for step in guard:
                self.guarded(step.key, revision)

    async def _write(self, records: tuple[SwarmRecord, ...], checks: tuple[Step, ...], *, happened: bool) -> int:
        await self._turn()
        stamp = self._clock.stamp()
        drafts = [
            # A new record was changed when it was made: clients compare the two moments.
            msgspec.structs.replace(record, updated_at=(record.version == NEW and record.created_at) or stamp)
            for record in records
        ]
        names = [(kind_of(record), key_of(record)) for record in records]
        bodies = [msgspec.json.encode(draft) for draft in drafts]
        steps = [Put(*name, body, record.version) for name, body, record in zip(names, bodies, records, strict=True)]
        former: list[SwarmRecord | None] = []
        written: list[SwarmRecord] = []

        def applied(revision: int) -> None:
            for (kind, key), draft in zip(names, drafts, strict=True):
                record = msgspec.structs.replace(draft, version=revision)
                former.append(self._tables[kind].get(key))
                written.append(record)
                # News of what others have made of it may come before the answer to our own write.
                if self._dropped.get((kind, key), NEW) <= revision:
                    self._keep(kind, key, record)

        with self._in_writing():
            try:
                lazy = only_tasks(records)
                return await self.store.commit(*steps, *checks, applied=applied, happened=happened, lazy=lazy)
            except HuskError:
                # It was refused after all: it is as it was, unless somebody has written it once more meanwhile.
                for name, record, before in zip(names, written, former, strict=False):
                    self._take_back(*name, record, before)
                raise

    def _take_back(self, kind: str, key: str, written: SwarmRecord, former: SwarmRecord | None) -> None:
        if self._tables[kind].get(key) is not written:
            return
        if former is None:
            self._remove(kind, key)
        else:
            self._put(kind, key, former)

    async def commit(self, *steps: Step, happened: bool = False) -> int:
        """A transaction on records of others' kinds, which are not kept here; the revision it made."""
        await self._turn()
        with self._in_writing():
            return await self.store.commit(*steps, happened=happened)

    # --- another store

    @contextlib.asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Nothing is written meanwhile: whoever wants to waits."""
        self._open.clear()
        try:
            while self._writing:
                self._written.clear()
                await self._written.wait()
            yield
        finally:
            self._open.set()

    def switch(self, store: ClusterStore, there: News) -> None:
        """From now on the records are in another store, which holds `there`: the same with versions of its own."""
        self.store = store
        for table in self._tables.values():
            for key, record in table.items():
                table[key] = msgspec.structs.replace(record, version=NEW)
        self.take_in(there)

    def alone(self, store: ClusterStore) -> None:
        """From now on nobody shares the records, and there are none: this host is no manager any more."""
        self.store, self.shared = store, False
        self.away, self.leadership = lambda: "", SoleLeadership()
        self.take_in(News(_LATEST, True, ()))

    def learn(self, record: SwarmRecord) -> None:
        """Put a record into memory as nobody but this host knows it yet: the next news of it counts all the same."""
        if self._tables[kind_of(record)].get(key_of(record)) != record:
            self._put(kind_of(record), key_of(record), record)

    async def refresh(self, kind: str, key: str) -> None:
        """Bring a record in memory up to the store, before there is news of it."""
        self._take(kind, key, await self.store.get(kind, key))

    async def _turn(self) -> None:
        """Costs no turn of the loop where nobody moves the records: two who write one then never cross."""
        if not self._open.is_set():
            await self._open.wait()

    @contextlib.contextmanager
    def _in_writing(self) -> Iterator[None]:
        self._writing += 1
        try:
            yield
        finally:
            self._writing -= 1
            self._written.set()
            if not self._writing:
                self._dropped.clear()

    # --- what others write

    def take_in(self, news: News) -> bool:
        """Bring memory up to what a watch tells. Whether anything was new."""
        changed = False
        if news.all:
            told = {record.name for record in news.records}
            for kind, table in self._tables.items():
                for key in [key for key in table if (kind, key) not in told]:
                    changed |= self._drop(kind, key, news.revision)
            for name in [name for name in self.unreadable if name not in told]:
                self.unreadable.forget(name)
            self._guards = {}
        self._told = news.revision if news.all else max(self._told, news.revision)
        for record in news.records:
            if record.kind == GUARD:
                self._guards[record.key] = max(record.version, self._guards.get(record.key, NEW))
            changed |= self._take(record.kind, record.key, record)
        for kind, key in news.gone:
            self.unreadable.forget((kind, key))
            changed |= self._drop(kind, key, news.revision)
        self._heard.set()
        return changed

    def _take(self, kind: str, key: str, record: ClusterRecord | None) -> bool:
        if record is None:
            return self._remove(kind, key)
        known = self._tables[kind].get(key) if kind in READERS else None
        if kind not in READERS or (known is not None and known.version >= record.version):
            return False
        try:
            read = READERS[kind](record.body)
        except (MalformedDocument, HuskError) as error:
            self.unreadable.note((kind, key), record.body, error)
            return True
        self.unreadable.forget((kind, key))
        if isinstance(read, Task):
            read = task_by_ours(read, self.tasks.get(key), self._clock.now())
        elif isinstance(read, Service):
            read = service_by_ours(read, self.services.get(key), self._clock.now())
        elif isinstance(read, Node):
            read = node_by_ours(read, self.nodes.get(key), self._clock.now())
        read = msgspec.structs.replace(read, version=record.version)
        self._keep(kind, key, read)
        return True

    def _keep(self, kind: str, key: str, record: SwarmRecord) -> None:
        known = self._tables[kind].get(key)
        if known is None or known.version <= record.version:
            self._put(kind, key, record)

    def _put(self, kind: str, key: str, record: SwarmRecord) -> None:
        self._tables[kind][key] = record
        if isinstance(record, Task):
            self.index.note(record)

    def _drop(self, kind: str, key: str, revision: int) -> bool:
        """It was removed with this revision; one that was made after that stays."""
        known = self._tables[kind].get(key) if kind in READERS else None
        if known is None or known.version > revision:
            return False
        if self._writing:
            self._dropped[(kind, key)] = revision
        return self._remove(kind, key)

    def _remove(self, kind: str, key: str) -> bool:
        known = self._tables[kind].pop(key, None)
        if isinstance(known, Task):
            self.index.drop(known)
            if known.node_id not in self.nodes:
                self.index.forget_node(known.node_id)
        elif isinstance(known, Node):
            self.index.forget_node(key)
        elif isinstance(known, Service):
            self.service_gone.emit(key)
        return known is not None

    def _ports_of(self, service_id: str) -> tuple[Port, ...]:
        service = self.services.get(service_id)
        return host_ports(service) if service is not None else ()


@contextlib.contextmanager
def in_sequence(*, guarded: bool = False) -> Iterator[None]:
    """A client's change of what somebody else has changed meanwhile is refused as Docker does it. `guarded`: one that
    `retried` tries again is left to that."""
    try:
        yield
    except Stale as stale:
        if guarded and any(kind == GUARD for kind, _ in stale.names):
            raise
        raise InvalidParameter(OUT_OF_SEQUENCE) from None


def resolve(records: dict[str, T], names: dict[str, str], reference: str, kind: str) -> T:
    """By id, by name, by unique leading part of an id: the order of all of Docker's lookups. `names`: name → id."""
    if reference in records:
        return records[reference]
    if reference in names:
        return records[names[reference]]
    matches = [key for key in records if reference and key.startswith(reference)]
    if len(matches) > 1:
        raise InvalidParameter(f"{kind} {reference} is ambiguous ({len(matches)} matches found)")
    if not matches:
        raise NotFound(f"{kind} {reference} not found")
    return records[matches[0]]


class _OfService(Struct):
    """The service that is read of a task that is not understood."""

    service_id: str = ""


class UnreadableRecords:
    def __init__(self, names: Iterable[Name] = ()) -> None:
        """`names` are (kind, key)."""
        # With the service of a task, where that could be read.
        self._names: dict[Name, str] = dict.fromkeys(names, "")

    def __iter__(self) -> Iterator[Name]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def note(self, name: Name, body: bytes, reason: Exception) -> None:
        """It is logged once, however often it is written."""
        if name not in self._names:
            log.warning("%s %s cannot be read here, and stays as it is: %s", *name, reason)
        self._names[name] = _service_of(body) if name[0] == "task" else ""

    def forget(self, name: Name) -> None:
        """It can be read, or is gone."""
        self._names.pop(name, None)

    @property
    def services(self) -> frozenset[str]:
        return frozenset(key for kind, key in self._names if kind == "service")

    def concerns(self, service_id: str) -> bool:
        """Tell if one of the service's tasks cannot be read."""
        return service_id in self._names.values()


def _service_of(body: bytes) -> str:
    try:
        return decode(body, _OfService).service_id
    except MalformedDocument:
        return ""
