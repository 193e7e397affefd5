"""A store of records that can be told to be full."""

from collections.abc import Callable

from husk.errors import DiskFault
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
