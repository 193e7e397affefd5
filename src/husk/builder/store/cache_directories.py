"""The directories of builds' caches, below one root, each with a random name; all calls block.

    <name>          what steps see
    .new/<name>     a first content on its way in; whatever a crash leaves of it is removed
    .trash/<name>   directories that are gone, being deleted

The engine's record makes a directory count: one without is the rest of something cut off.
"""

import logging
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

from husk.errors import InvalidParameter, SystemFault
from husk.kernel.mount import bind, mount_overlay, mounts_below, unmount
from husk.kernel.rooted import open_in_root
from husk.kernel.trees import discard_tree, tree_size
from husk.storage.volumes.copies import copy_tree

log = logging.getLogger(__name__)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


class CacheDirectories:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._new = root / ".new"
        self._trash = root / ".trash"

    @classmethod
    def open(cls, root: Path, known: Collection[str]) -> Self:
        """Remove what has no record. Nothing is made: a builder opens on a full disk."""
        directories = cls(root.resolve())
        for target in mounts_below(str(directories._root)):
            unmount(target, detach=True)
        if directories._root.exists():
            for name in set(os.listdir(directories._root)) - set(known):
                discard_tree(directories._root / name)
        return directories

    def path(self, name: str) -> Path:
        return self._root / name

    def has(self, name: str) -> bool:
        return self.path(name).is_dir()

    def make(self, name: str, lower: Sequence[str] = (), selector: str = "") -> None:
        """Make a directory, with a copy of what is at `selector` in the directories `lower`, the topmost first."""
        fresh = self._new / name
        try:
            self._root.mkdir(mode=0o701, parents=True, exist_ok=True)
            self._new.mkdir(mode=0o700, exist_ok=True)
            fresh.mkdir()
            content = fresh / "content"
            content.mkdir(mode=0o755)
            content.chmod(0o755)
            if lower:
                self._fill(fresh, content, lower, selector)
            content.rename(self.path(name))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SystemFault(f"cannot make a cache mount: {reason}") from error
        finally:
            discard_tree(fresh)

    def size(self, name: str) -> int:
        """Bytes in its files; steps may be at work on it."""
        try:
            return tree_size(self.path(name))
        except OSError as error:
            log.debug("cache mount %s is not measured: %s", name, error)
            return 0

    def remove(self, name: str) -> None:
        """Nothing happens when it is gone."""
        going = self._trash / name
        try:
            self._trash.mkdir(mode=0o700, exist_ok=True)
            self.path(name).rename(going)
        except FileNotFoundError:
            pass
        except OSError:  # a full disk has no room for another name
            going = self.path(name)
        discard_tree(going)

    def _fill(self, fresh: Path, content: Path, lower: Sequence[str], selector: str) -> None:
        whole, empty = fresh / "whole", fresh / "empty"
        whole.mkdir()
        empty.mkdir()
        if len(lower) > 1:
            mount_overlay([*lower, str(empty)], "", "", str(whole))
        else:
            bind(lower[0], str(whole), readonly=True)
        try:
            self._copy(whole, selector, content)
        finally:
            unmount(str(whole), detach=True)

    def _copy(self, whole: Path, selector: str, content: Path) -> None:
        try:
            source = open_in_root(whole, selector or "/", _DIRECTORY)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidParameter(f"the source of a cache mount: {selector or '/'}: {reason}") from None
        try:
            destination = os.open(content, _DIRECTORY | os.O_CLOEXEC)
            try:
                copy_tree(source, destination)
            finally:
                os.close(destination)
        finally:
            os.close(source)
