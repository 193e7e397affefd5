"""The directories with the files of layers and of build steps (`l/<short name>`), and who needs them.

A directory may be named by several records: when a build's diff becomes a layer of an image, both have the same one. So
whoever names a directory holds it, and it goes to the trash when the last one has let go. Names are short, because all
those of an image must fit into one mount call. The files are synced in the background (`Writeback`).
"""

import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

import msgspec

from husk.storage.layers.trash import Trash
from husk.storage.layers.writeback import Writeback
from husk.storage.state.store import StateStore
from husk.text.documents import MalformedDocument, decode
from husk.text.patterns import pattern

LAYER = "layer"
DIFF = "build-diff"
"""The kinds of records that name directories."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME = pattern(r"[0-9a-z]+")

log = logging.getLogger(__name__)

Synced = Callable[[frozenset[str]], Awaitable[None]]


class _Named(msgspec.Struct):
    """The part that the records of layers and of diffs have in common."""

    directory: str


class Directories:
    """Below one root: `l` with the files, `w` with overlayfs' own scratch space, and `trash`.

    `empty` is a directory that stays so, `view` one that workers mount on, each in a mount namespace of its own.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / "l"
        self.empty = root / "empty"
        self.view = root / "view"
        self._work = root / "w"
        self._trash_path = root / "trash"
        self._trash = Trash(self._trash_path, self.path)
        self._holders: Counter[str] = Counter()
        self._sequence = 0
        self._listeners: list[Synced] = []
        self.writeback = Writeback(root, self._synced)

    @classmethod
    def open(cls, root: Path, state: StateStore) -> Self:
        """Throw away what no record names. While there are records that cannot be read, everything stays."""
        found = cls(root)
        for path in (found.path, found._work, found.empty, found.view):
            path.mkdir(parents=True, exist_ok=True, mode=0o710)
        found.empty.chmod(0o755)
        found._trash.make()
        found._holders, all_read = _named(state)
        known = set(found._holders)
        present = set(os.listdir(found.path))
        names = known | present | found._trash.names()
        found._sequence = max((int(name, 36) for name in names if _NAME.fullmatch(name)), default=0)
        for name in present - known if all_read else ():
            found._throw_away(name)
        for name in os.listdir(found._work):
            found._take_work(name)
        found._trash.empty_soon()
        return found

    def make(self) -> str:
        """A new and empty one, which its maker holds."""
        self.writeback.postpone()
        self._sequence += 1
        name = short_name(self._sequence)
        (self.path / name).mkdir(mode=0o755)
        self.hold(name)
        return name

    def hold(self, name: str) -> None:
        self._holders[name] += 1

    def holders(self, name: str) -> int:
        """Return the number of records and others that hold a directory."""
        return self._holders[name]

    def release(self, name: str) -> None:
        """Let go of it: the last one to do so sends it to the trash."""
        self._holders[name] -= 1
        if self._holders[name] <= 0:
            del self._holders[name]
            self._trash.take(name)
            self._trash.empty_soon()

    def make_work(self, name: str) -> Path:
        """The directory that overlayfs needs beside the writable directory `name`."""
        path = self._work / name
        path.mkdir(mode=0o700)
        return path

    def remove_work(self, name: str) -> None:
        self._take_work(name)
        self._trash.empty_soon()

    def sync_later(self, name: str) -> None:
        """Plan a sync of a directory's files; those who `listen` hear of it."""
        self.writeback.add(name)

    def listen(self, synced: Synced) -> None:
        self._listeners.append(synced)

    async def emptied(self) -> None:
        """Wait until what was thrown away is deleted."""
        await self._trash.emptied()

    async def close(self) -> None:
        """Stop deleting, the rest is deleted after the next start; and wait until all files are synced."""
        await self._trash.close()
        await self.writeback.close()

    async def _synced(self, names: frozenset[str]) -> None:
        for listener in self._listeners:
            await listener(names)

    def _throw_away(self, name: str) -> None:
        try:
            self._trash.take(name)
        except OSError as error:
            log.error("what is left of layer %s cannot be removed: %s", name, error)

    def _take_work(self, name: str) -> None:
        try:
            os.rename(self._work / name, self._trash_path / f"w-{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            log.error("%s cannot be removed: %s", self._work / name, error)


def _named(state: StateStore) -> tuple[Counter[str], bool]:
    """Count the records that name each directory, and tell if all of them could be read."""
    names: Counter[str] = Counter()
    all_read = True
    for kind in (LAYER, DIFF):
        for body in state.load(kind).values():
            try:
                names[decode(body, _Named).directory] += 1
            except MalformedDocument:
                all_read = False
    return names, all_read


def short_name(number: int) -> str:
    """The number in digits and letters."""
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
