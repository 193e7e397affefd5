"""The pruning of records of builds: those that a client prunes, and what is too much by the daemon's own rules.

Records go from the outside: what others lie on goes after them, and of those that may go the one that was used longest
ago goes first.

The rules are applied after each build. While there is less than they keep nothing is looked at, and then only as many
records as it takes, the oldest first.
"""

import asyncio
import functools
import heapq
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from husk.builder.cache.cache import BuildCache, StoredResult
from husk.config import CacheRule
from husk.engine.model.clock import now_ns, parse_moment
from husk.engine.model.filters import Filters
from husk.errors import Conflict, InvalidParameter, NotFound

FILTERS = (
    "description",
    "id",
    "immutable",
    "inuse",
    "mutable",
    "parent",
    "private",
    "shared",
    "type",
    "until",
    "unused-for",
)
_INNER = ("internal", "frontend")
MOUNT = "exec.cachemount"
_LOCAL = ("source.local", MOUNT, "source.git.checkout")
# So many records are looked at before others have their turn.
_TURN = 64


class Item(Struct, frozen=True, kw_only=True):
    """A record as clients see it."""

    id: str
    parents: list[str]
    type: str
    description: str
    in_use: bool
    shared: bool
    size: int
    created: int
    last_used: int
    uses: int


class PrunedCache(Struct, kw_only=True):
    items: list[Item] = []
    freed: int = 0


Shared = Callable[[], Collection[str]]


def default_rules(keep: int) -> tuple[CacheRule, ...]:
    """As dockerd has them: contexts and cache mounts go first, then what is old, then the rest."""
    return (
        CacheRule(types=_LOCAL, unused_for="48h", keep=512 << 20),
        CacheRule(unused_for="1440h", keep=keep),
        CacheRule(keep=keep),
        CacheRule(keep=keep, all=True),
    )


class CacheMounts(Protocol):
    """The directories that outlive steps: `husk.builder.steps.cache_mounts`."""

    async def items(self) -> list[Item]: ...

    async def remove(self, name: str, /) -> int: ...


class CachePruner:
    def __init__(self, cache: BuildCache, mounts: CacheMounts, shared: Shared) -> None:
        """`shared` tells which diffs are layers of images, too."""
        self._cache = cache
        self._mounts = mounts
        self._shared = shared

    async def items(self, filters: Filters | None = None) -> list[Item]:
        wanted = _matching(filters or Filters())
        shared, found = self._shared(), list[Item]()
        for number, kept in enumerate(self._cache, 1):
            found.append(self._item(kept, shared))
            if not number % _TURN:
                await asyncio.sleep(0)
        return [item for item in (*found, *await self._mounts.items()) if wanted(item)]

    async def prune(self, filters: Filters, *, all: bool, keep: int = 0) -> PrunedCache:
        matches = _matching(filters)
        pruning = _Pruning(wanted=lambda item: matches(item) and (all or _is_outer(item)), keep=keep)
        return await self._prune(pruning, await self._mounts.items(), functools.cache(self._shared))

    async def collect(self, rules: Iterable[CacheRule]) -> PrunedCache:
        """Apply the daemon's rules, one after the other."""
        result = PrunedCache()
        mounts, shared = await self._mounts.items(), functools.cache(self._shared)
        for rule in rules:
            pruned = await self._prune(_by_rule(rule), mounts, shared)
            gone = {item.id for item in pruned.items}
            mounts = [item for item in mounts if item.id not in gone]
            result.items += pruned.items
            result.freed += pruned.freed
        return result

    async def _prune(self, pruning: "_Pruning", mounts: Sequence[Item], shared: Shared) -> PrunedCache:
        keep, result = pruning.keep, PrunedCache()
        left = self._cache.total() + sum(item.size for item in mounts)
        if keep and left <= keep:
            return result
        others = {item.id: item for item in mounts}
        waiting = sorted(
            (found.last_used, found.id)
            for found in (*self._cache, *mounts)
            if found.last_used <= pruning.before and pruning.may_go(found)
        )
        looked_at = 0
        while waiting and (not keep or left > keep):
            id = heapq.heappop(waiting)[1]
            looked_at += 1
            if not looked_at % _TURN:
                await asyncio.sleep(0)
            # Others build meanwhile: what counts is how it is now.
            kept = self._cache.get(id)
            if (kept is None and id not in others) or (kept is not None and not self._cache.is_leaf(kept)):
                continue
            item = self._item(kept, shared()) if kept else others[id]
            if item.in_use or not pruning.wanted(item):
                continue
            freed = await self._remove(item)
            if freed is None:
                continue
            left -= freed
            result.freed += freed
            result.items.append(item)
            for parent in item.parents:
                if below := self._cache.get(parent):
                    heapq.heappush(waiting, (below.last_used, parent))
        return result

    async def _remove(self, item: Item) -> int | None:
        """The bytes that this gives back; None if somebody has come to use it."""
        if item.type != MOUNT:
            return await self._cache.remove(item.id)
        try:
            return await self._mounts.remove(item.id)
        except (Conflict, NotFound):
            return None

    def _item(self, kept: StoredResult, shared: Collection[str]) -> Item:
        return Item(
            id=kept.id,
            parents=self._cache.parents(kept),
            type=kept.record.type,
            description=kept.record.description,
            in_use=self._cache.in_use(kept),
            shared=any(diff in shared for diff in kept.record.made),
            size=self._cache.size(kept),
            created=kept.created,
            last_used=kept.last_used,
            uses=kept.uses,
        )


