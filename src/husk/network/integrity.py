"""A check that tables of rules are as they were written: what the kernel has now is compared with what it had then."""

from collections import Counter
from collections.abc import Collection, Mapping

from husk.kernel import nflisting
from husk.kernel.nflisting import Shape


def look(table: str, commands: str) -> dict[str, Shape]:
    """The table's shape for each kind of packets, directly after it was written by these commands.

    Where somebody has removed something before we looked, there is none: that is not how it should be. Blocks.
    """
    return look_for(table, rules(table, commands))


def look_for(table: str, rules: Mapping[str, Counter[str]]) -> dict[str, Shape]:
    """As `look`, where so many rules were written, by family and chain. Blocks."""
    found = {}
    for family, wanted in rules.items():
        seen = nflisting.shape(family, table)
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


def same(shapes: Mapping[str, Shape], family: str, table: str) -> bool:
    """Return True if all chains and rules are there, and no others. Blocks. Raises OSError."""
    return family in shapes and nflisting.shape(family, table) == shapes[family]


def rules(table: str, commands: str) -> dict[str, Counter[str]]:
    """Count the rules that these commands write, by family and chain. Pure."""
    found: dict[str, Counter[str]] = {}
    for line in commands.splitlines():
        words = line.split(maxsplit=5)
        if words[:2] == ["add", "rule"] and words[3] == table:
            found.setdefault(words[2], Counter())[words[4]] += 1
    return found
