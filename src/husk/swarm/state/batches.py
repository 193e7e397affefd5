"""As much at once as one transaction, or one message, takes: counted in pieces and in bytes. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# etcd takes 128 steps in a transaction and 1.5 MiB in a request; a config alone may have 1.3 MB.
MOST_STEPS, MOST_BYTES = 100, 512 * 1024


def batches(
    items: Iterable[T], size: Callable[[T], int], *, steps: int | None = None, most: int | None = None
) -> Iterator[list[T]]:
    """The items in their order, each batch within both limits; one that is too large by itself is alone in its own."""
    steps, most = MOST_STEPS if steps is None else steps, MOST_BYTES if most is None else most
    some: list[T] = []
    taken = 0
    for item in items:
        needed = size(item)
        if some and (len(some) == steps or taken + needed > most):
            yield some
            some, taken = [], 0
        some.append(item)
        taken += needed
    if some:
        yield some
