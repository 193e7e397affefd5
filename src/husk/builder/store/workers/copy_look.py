"""The look of copies: the options of `COPY` for owner, mode and time."""

import hashlib
import os
import stat

import msgspec

from husk.builder.store.sync_table import Brief
from husk.builder.store.workers import symbolic_modes
from husk.builder.store.workers.rooted_tree import Owner


class Look:
    """The look of copies, where it is not that of what they are copied from."""

    def __init__(
        self,
        owner: Owner | None = None,
        mode: int | None = None,
        symbolic_mode: str = "",
        time: int | None = None,
    ) -> None:
        self.owner = owner
        self.time = time
        self._mode = mode
        self._symbolic_mode = symbolic_mode
        # Is it that of what is copied?
        self.is_same = owner is None and mode is None and not symbolic_mode and time is None

    def mode_of(self, status: os.stat_result) -> int:
        if self._symbolic_mode:
            return symbolic_modes.apply(self._symbolic_mode, status.st_mode)
        return stat.S_IMODE(status.st_mode) if self._mode is None else self._mode & 0o7777

    def owner_of(self, status: os.stat_result) -> Owner:
        return self.owner or (status.st_uid, status.st_gid)

    def times_of(self, status: os.stat_result) -> tuple[int, int]:
        return (status.st_atime_ns, status.st_mtime_ns) if self.time is None else (self.time, self.time)

    def key(self, target: str) -> str:
        """The same for all that look the same when they are copied to the same place from the same files."""
        said = msgspec.msgpack.encode((os.fsencode(target), self.owner, self.time, self._mode, self._symbolic_mode))
        return hashlib.sha256(said).hexdigest()

    def seen(self, brief: Brief) -> Brief:
        """The look of a copy, of what a table tells."""
        kind, mtime = stat.S_IFMT(brief.mode), brief.mtime if self.time is None else self.time
        status = os.stat_result((brief.mode, 0, 0, 1, brief.uid, brief.gid, brief.size, 0, 0, 0))
        # Links have all the same mode.
        mode = brief.mode if kind == stat.S_IFLNK else kind | self.mode_of(status)
        return Brief(mode, *self.owner_of(status), brief.size, mtime)
