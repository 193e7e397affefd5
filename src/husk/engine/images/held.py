"""Layers that the cache of builds needs, though no image may name them.

Known by records of their own, so that a start of the daemon keeps such layers without knowing anything of builds.
"""

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from husk.storage.state.store import Change, StateStore

KIND = "held-layer"


class HeldLayer(msgspec.Struct, frozen=True):
    chain_id: str


class HeldLayers:
    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._chain_ids = (
            {held.chain_id for held in state.records(KIND, HeldLayer).values()} if state.has(KIND) else set()
        )

    def __contains__(self, chain_id: object) -> bool:
        return chain_id in self._chain_ids

    @property
    def all(self) -> frozenset[str]:
        return frozenset(self._chain_ids)

    async def add(self, chain_ids: Iterable[str]) -> None:
        new = [chain_id for chain_id in dict.fromkeys(chain_ids) if chain_id not in self._chain_ids]
        if new:
            changes = (Change(KIND, chain_id, msgspec.json.encode(HeldLayer(chain_id))) for chain_id in new)
            # Who is cancelled gives up the layers: no record of them may stay.
            await self._state.add(*changes, lazy=True)
            self._chain_ids.update(new)

    async def drop(self, chain_ids: Iterable[str]) -> list[str]:
        """Those of them that were held; whoever calls has the store release them."""
        gone = [chain_id for chain_id in dict.fromkeys(chain_ids) if chain_id in self._chain_ids]
        if gone:
            self._chain_ids.difference_update(gone)
            await self._state.settle(*(Change(KIND, chain_id, None) for chain_id in gone), lazy=True)
        return gone


class LayerHolder:
    """Holds layers, and has what it lets go of released unless somebody else needs it."""

    def __init__(self, held: HeldLayers, release: Callable[[Iterable[str]], Awaitable[object]]) -> None:
        self._held = held
        self._release = release

    @property
    def all(self) -> frozenset[str]:
        return self._held.all

    async def add(self, chain_ids: Iterable[str], /) -> None:
        await self._held.add(chain_ids)

    async def release(self, chain_ids: Iterable[str], /) -> None:
        await self._release(await self._held.drop(chain_ids))
