"""Which records of builds go? Those that a client prunes, and what is too much by the daemon's own rules.

Records go from the outside: what others lie on goes after them, and of those that may go the one that was used longest
ago goes first.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from husk.config import CacheRule
from husk.engine.builder.cache import BuildCache, StoredResult
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


class Pruned(Struct, kw_only=True):
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
    """The directories that outlive steps: `husk.engine.builder.steps.cache_mounts`."""

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
        shared = self._shared()
        all = [*(self._item(kept, shared) for kept in self._cache), *await self._mounts.items()]
        return [item for item in all if wanted(item)]

    async def prune(self, filters: Filters, *, all: bool, keep: int = 0) -> Pruned:
        matches = _matching(filters)
        return await self._prune(lambda item: matches(item) and (all or _is_outer(item)), keep)

    async def collect(self, rules: Iterable[CacheRule]) -> Pruned:
        """Apply the daemon's rules, one after the other."""
        result = Pruned()
        size = sum(self._cache.size(kept) for kept in self._cache)
        size += sum(item.size for item in await self._mounts.items())
        for rule in rules:
            # Mostly there is little, and it is not looked through: this follows every build.
            if rule.keep and size - result.freed <= rule.keep:
                continue
            pruned = await self._prune(_by_rule(rule), rule.keep)
            result.items += pruned.items
            result.freed += pruned.freed
        return result

    async def _prune(self, wanted: Callable[[Item], bool], keep: int) -> Pruned:
        shared = self._shared()
        all = {kept.id: self._item(kept, shared) for kept in self._cache}
        all |= {item.id: item for item in await self._mounts.items()}
        above = Counter(parent for item in all.values() for parent in item.parents)
        left = sum(item.size for item in all.values())
        result = Pruned()
        waiting = [(item.last_used, item.id) for item in all.values() if not above[item.id]]
        heapq.heapify(waiting)
        while waiting and (not keep or left > keep):
            item = all[heapq.heappop(waiting)[1]]
            if item.in_use or not wanted(item):
                continue
            freed = await self._remove(item)
            if freed is None:
                continue
            left -= freed
            result.freed += freed
            result.items.append(item)
            for parent in item.parents:
                above[parent] -= 1
                if not above[parent] and parent in all:
                    heapq.heappush(waiting, (all[parent].last_used, parent))
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


def _by_rule(rule: CacheRule) -> Callable[[Item], bool]:
    moment = parse_moment(rule.unused_for) if rule.unused_for else now_ns()

    def wanted(item: Item) -> bool:
        if rule.types and item.type not in rule.types:
            return False
        return item.last_used <= moment and (rule.all or _is_outer(item))

    return wanted


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
