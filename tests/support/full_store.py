"""A store of records that can be told to be full."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from husk.errors import DiskFault
from husk.storage.state.reserve import Reserve
from husk.storage.state.store import Believe, Change, StateStore


class FullStore(StateStore):
    """A store on a disk that has no room as long as `full` is set; what only deletes is taken, as by every store."""

    full = False
    # Of these changes, while it is.
    refuses: Callable[[Change], bool] = staticmethod(lambda change: change.body is not None)

    async def commit(self, *changes: Change, lazy: bool = False, then: Believe | None = None) -> None:
        if self.full and any(self.refuses(change) for change in changes):
            raise DiskFault("write state.db: no space left on device")
        await super().commit(*changes, lazy=lazy, then=then)


class SmallStore(StateStore):
    """A store whose file has no room for more while it is filled, as SQLite tells it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, reserve: Reserve, *others: Any) -> None:
        super().__init__(path, connection, reserve, *others)
        self.connection, self.reserve = connection, reserve

    def fill(self) -> None:
        pages = self.connection.execute("PRAGMA page_count").fetchone()[0]
        self.connection.execute(f"PRAGMA max_page_count = {pages}")

    def make_room(self) -> None:
        self.connection.execute("PRAGMA max_page_count = 1000000")

    def die(self) -> None:
        """Leave all as a daemon that is killed."""
        self.connection.close()
