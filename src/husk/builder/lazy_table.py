"""Parts that most builds do not need, made when they are first asked for.

    parts = SourceParts(...)         # makes no source
    await parts.git.resolve(...)     # makes that of git

Whoever may need such a part is given a function that returns it, or a table of them by name (`LazyTable`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class LazyTable(Mapping[str, T]):
    """Parts by their names. To ask whether there is one does not make it."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = makers
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
