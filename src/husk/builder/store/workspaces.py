"""Places to write on top of the file systems of builds."""

import os
import stat
from pathlib import Path
from typing import Protocol

from husk.storage.workers.parts import Blob


class DiffKeeper(Protocol):
    """Makes diffs of what was written: `husk.builder.store.diffs`."""

    def path(self, directory: str, /) -> Path: ...

    def make_work(self, directory: str, /) -> Path: ...

    async def keep(
        self, space: "Workspace", size: int | None = None, packed: Blob | None = None, layered: bool = False, /
    ) -> str: ...


class Workspace:
    """A place to write on top of a stack; `DiffStore.workspace` makes it.

    Mount an overlay of `lower`, `upper` and `work`, and unmount it before the block ends; or write into `upper`.
    `work` is made when it is first asked for.
    """

    def __init__(self, store: DiffKeeper, lower: list[str], directory: str) -> None:
        self._store = store
        self.lower = lower
        self.directory = directory
        self.upper = store.path(directory)
        self.kept = False
        self._work: Path | None = None

    @property
    def work(self) -> Path:
        if self._work is None:
            self._work = self._store.make_work(self.directory)
        return self._work

    @property
    def has_work(self) -> bool:
        """True if the directory `work` was asked for."""
        return self._work is not None

    async def keep(self, size: int | None = None, packed: Blob | None = None, *, layered: bool = False) -> str:
        """Make what was written a diff, though it be nothing, and nothing may be written any more: `diff:<id>`.

        Whoever knows the `size` of the files spares us counting, and who has `packed` them, packing. With `layered` it
        is going to be a layer, and packed at once if it is little.
        """
        return await self._store.keep(self, size, packed, layered)


def look_like(upper: Path, below: Path | None) -> None:
    """The union's root directory looks like the topmost one's."""
    if below is not None:
        status = below.stat()
        os.chown(upper, status.st_uid, status.st_gid)
        os.chmod(upper, stat.S_IMODE(status.st_mode))
