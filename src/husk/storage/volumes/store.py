"""The directories of volumes, below one root: made, filled and thrown away. All calls block.

    <name>/_data      what containers see; the mount point of a volume with mount options
    <name>/_filling   a first content on its way in; whatever a crash leaves of it is removed
    <name>/_filled    a first content that is complete and is being moved into `_data`, entry by entry
    .trash/<n>        volumes that are gone, being deleted

The engine's record makes a volume exist: a directory without one is the rest of something cut off.
"""

import contextlib
import errno
import logging
import os
import stat
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Self

import msgspec

from husk.errors import SystemFault
from husk.kernel.disk import sync_directory, sync_file_system
from husk.kernel.mount import MS_BIND, MS_REC, MS_REMOUNT, mount, mounts_below, unmount
from husk.kernel.trees import remove_tree, tree_size
from husk.storage.volumes.copies import copy_tree

log = logging.getLogger(__name__)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class MountCall(msgspec.Struct, frozen=True):
    """The arguments of mount(2): the words of mount(8), taken apart. `propagation` is a call of its own."""

    source: str
    fstype: str
    flags: int = 0
    data: str = ""
    propagation: int = 0


class VolumeStore:
    def __init__(self, root: Path) -> None:
        """`root` exists and has no link in it: the kernel's mount table knows no links."""
        self._root = root
        self._trash = root / ".trash"
        self._stop = threading.Event()

    @classmethod
    def open(cls, root: Path, known: Collection[str]) -> Self:
        """Make the root, throw away what has no record, and finish or undo first contents that were cut off."""
        root.mkdir(mode=0o701, parents=True, exist_ok=True)
        store = cls(root.resolve())
        store._trash.mkdir(mode=0o700, exist_ok=True)
        for name in set(os.listdir(root)) - {store._trash.name}:
            try:
                if name in known:
                    store._settle(name)
                else:
                    log.info("removing what is left of volume %s", name)
                    store.discard(name)
            except OSError as error:
                log.error("volume %s cannot be put right: %s", name, error)
        return store

    def close(self) -> None:
        """Stop deleting; the rest is deleted after the next start."""
        self._stop.set()

    def data(self, name: str) -> Path:
        return self._root / name / "_data"

    def create(self, name: str) -> bool:
        """Make the directory of a volume, which is on the disk then; safe to repeat. Is it new?"""
        self.data(name).parent.mkdir(mode=0o701, exist_ok=True)
        if self.data(name).exists():
            return False
        self.data(name).mkdir()
        self.data(name).chmod(0o755)
        sync_directory(self.data(name).parent)
        sync_directory(self._root)
        return True

    def discard(self, name: str) -> None:
        """Take a volume's directory out of the way; `empty_trash` deletes it. Nothing happens when it is gone."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._root / name, self._trash / os.urandom(8).hex())

    def empty_trash(self) -> None:
        """Delete what was discarded. What is still mounted there is unmounted first, never deleted."""
        for thing in self._trash.iterdir():
            try:
                if thing.is_symlink() or not thing.is_dir():  # it was never a volume
                    thing.unlink()
                    continue
                for target in mounts_below(str(thing)):
                    unmount(target, detach=True)
                remove_tree(thing, self._stop)
            except OSError as error:
                log.error("cannot delete %s: %s", thing, error)

    def size(self, name: str) -> int:
        return tree_size(self.data(name))

    # --- first content

    def is_empty(self, name: str) -> bool:
        with os.scandir(self.data(name)) as entries:
            return next(entries, None) is None

    def fill(self, name: str, source: int) -> None:
        """Give an empty volume the content, owner and mode of the open directory `source`; all of it, or none.

        It is on the disk when this returns.
        """
        if not self.is_empty(name):
            return

        if self.mounted(name):
            # Another file system: nothing can be moved into it in one step.
            with _opened(self.data(name)) as data:
                copy_tree(source, data)
            sync_file_system(self.data(name))
            return
        filling = self._root / name / "_filling"
        remove_tree(filling)
        filling.mkdir(mode=0o700)
        with _opened(filling) as staged:
            copy_tree(source, staged)
        # Complete is what its name says it is, also after a power cut.
        sync_file_system(filling)
        os.rename(filling, self._root / name / "_filled")
        sync_directory(self._root / name)
        self._settle(name)

    def _settle(self, name: str) -> None:
        """Undo a filling that was cut off, finish one that was complete."""
        remove_tree(self._root / name / "_filling")
        filled = self._root / name / "_filled"
        if not filled.exists():
            return
        with _opened(filled) as source, _opened(self.data(name)) as data:
            status = os.fstat(source)
            os.fchown(data, status.st_uid, status.st_gid)
            os.fchmod(data, stat.S_IMODE(status.st_mode))
            for entry in os.listdir(source):
                # A container that uses the volume already may have made the same name.
                if not _exists(entry, data):
                    os.rename(entry, entry, src_dir_fd=source, dst_dir_fd=data)
        remove_tree(filled)

    # --- volumes that are mounts of their own

    def mounted(self, name: str) -> bool:
        try:
            mounts = mounts_below(str(self.data(name)))
        except FileNotFoundError:
            return False
        return str(self.data(name)) in mounts

    def mount(self, name: str, call: MountCall) -> None:
        """Mount what a volume's options say; nothing happens when it is mounted."""
        if self.mounted(name):
            return
        target = str(self.data(name))
        # A bind mount takes its flags only when it is mounted again; recursion is for the first call alone.
        bound = call.flags & MS_BIND
        later = call.flags & ~(MS_BIND | MS_REC) if bound else 0
        try:
            mount(call.source, target, call.fstype, call.flags, call.data)
            if later:
                mount("none", target, "none", MS_REMOUNT | MS_BIND | later)
            if call.propagation:
                mount("none", target, "none", call.propagation)
        except OSError as error:
            unmount(target, detach=True)
            raise SystemFault(
                f"failed to mount local volume: {_describe(call, target)}: {_reason(error, call)}"
            ) from error

    def unmount(self, name: str) -> None:
        """Unmount it; nothing happens when it is not mounted."""
        while self.mounted(name):
            unmount(str(self.data(name)), detach=True)

    def all_mounted(self) -> set[str]:
        """The names of the volumes that are mounted."""
        mounts = set(mounts_below(str(self._root)))
        return {name for name in os.listdir(self._root) if str(self.data(name)) in mounts}


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _describe(call: MountCall, target: str) -> str:
    words = [f"mount {call.source}:{target}"]
    words += [f"flags: {call.flags:#x}"] if call.flags else []
    shown = ",".join(
        "password=********" if word.startswith("password=") else word for word in call.data.split(",") if word
    )
    words += [f"data: {shown}"] if shown else []
    return ", ".join(words)


def _reason(error: OSError, call: MountCall) -> str:
    text = error.strerror or str(error)
    text = text[:1].lower() + text[1:]
    if error.errno == errno.ENODEV:
        # The kernel says this of a type that it does not know; a module would have been loaded.
        text += f" (this host's kernel has no file system {call.fstype})"
    return text


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    fd = os.open(directory, _DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
