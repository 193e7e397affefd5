"""The order and the filter of a list, as the person chose them by a link: a session remembers both for each list.

`?sort=cpu` sorts by a column, `?sort=-cpu` the other way round; `?show=stopped` shows a part. Words that a list does
not have mean its first one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from husk.dashboard.visit import Visit

T = TypeVar("T")


class Column(NamedTuple):
    """A column that a list can be sorted by; `key` makes of a row what is compared. Numbers begin with the largest."""

    title: str
    key: Callable[[Any], Any]
    is_number: bool = False


class Sorting(NamedTuple):
    """The order of one list, and the words that its column headers need."""

    columns: Mapping[str, Column]
    by: str
    descending: bool

    def ordered(self, rows: Iterable[T]) -> list[T]:
        """Sort the rows. Those without a value come last in either direction."""
        key = self.columns[self.by].key
        valued: list[T] = []
        without: list[T] = []
        for row in rows:
            (without if key(row) is None else valued).append(row)
        return [*sorted(valued, key=key, reverse=self.descending), *without]

    def direction(self, name: str) -> str:
        """The direction of a column, in the words of `aria-sort`."""
        if name != self.by:
            return "none"
        return "descending" if self.descending else "ascending"

    def link(self, name: str) -> str:
        """The query that sorts by a column; by the one that is sorted by already, the other way round."""
        descending = not self.descending if name == self.by else self.columns[name].is_number
        return f"?sort={'-' if descending else ''}{name}"


def sorting(visit: Visit, columns: Mapping[str, Column]) -> Sorting:
    """The order that the request asks for, or that was chosen before on this page."""
    words = [f"{sign}{name}" for name in columns for sign in ("", "-")]
    word = _remembered(visit, "sort", words)
    return Sorting(columns, word.removeprefix("-"), word.startswith("-"))


def part(visit: Visit, parts: Iterable[str]) -> str:
    """The part of the list that the request asks for, or that was chosen before on this page."""
    return _remembered(visit, "show", list(parts))


def _remembered(visit: Visit, name: str, words: list[str]) -> str:
    choices, place = visit.session.choices, f"{name} {visit.path}"
    asked = visit.query.get(name)
    if asked in words:
        choices[place] = asked
    # What is remembered is bounded: only known pages call this, each with known words.
    return choices.get(place, words[0])
