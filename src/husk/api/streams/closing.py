"""Iteration over a source that must be let go of: when the client leaves, the source is closed too."""

import contextlib
from collections.abc import AsyncIterator
from typing import TypeVar

T = TypeVar("T")


@contextlib.asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate and let go: a client that leaves must not keep a log open or a listener waiting."""
    try:
        yield items
    finally:
        if (close := getattr(items, "aclose", None)) is not None:
            await close()
