"""The key of this host's member of etcd: where etcd reads it, and what of it is on the disk.

etcd reads `member.key` with each new connection. Without autolock that is the key. With it `member.key` is a link to a
file in memory (a tmpfs below the exec root, which outlives the daemon as the member does, and ends with the host), and
the disk has the key as `member.sealed` alone, sealed with the key of the swarm's secrets: after a boot the member can
be started when the swarm has been unlocked. `member.key` says which of the two it is, and changes in one step, so that
a crash at any point leaves a key that can be used; `keep` ends what it has left.
"""

import contextlib
import os
from pathlib import Path
from typing import Protocol

from husk.errors import SystemFault
from husk.storage.secrets import key_files, memory
from husk.storage.secrets.sealing import Sealer

_CONTEXT = "the key of this manager's member of etcd"


class Memory(Protocol):
    """Directories that are on no disk."""

    def make(self, place: Path) -> None: ...

    def drop(self, place: Path) -> None: ...


class MemberKey:
    """The methods block: call them from a thread."""

    def __init__(self, path: Path, place: Path, sealer: Sealer, directories: Memory = memory) -> None:
        """`place` is a directory for it in memory."""
        self._path = path
        self._sealed = path.with_suffix(".sealed")
        # The file that was in the place of the link, until it is overwritten.
        self._left = path.with_suffix(".left")
        self._place, self._open = place, place / path.name
        self._sealer = sealer
        self._directories = directories

    def open(self) -> bool:
        """See that it is where etcd reads it; False where it is sealed, and the swarm is locked."""
        if self._path.is_symlink():
            if not self._sealer.locked:
                self._bring()
            elif not self._path.exists():
                return False
        return True

    def keep(self, sealed: bool) -> None:
        """Keep it sealed or open on the disk from now on, whatever a crash has left. The swarm must not be locked."""
        if sealed:
            self._seal()
        elif self._path.is_symlink() or self._path.exists():
            self._unseal()

    def drop(self) -> None:
        """Nothing of it is in memory any more. Safe to call twice."""
        for place in self._places():
            self._directories.drop(place)

    def _seal(self) -> None:
        if not self._path.is_symlink():
            # A second name for what is not replaced yet.
            self._left.unlink(missing_ok=True)
            if not self._path.exists():
                return
            key = self._path.read_bytes()
            key_files.write(self._sealed, self._sealer.seal(key, _CONTEXT))
            self._put(key)
            os.link(self._path, self._left)
            self._link()
        else:
            self._bring()
        key_files.destroy(self._left)
        # A crash may have left the key in the clear there.
        self._clear_fresh()

    def _unseal(self) -> None:
        places = self._places()
        if self._path.is_symlink():
            key = self._unsealed()
            self._clear_fresh()
            key_files.write(self._path, key)
        with contextlib.suppress(FileNotFoundError):
            if not self._left.samefile(self._path):
                key_files.destroy(self._left)
            self._left.unlink(missing_ok=True)
        self._clear_fresh()
        for path in (self._sealed, key_files.beside(self._sealed)):
            path.unlink(missing_ok=True)
        for place in places:
            self._directories.drop(place)

    def _places(self) -> set[Path]:
        """Directories that it may be in: a locked swarm goes on with that below the exec root of a former daemon."""
        return {self._place, *([self._path.readlink().parent] if self._path.is_symlink() else [])}

    def _bring(self) -> None:
        """Into memory, where it is not there after a boot or with another exec root."""
        if not (self._path.readlink() == self._open and self._open.exists()):
            self._put(self._unsealed())
            if self._path.readlink() != self._open:
                former = self._path.readlink().parent
                self._link()
                self._directories.drop(former)

    def _put(self, key: bytes) -> None:
        self._directories.make(self._place)
        key_files.write(self._open, key)

    def _link(self) -> None:
        self._clear_fresh()
        fresh = key_files.beside(self._path)
        fresh.symlink_to(self._open)
        fresh.rename(self._path)
        key_files.sync(self._path.parent)

    def _clear_fresh(self) -> None:
        """Remove what a crash left of the file, or of the link, that was to be `member.key`."""
        fresh = key_files.beside(self._path)
        if fresh.is_symlink():
            fresh.unlink()
        else:
            key_files.destroy(fresh)

    def _unsealed(self) -> bytes:
        if not self._sealer.is_there:
            raise SystemFault(f"{self._sealed} cannot be unsealed: the key of the swarm's secrets is gone")
        return self._sealer.unseal(self._sealed.read_bytes(), _CONTEXT)
