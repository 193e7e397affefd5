"""Generators whose value counts, and not what they yield on the way."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def at_once(pieces: Generator[object, None, T]) -> T:
    """Return its result, without a pause between its pieces."""

    def keep() -> Generator[object, None, None]:
        found.append((yield from pieces))

    found: list[T] = []
    for _ in keep():
        pass
    return found[0]
