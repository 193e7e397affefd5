"""The store that the swarm needs: records with versions, transactions on them, news of changes, leases.

Two stores do this and pass the same tests (`tests/support/store_contract.py`): `husk.swarm.state.sqlite` in the
engine's own SQLite file, for one host, and `husk.swarm.state.etcd.store`, which several hosts share.

    listing = await store.listing("service")
    await store.commit(Put("service", id, body, version=record.version), Delete("task", old))    # all or nothing
    async for news in store.watch("task"): …                                                     # first all there is
    async with await store.lease(10) as lease:
        await store.commit(Put("leader", "planner", me, version=NEW, lease=lease.id))
"""

from collections.abc import AsyncIterator, Callable, Collection
from types import TracebackType
from typing import Protocol, Self

from husk.swarm.state.transactions import ClusterRecord, Listing, News, Step


class Lease(Protocol):
    """Kept alive until it is closed; records that were written under it go when it ends."""

    @property
    def id(self) -> int: ...

    @property
    def lost(self) -> bool:
        """True when the lease has ended or may have. Whoever acts because of the lease must not act any more."""
        ...

    async def wait_lost(self) -> None: ...

    def abandon(self) -> None:
        """Keep it alive no longer: it ends by itself when its time is over, as that of a holder that died."""
        ...

    async def close(self) -> None:
        """End it now, with all records under it."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ClusterStore(Protocol):
    """Raises StoreUnavailable where the store cannot be asked now."""

    async def get(self, kind: str, key: str) -> ClusterRecord | None: ...

    async def listing(self, kind: str) -> Listing:
        """All records of a kind, in the order of their keys."""
        ...

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        """All records of these kinds as they were at one revision, in the order of kinds and keys."""
        ...

    async def commit(
        self, *steps: Step, applied: Callable[[int], None] | None = None, happened: bool = False, lazy: bool = False
    ) -> int:
        """Take all steps or none; Stale if a record has not the version that its step wants. Return the revision made.

        It is durable when this returns. `applied` hears of the revision as soon as nobody can refuse it for another
        writer's sake, which may be earlier. `happened`: it tells what has happened already, so that a disk without
        room takes it later instead of refusing it. `lazy`: a power cut within a second may cost it.
        """
        ...

    def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        """News of a kind, or of all: first all there is, then each change once, in order.

        With `after`, a revision from a listing or from former news, only what came after it is told, where the store
        still knows. A watch that breaks resumes where it was; where the store has forgotten what came between, all
        there is is told again (`News.all`).
        """
        ...

    async def lease(self, seconds: int) -> Lease:
        """A lease that ends this long after its holder was last heard of."""
        ...

    async def close(self) -> None: ...
