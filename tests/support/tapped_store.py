"""A cluster store in front of another one: it notes what passes, and a test says what it does instead."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

from husk.swarm.state.cluster_store import ClusterStore, Lease
from husk.swarm.state.transactions import ClusterRecord, Listing, News, Step


class TappedStore:
    """Hands every call on to `beneath`; a field `on_...` that is given another function has that called instead."""

    def __init__(self, beneath: ClusterStore) -> None:
        self.beneath = beneath
        # The leases that it gave, and for how long, from the first on.
        self.leases: list[Lease] = []
        self.lease_seconds: list[int] = []
        self.on_get: Callable[[str, str], Awaitable[Any]] = beneath.get
        self.on_listing: Callable[[str], Awaitable[Any]] = beneath.listing
        self.on_snapshot: Callable[[Collection[str]], Awaitable[Any]] = beneath.snapshot
        self.on_commit: Callable[..., Awaitable[int]] = beneath.commit
        self.on_watch: Callable[[str, int], AsyncIterator[News]] = beneath.watch
        self.on_lease: Callable[[int], Awaitable[Any]] = beneath.lease

    async def get(self, kind: str, key: str) -> ClusterRecord | None:
        found: ClusterRecord | None = await self.on_get(kind, key)
        return found

    async def listing(self, kind: str) -> Listing:
        found: Listing = await self.on_listing(kind)
        return found

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        found: Listing = await self.on_snapshot(kinds)
        return found

    async def commit(self, *steps: Step, **how: Any) -> int:
        return await self.on_commit(*steps, **how)

    def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        return self.on_watch(kind, after)

    async def lease(self, seconds: int) -> Lease:
        lease: Lease = await self.on_lease(seconds)
        self.leases.append(lease)
        self.lease_seconds.append(seconds)
        return lease

    async def close(self) -> None:
        await self.beneath.close()