def _is_outer(item: Item) -> bool:
    return not item.shared and item.type not in _INNER


class _Pruning(Struct, frozen=True, kw_only=True):
    """The records that may go: of these types (or of all), used no later, until no more than `keep` bytes are left."""

    wanted: Callable[[Item], bool]
    keep: int = 0
    types: Collection[str] = ()
    before: int = sys.maxsize

    def may_go(self, found: StoredResult | Item) -> bool:
        """The cheap part of the question."""
        return not self.types or _type_of(found) in self.types


def _type_of(found: StoredResult | Item) -> str:
    return found.type if isinstance(found, Item) else found.record.type


def _by_rule(rule: CacheRule) -> _Pruning:
    moment = parse_moment(rule.unused_for) if rule.unused_for else now_ns()

    def wanted(item: Item) -> bool:
        if rule.types and item.type not in rule.types:
            return False
        return item.last_used <= moment and (rule.all or _is_outer(item))

    return _Pruning(wanted=wanted, keep=rule.keep, types=rule.types, before=moment)


def _matching(filters: Filters) -> Callable[[Item], bool]:
    for key in filters:
        if len(filters.get(key)) != 1 and key != "id":
            raise InvalidParameter(f"failed to prune build cache: invalid filter '{key}': one value is expected")
    before = _moments(filters)
    truths: Sequence[tuple[str, Callable[[Item], bool]]] = (
        ("inuse", lambda item: item.in_use),
        ("shared", lambda item: item.shared),
        ("private", lambda item: not item.shared),
        ("mutable", lambda item: item.type in _LOCAL),
        ("immutable", lambda item: item.type not in _LOCAL),
    )
    asked = [(test, filters.switch(key, True)) for key, test in truths if key in filters]
    texts: Sequence[tuple[str, Callable[[Item, str], bool]]] = (
        ("id", lambda item, value: item.id.startswith(value)),
        ("parent", lambda item, value: any(parent.startswith(value) for parent in item.parents)),
        ("type", lambda item, value: item.type == value),
        ("description", lambda item, value: value in item.description),
    )

    def matches(item: Item) -> bool:
        return (
            all(item.last_used < moment for moment in before)
            and all(test(item) == truth for test, truth in asked)
            and all(any(test(item, value) for value in filters.get(key)) for key, test in texts if key in filters)
        )

    return matches


def _moments(filters: Filters) -> list[int]:
    return [parse_moment(value) for key in ("until", "unused-for") for value in filters.get(key)]
