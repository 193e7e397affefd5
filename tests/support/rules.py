"""A kernel's nftables that takes rules and tells what it has."""

from collections import Counter

from husk.kernel.nflisting import Chain, Shape
from husk.network import integrity


class FakeRules:
    """The rules of one table, each of them the same as any other."""

    def __init__(self, table: str) -> None:
        self.table = table
        # The commands, from the first on.
        self.ran: list[str] = []
        self.fails: OSError | None = None
        self._has: dict[str, Counter[str]] = {}

    def run(self, commands: str) -> str:
        self.ran.append(commands)
        self._has = integrity.rules(self.table, commands)
        return ""

    def lose(self) -> None:
        """Somebody removes them all."""
        self._has = {}

    def shape(self, family: str, table: str) -> Shape:
        if self.fails is not None:
            raise self.fails
        counted = self._has.get(family, Counter()) if table == self.table else Counter()
        return {name: Chain(b"", b"", b"", (b"",) * count) for name, count in counted.items()}
