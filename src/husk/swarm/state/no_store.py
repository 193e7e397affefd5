"""The store of a host that has none: a worker has of the swarm's records what a manager tells it."""

from collections.abc import AsyncIterator, Callable, Collection
from typing import NoReturn

from husk.errors import Unavailable
from husk.swarm.model.refusals import A_WORKER
from husk.swarm.state.cluster_store import Lease
from husk.swarm.state.transactions import ClusterRecord, Listing, News, Step


class NoStore:
    """`ClusterStore`; nobody asks it, and who did would hear why it cannot answer."""

    async def get(self, kind: str, key: str) -> ClusterRecord | None:
        _refuse()

    async def listing(self, kind: str) -> Listing:
        _refuse()

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        _refuse()

    async def commit(
        self, *steps: Step, applied: Callable[[int], None] | None = None, happened: bool = False, lazy: bool = False
    ) -> int:
        _refuse()

    def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        _refuse()

    async def lease(self, seconds: int) -> Lease:
        _refuse()

    async def close(self) -> None:
        """There is nothing to close."""


def _refuse() -> NoReturn:
    raise Unavailable(A_WORKER)
