"""Tells of interfaces that are deleted, while an event loop runs."""

import asyncio
from collections.abc import Callable, Collection

from husk.kernel.linkwatch import LinkWatch


class Deletions:
    """Begins at once, and ends with `close`."""

    def __init__(
        self, told: Callable[[Collection[str] | None], None], watch: Callable[[], LinkWatch] = LinkWatch
    ) -> None:
        """`told` hears the names; None where nobody can tell which."""
        self._told = told
        self._watch = watch()
        asyncio.get_running_loop().add_reader(self._watch.fileno(), self._noticed)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watch.fileno())
        self._watch.close()

    def _noticed(self) -> None:
        names = self._watch.deleted()
        if names is None or names:
            self._told(names)
