"""The results of earlier builds: records by keys, kept in the store, and the diffs that the records consist of.

A record is found only while all of its stack is there. Layers of images may go with their image, and come back with it:
the records that lie on them wait for that; until then they still tell what others were made from (`know`). What was
made for a record belongs to records: a diff that none names any more is removed, and so is a layer that was fetched for
a build, unless an image has it.

A record that others lie on stays until they have gone. Who uses one says so (`hold`), and nobody removes it meanwhile.

How many records name an element, and how many bytes there are, is counted when records come and go: all of them are not
looked through for a build.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol, Self

import msgspec
from msgspec import Struct

from husk.aio.tasks import Tasks
from husk.builder.graph import stacks
from husk.builder.solver.interfaces import Record
from husk.engine.images.store import Pins
from husk.engine.model.build import RECORD
from husk.engine.model.clock import now_ns
from husk.storage.state.store import Change, StateStore

# What clients upload has another address each time, though it be the same: the first keys of a record, and the latest.
_FIRST_KEYS, _MOST_KEYS = 8, 100


class Diffs(Protocol):
    """The changes that steps have made to files: `husk.builder.store.diffs`."""

    def has(self, element: str) -> bool: ...

    def size(self, element: str) -> int: ...

    def all(self) -> Collection[str]: ...

    async def remove(self, elements: Iterable[str]) -> None: ...


class Layers(Protocol):
    """Layers that stay though no image names them: `husk.engine.images`."""

    @property
    def all(self) -> Collection[str]: ...

    async def add(self, chain_ids: Iterable[str], /) -> None: ...

    async def release(self, chain_ids: Iterable[str], /) -> None: ...


class StoredResult(Struct, kw_only=True):
    """A record as the store has it."""

    record: Record
    keys: list[str]
    created: int
    last_used: int
    uses: int = 0

    @property
    def id(self) -> str:
        return self.record.id


class BuildCache:
    def __init__(self, state: StateStore, diffs: Diffs, pins: Pins, layers: Layers) -> None:
        self._state = state
        self._tasks = Tasks()
        self._diffs = diffs
        self._pins = pins
        self._layers = layers
        self._records: dict[str, StoredResult] = {}
        self._by_key: dict[str, str] = {}
        self._makers: dict[str, str] = {}  # the records that diffs and layers were made for
        self._held: Counter[str] = Counter()
        self._named: dict[str, int] = {}  # how many records name an element
        self._sizes: dict[str, int] = {}  # those of diffs that records were made with
        self._bytes = 0  # all of these
        self._passing: dict[str, None] = {}  # what else records were made with: layers, which come and go with images

    @classmethod
    async def open(cls, state: StateStore, diffs: Diffs, pins: Pins, layers: Layers) -> Self:
        """Forget records whose diffs are gone, and remove diffs and layers that no record names."""
        cache = cls(state, diffs, pins, layers)
        lost = []
        for kept in state.records(RECORD, StoredResult).values():
            if all(diffs.has(diff) for output in kept.record.outputs for diff in stacks.diffs_in(output)):
                cache._add(kept)
            else:
                lost.append(Change(RECORD, kept.id, None))
        if lost:
            await state.settle(*lost, lazy=True)
        await cache._remove_nobodys([*diffs.all(), *stacks.elements(stacks.of_layers(layers.all))])
        return cache

    def __iter__(self) -> Iterator[StoredResult]:
        return iter(list(self._records.values()))

    # --- for the solver ----------------------------------------------------------------------------------------------

    async def find(self, key: str) -> Record | None:
        record = self.know(key)
        return record if record and self.is_whole(record) else None

    def know(self, key: str) -> Record | None:
        """A record though not all of it may be here: enough to tell what was made from it."""
        kept = self._records.get(self._by_key.get(key, ""))
        return kept.record if kept else None

    def is_whole(self, record: Record) -> bool:
        """Return True if everything that a record's outputs consist of is here."""
        return not record.absent and all(
            self._diffs.has(element) for output in record.outputs for element in stacks.elements(output)
        )

    async def remember(self, keys: Sequence[str], record: Record) -> None:
        kept = self._records.get(record.id)
        if kept is None:
            kept = StoredResult(record=record, keys=[], created=now_ns(), last_used=now_ns())
        elif record.outputs != kept.record.outputs:
            # It was not here, and was made again.
            self._drop(kept)
            kept.record, kept.created = record, now_ns()
        kept.keys = list(dict.fromkeys([*kept.keys, *keys]))
        for key in kept.keys[_FIRST_KEYS:-_MOST_KEYS]:
            if self._by_key.get(key) == kept.id:
                del self._by_key[key]
        del kept.keys[_FIRST_KEYS:-_MOST_KEYS]
        self._add(kept)
        if self.is_whole(record):
            await self._layers.add(stacks.layers_in(" ".join(record.made)))
        # Nobody waits for it: it is written behind the diffs, and before the image that the build makes.
        self._state.settle_soon(_change(kept))

    def hold(self, record: Record) -> None:
        self._held[record.id] += 1
        self._pins.add(_layers_of(record))
        if kept := self._records.get(record.id):
            kept.last_used = now_ns()
            kept.uses += 1

    def release(self, record: Record) -> None:
        self._held[record.id] -= 1
        self._held += Counter()
        self._pins.drop(_layers_of(record))

    async def release_unnamed(self, elements: Collection[str]) -> None:
        """Let go of what was made and is in no record: nobody is left who could make one of it."""
        await self._tasks.to_its_end(self._remove_nobodys(elements), "remove what no build wants any more")

    # --- what there is -----------------------------------------------------------------------------------------------

    def in_use(self, kept: StoredResult) -> bool:
        return bool(self._held[kept.id])

    @property
    def count(self) -> int:
        return len(self._records)

    def get(self, id: str) -> StoredResult | None:
        return self._records.get(id)

    def total(self) -> int:
        """The bytes of all records."""
        return self._bytes + sum(self._diffs.size(element) for element in self._passing if self._diffs.has(element))

    def size(self, kept: StoredResult) -> int:
        own = [element for element in kept.record.made if self._makers.get(element) == kept.id]
        return sum(self._diffs.size(element) for element in own if self._diffs.has(element))

    def parents(self, kept: StoredResult) -> list[str]:
        """The records whose diffs and layers it lies on."""
        makers = [self._makers.get(element, "") for element in _elements_of(kept.record)]
        return [maker for maker in dict.fromkeys(makers) if maker and maker != kept.id]

    def made_at(self, diff: str) -> int | None:
        """Return the time when a diff was made, in nanoseconds; None if no record has made it."""
        kept = self._records.get(self._makers.get(diff, ""))
        return kept.record.times.get(diff, kept.created) if kept else None

    def created(self, record: Record) -> int | None:
        """Return the time when a record (made elsewhere: its last layer) was made, in nanoseconds; None if unknown."""
        if kept := self._records.get(record.id):
            return max(record.times.values(), default=kept.created)
        return None

    def description_of(self, diff: str) -> str:
        kept = self._records.get(self._makers.get(diff, ""))
        return kept.record.description if kept else ""

    # --- removal -----------------------------------------------------------------------------------------------------

    def is_leaf(self, kept: StoredResult) -> bool:
        """Return True if no other record lies on this one: what it was made with is then named by itself alone."""
        own = (element for element in kept.record.made if self._makers.get(element) == kept.id)
        return all(self._named[element] == 1 for element in own)

    async def remove(self, id: str) -> int | None:
        """Forget one of the leaves, and what only it had; the bytes that this gives back. None if somebody uses it."""
        kept = self._records.get(id)
        if kept is None or self._held[id]:
            return None
        size = self.size(kept)
        await self._forget(kept)
        await self._remove_nobodys(kept.record.made)
        return size

    async def forget(self, stack: str) -> None:
        """Forget what was only given to one build: the records that brought it, and its diffs."""
        diffs = stacks.diffs_in(stack)
        for maker in {self._makers.get(diff, "") for diff in diffs}:
            await self.remove(maker)
        if any(diff in self._named for diff in diffs):
            # Seldom: somebody uses it, or others brought the same.
            for kept in self:
                if set(kept.record.made).intersection(diffs):
                    await self.remove(kept.id)
        await self._remove_nobodys([diff for diff in diffs if self._diffs.has(diff)])

    async def give_up(self, diff: str) -> bool:
        """Let go of a diff, and forget the record that made it; False while somebody uses that or lies on it."""
        kept = self._records.get(self._makers.get(diff, ""))
        if kept is None or kept.record.made != [diff] or self._held[kept.id] or not self.is_leaf(kept):
            return False
        try:
            await self._forget(kept)
        except BaseException:
            await self._diffs.remove([diff])  # whoever asked for it does not hear that it is theirs
            raise
        return True

    def save_uses(self, records: Iterable[Record]) -> None:
        """Write when records were used last: what was long ago goes first."""
        kept = {record.id: found for record in records if (found := self._records.get(record.id))}
        if kept:
            self._state.settle_soon(*(_change(each) for each in kept.values()))

    async def _forget(self, kept: StoredResult) -> None:
        self._drop(kept)
        for key in kept.keys:
            if self._by_key.get(key) == kept.id:
                del self._by_key[key]
        await self._state.settle(Change(RECORD, kept.id, None), lazy=True)

    async def _remove_nobodys(self, elements: Collection[str]) -> None:
        nobodys = " ".join(element for element in elements if element not in self._named)
        if diffs := stacks.diffs_in(nobodys):
            await self._diffs.remove(diffs)
        if layers := stacks.layers_in(nobodys):
            await self._layers.release(layers)

    def _add(self, kept: StoredResult) -> None:
        if kept.id not in self._records:
            for element in set(_elements_of(kept.record)):
                self._named[element] = self._named.get(element, 0) + 1
        self._records[kept.id] = kept
        self._by_key.update(dict.fromkeys(kept.keys, kept.id))
        for element in kept.record.made:
            if element not in self._makers:
                self._makers[element] = kept.id
                self._measure(element)

    def _measure(self, element: str) -> None:
        if stacks.diffs_in(element) and self._diffs.has(element):
            self._sizes[element] = self._diffs.size(element)
            self._bytes += self._sizes[element]
        else:
            self._passing[element] = None

    def _drop(self, kept: StoredResult) -> None:
        """It is no record any more, and nothing was made for it."""
        del self._records[kept.id]
        for element in set(_elements_of(kept.record)):
            self._named[element] -= 1
            if not self._named[element]:
                del self._named[element]
        for element in kept.record.made:
            if self._makers.get(element) == kept.id:
                del self._makers[element]
                self._bytes -= self._sizes.pop(element, 0)
                self._passing.pop(element, None)


def _layers_of(record: Record) -> list[str]:
    return [chain_id for output in record.outputs for chain_id in stacks.layers_in(output)]


def _elements_of(record: Record) -> list[str]:
    return [*record.made, *(element for output in record.outputs for element in stacks.elements(output))]


def _change(kept: StoredResult) -> Change:
    return Change(RECORD, kept.id, msgspec.json.encode(kept))
