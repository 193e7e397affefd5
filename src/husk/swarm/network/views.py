"""Views of networks for nodes, made once for all nodes that are on the same ones; and the news since the last view.

A `View` is what all nodes on the same networks are told alike; what only one of them is told (`own`) is laid over it. A
view never changes: when something of it does, the next one is made, once, with what differs noted. So a change costs
one look at all there is, and for each node what has changed; and a thousand nodes on one network hold one view. Pure.
"""

import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple
from weakref import WeakValueDictionary

from msgspec import Struct

Name = tuple[str, str]
Records = dict[Name, Struct]
# Of how many views before it a view says what differs. Who has an older one is compared with it.
KEPT = 16

_ORDER = {kind: place for place, kind in enumerate(("overlay", "address", "service", "task", "node"))}
_numbers = itertools.count()


class View:
    def __init__(self, records: Mapping[Name, Struct], changes: tuple[tuple[int, frozenset[Name]], ...] = ()) -> None:
        """`changes` are the names that differ from the view before, with the number of that one; oldest first."""
        self.records = records
        self.number = next(_numbers)
        self.changes = changes
        # What it was made of last.
        self.generation: object = None

    def differs(self, former: "View") -> set[Name]:
        """The names whose records may be others than in a former view."""
        if former is self:
            return set()
        for place, (number, _) in enumerate(self.changes):
            if number == former.number:
                return {name for _, names in self.changes[place:] for name in names}
        return {name for name, record in self.records.items() if former.records.get(name) is not record} | (
            former.records.keys() - self.records.keys()
        )


def succeed(former: View | None, records: Records) -> View:
    """The view of these records: the former one where nothing differs."""
    if former is None:
        return View(records)
    differing = former.records.keys() - records.keys()
    for name, record in records.items():
        before = former.records.get(name)
        if before is record:
            continue
        if before is not None and before == record:
            # Kept once, and known to be the same at a glance.
            records[name] = before
        else:
            differing.add(name)
    if not differing:
        return former
    return View(records, (*former.changes[1 - KEPT :], (former.number, frozenset(differing))))


class Views:
    """The views that somebody holds, by what they are of."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, View] = WeakValueDictionary()

    def get(self, key: Hashable, generation: object, make: Callable[[], Records]) -> View:
        """`make` is called where the view is not of this generation."""
        known = self._known.get(key)
        if known is None or known.generation != generation:
            known = succeed(known, make())
            known.generation = generation
            self._known[key] = known
        return known


class NetworkShare(NamedTuple):
    """The records of networks that a node may know, by kind and key."""

    view: View
    own: Mapping[Name, Struct]
    data_path_port: int

    @property
    def records(self) -> Records:
        return {**self.view.records, **self.own}

    def get(self, name: Name) -> Struct | None:
        return self.own.get(name) or self.view.records.get(name)


NOTHING = NetworkShare(View({}), {}, 0)


def _in_order(name: Name) -> tuple[int, Name]:
    """Networks before what is on them, services before their tasks."""
    return _ORDER.get(name[0], len(_ORDER)), name


def news(before: NetworkShare | None, after: NetworkShare) -> tuple[Records, list[Name]]:
    """Return the records that a node which was told `before` has to be told, and the names of those that are gone."""
    if before is None:
        return after.records, []
    names = after.view.differs(before.view)
    names |= {name for name in before.own.keys() | after.own.keys() if before.own.get(name) != after.own.get(name)}
    fresh: Records = {}
    gone: list[Name] = []
    for name in sorted(names, key=_in_order):
        was, record = before.get(name), after.get(name)
        if record is None:
            if was is not None:
                gone.append(name)
        elif was is not record and was != record:
            fresh[name] = record
    return fresh, gone
