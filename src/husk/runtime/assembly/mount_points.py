"""The layer between an image and a container's own changes, with what the runtime mounts things on.

Without it the runtime would make these in the writable layer, and `commit` and `diff` would show them. It lies above
the image, so that no link of that leads a mount elsewhere; its directories hide those of the image, and so they have
the owner, mode and extended attributes that these have. Most images say nothing unusual and share one layer.
"""

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.tree_cursor import DIRECTORY
from husk.kernel.trees import remove_tree

# Parents first; "" is the root.
_DIRECTORIES = ("", "dev", "dev/pts", "dev/shm", "proc", "sys", "etc")
_FILES = ("dev/console", "etc/hosts", "etc/hostname", "etc/resolv.conf", ".dockerenv")
_OF_OVERLAY = "trusted.overlay."
_REMEMBERED = 100


class DirectoryLook(Struct, frozen=True):
    """The owner, mode and extended attributes of a directory; its times are no part of this."""

    uid: int = 0
    gid: int = 0
    mode: int = 0o755
    attributes: tuple[tuple[str, bytes], ...] = ()


_USUAL = DirectoryLook()


class MountPoints:
    """Chooses the layer for an image, and makes it when it is wanted first."""

    def __init__(self, usual: Path, others: Path) -> None:
        """`usual` is the layer of most images, `others` has those of images whose directories look otherwise."""
        self._usual = usual
        self._others = others
        self._known: dict[tuple[str, ...], Path] = {}
        self._lock = threading.Lock()

    def make(self) -> None:
        """Make the usual one. OSError where something else stands in its place."""
        make_mount_points(self._usual)

    def of(self, lower: Sequence[str]) -> Path:
        """The layer for an image with these directories, topmost first. It is there; the usual one for an image that is
        not: whoever mounts it hears of that."""
        key = tuple(lower)
        if (known := self._known.get(key)) is not None:
            return known
        with self._lock:
            try:
                looks = _looks(lower)
            except OSError:
                return self._usual
            layer = self._place(looks)
            if looks and not layer.is_dir():
                self._make(layer, looks)
            while len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = layer
        return layer

    def place(self, lower: Sequence[str]) -> Path:
        """The same, which may not be there yet; the usual one where the image's directories cannot be looked at."""
        try:
            return self._known.get(tuple(lower)) or self._place(_looks(lower))
        except OSError:
            return self._usual

    def _place(self, looks: dict[str, DirectoryLook]) -> Path:
        if not looks:
            return self._usual
        return self._others / hashlib.sha256(repr(sorted(looks.items())).encode()).hexdigest()[:16]

    def _make(self, layer: Path, looks: dict[str, DirectoryLook]) -> None:
        """By a rename: what is there is complete."""
        half = layer.with_name("new")
        remove_tree(half)
        half.mkdir(0o700, parents=True)
        make_mount_points(half)
        for name in _DIRECTORIES:
            dress(half / name, looks.get(name, _USUAL))
        half.rename(layer)


def make_mount_points(top: Path) -> None:
    """Make what is missing of a layer."""
    for name in _DIRECTORIES:
        (top / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in _FILES:
        (top / name).touch(mode=0o755)
    if not os.path.lexists(top / "etc/mtab"):
        (top / "etc/mtab").symlink_to("/proc/mounts")


def look_of(directory: int | str | Path) -> DirectoryLook:
    """Read the look of a directory: an open one, or one that has a path of our own."""
    status = os.stat(directory)
    names = sorted(name for name in os.listxattr(directory) if not name.startswith(_OF_OVERLAY))
    attributes = tuple((name, os.getxattr(directory, name)) for name in names)
    return DirectoryLook(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), attributes)


def dress(directory: Path, look: DirectoryLook) -> None:
    """Give a directory of ours this look, without the attributes that its file system does not support."""
    os.chown(directory, look.uid, look.gid)
    os.chmod(directory, look.mode)  # behind the owner: a change of that takes bits away
    for name, value in look.attributes:
        try:
            os.setxattr(directory, name, value)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise


def open_directory(lower: Sequence[str], path: str) -> int | None:
    """The directory that an overlay of these (topmost first) would show at a path, as a descriptor: that of the topmost
    layer that has it. None if there is none, or a link or something that is no directory stands on the way."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    for layer in lower:
        fd, opaque = os.open(layer, DIRECTORY), False
        try:
            for name in names:
                if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    return None
                below = os.open(name, DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = below
                with contextlib.suppress(OSError):
                    opaque = opaque or os.getxattr(fd, OPAQUE_XATTR) == b"y"
            found, fd = fd, -1
            return found
        except FileNotFoundError:
            if opaque:
                return None
        except OSError:
            return None
        finally:
            if fd >= 0:
                os.close(fd)
    return None


def _looks(lower: Sequence[str]) -> dict[str, DirectoryLook]:
    """Find the directories of an image that look unusual; return their looks by name."""
    found: dict[str, DirectoryLook] = {}
    for name in _DIRECTORIES:
        fd = open_directory(lower, name)
        if fd is None:
            continue
        try:
            look = look_of(fd)
        finally:
            os.close(fd)
        if look != _USUAL:
            found[name] = look
    return found
