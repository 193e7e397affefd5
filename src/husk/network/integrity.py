"""A check that tables of rules are as they were written: what the kernel has now is compared with what it had then."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from husk.kernel import nflisting
from husk.kernel.nflisting import Shape

log = logging.getLogger(__name__)

ReadShape = Callable[[str, str], Shape]


class Written:
    """The shapes of a table since it was written. The methods block, and need a lock of their caller's."""

    def __init__(self, table: str, shape: ReadShape = nflisting.shape) -> None:
        """`shape` reads what a table of a family has now."""
        self._table = table
        self._shape = shape
        self._shapes: Mapping[str, Shape] = {}
        # The commands whose outcome nobody could look at yet.
        self._unseen = ""

    def note(self, commands: str) -> None:
        """Look at the table, directly after it was written by these commands. It is written, whatever comes of that:
        where it cannot be looked at now, `same` does it."""
        self._shapes, self._unseen = {}, commands
        try:
            self._look()
        except OSError as error:
            log.warning("the rules of table %s are written and cannot be checked: %s", self._table, error)

    def same(self, family: str) -> bool:
        """Return True if all chains and rules are there, and no others. Raises OSError where that cannot be seen."""
        if self._unseen:
            self._look()
        return same(self._shapes, family, self._table, self._shape)

    def _look(self) -> None:
        self._shapes = look(self._table, self._unseen, self._shape)
        self._unseen = ""


def look(table: str, commands: str, shape: ReadShape = nflisting.shape) -> dict[str, Shape]:
    """The table's shape for each kind of packets, directly after it was written by these commands.

    Where somebody has removed something before we looked, there is none: that is not how it should be. Blocks.
    """
    return look_for(table, rules(table, commands), shape)


def look_for(table: str, rules: Mapping[str, Counter[str]], shape: ReadShape = nflisting.shape) -> dict[str, Shape]:
    """As `look`, where so many rules were written, by family and chain. Blocks."""
    found = {}
    for family, wanted in rules.items():
        seen = shape(family, table)
        if _counted(seen) == wanted:
            found[family] = seen
    return found


def look_again(
    shapes: Mapping[str, Shape], family: str, table: str, wanted: Mapping[str, int], gone: Collection[str]
) -> Shape | None:
    """The shape after some chains have changed, which have so many rules now, and others have gone; None where it is
    not known, or not as it should be. What it costs does not depend on other chains. Blocks."""
    if family not in shapes:
        return None
    seen = nflisting.some_of_shape(family, table, wanted)
    if _counted(seen) != Counter(wanted):
        return None
    return {**{name: chain for name, chain in shapes[family].items() if name not in gone}, **seen}


def _counted(shape: Shape) -> Counter[str]:
    return Counter({name: len(chain.rules) for name, chain in shape.items()})


def same(shapes: Mapping[str, Shape], family: str, table: str, shape: ReadShape = nflisting.shape) -> bool:
    """Return True if all chains and rules are there, and no others. Blocks. Raises OSError."""
    return family in shapes and shape(family, table) == shapes[family]


def rules(table: str, commands: str) -> dict[str, Counter[str]]:
    """Count the rules that these commands write, by family and chain. Pure."""
    found: dict[str, Counter[str]] = {}
    for line in commands.splitlines():
        words = line.split(maxsplit=5)
        if words[:2] == ["add", "rule"] and words[3] == table:
            found.setdefault(words[2], Counter())[words[4]] += 1
    return found
