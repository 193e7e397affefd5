"""A container's root file system: its own writable directory over the layers of its image, by overlayfs.

On disk, below the container's directory: `diff` is what the container changed (and what `commit` turns into a layer),
`work` belongs to the kernel, `rootfs` is where both are seen together while mounted, `empty` stands for an image
without layers. The functions block: callers on the event loop use a thread.
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import rooted
from husk.kernel.mount import mount_overlay, unmount
from husk.kernel.trees import remove_tree, tree_size
from husk.runtime.assembly.mount_points import dress, look_of, open_directory


def has_directory(lower: Sequence[str], path: str) -> bool:
    """Return True if these layers (topmost first) have a directory there, by names alone. False also where it takes a
    mounted root to tell: a link is on the way."""
    fd = open_directory(lower, path)
    if fd is not None:
        os.close(fd)
    return fd is not None


class ContainerRoot:
    """The root file system of one container: created, mounted and unmounted any number of times, removed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.upper = directory / "diff"
        self.work = directory / "work"
        self.merged = directory / "rootfs"
        self._empty = directory / "empty"

    def create(self) -> None:
        """Make the directories; safe to repeat."""
        try:
            os.makedirs(self.directory, 0o710)
        except FileExistsError:
            if os.path.isdir(self.merged):
                return  # it is the last one
        for directory in (self.upper, self.work, self.merged):
            _make(directory)

    def mount(self, lower: Sequence[str], *, volatile: bool = False) -> None:
        """Mount over `lower` (topmost first, as `LayerStore.lower` gives it); nothing happens when it is mounted.

        `volatile` for a container that is removed when it ends, also by a power cut: nothing in it need be synced.
        """
        if self.mounted:
            return
        if lower and not any(self.work.iterdir()):
            # The root directory of the union looks as the writable directory does. The kernel puts a directory into
            # `work` at the first mount, so this never undoes a change that the container made.
            dress(self.upper, look_of(lower[0]))
        if not lower:
            _make(self._empty)
            lower = [str(self._empty)]
        try:
            mount_overlay(lower, str(self.upper), str(self.work), str(self.merged), volatile=volatile)
        except OSError as error:
            raise SystemFault(f"error creating overlay mount to {self.merged}: {error.strerror}") from error

    @property
    def mounted(self) -> bool:
        try:
            return os.stat(self.merged).st_dev != os.stat(self.directory).st_dev
        except (FileNotFoundError, NotADirectoryError):
            return False

    def unmount(self) -> None:
        """Unmount, with anything that is mounted inside; nothing happens when it is not mounted."""
        # At once: to look first takes longer than to be told that there is nothing.
        unmount(str(self.merged), detach=True)
        while self.mounted:
            unmount(str(self.merged), detach=True)

    def remove(self) -> None:
        """Unmount and remove everything; nothing happens when it is gone already."""
        self.unmount()
        remove_tree(self.directory)

    def unchanged(self) -> bool:
        """Return True if the container has written nothing at all."""
        return not os.listdir(self.upper)

    def usage(self) -> int:
        """Bytes in the regular files that the container made or changed."""
        return tree_size(self.upper)

    def text_of(self, path: str) -> str:
        """The beginning of a file of the mounted root, empty where there is none; no link leads out of the root."""
        return rooted.read_text(self.merged, path)

    def make_directory(self, path: str) -> None:
        """Make the directory that a container's processes begin in, where the mounted root has none."""
        try:
            rooted.make_directories(self.merged, path)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise InvalidParameter(f"Cannot mkdir: {path} is not a directory") from None
            if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
                raise InvalidParameter(f"Cannot mkdir: {path[:200]}: {(error.strerror or '').lower()}") from None
            raise SystemFault(f"Cannot mkdir: {path[:200]}: {(error.strerror or str(error)).lower()}") from error

    def open_directory(self, path: str) -> "OpenDirectory | None":
        """A directory of the mounted root; None if it has none there. NotADirectoryError where a file stands."""
        try:
            return OpenDirectory(rooted.open_in_root(self.merged, path, os.O_RDONLY | os.O_DIRECTORY))
        except FileNotFoundError:
            return None


def _make(directory: Path) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory)
    os.chmod(directory, 0o755)


class OpenDirectory:
    """A directory that is held open until it is closed."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        os.close(self.fd)
